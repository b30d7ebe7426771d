"""State of an evolution across commands.

Finished rounds (rounds.jsonl), usage of judge and optimizer (spent.jsonl), the pool file that
people may edit at any time, the split into seen and held-out cases, and `evolve.max_calls`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rocketeval.config import EvolveConfig, PriceConfig
from rocketeval.errors import BenchmarkError, ConfigError, RunMismatch, StoreError
from rocketeval.evolve.ask import most_questions, questions
from rocketeval.evolve.cases import (
    FEWEST_CASES,
    Case,
    cases_from_labels,
    cases_from_votes,
    oriented,
    query_groups,
)
from rocketeval.evolve.perspective import (
    Answers,
    Perspective,
    PerspectiveOrigin,
    Pool,
    with_formats,
)
from rocketeval.evolve.pool import read_pool, write_pool
from rocketeval.hashing import content_hash
from rocketeval.prices import PricedUsage, priced
from rocketeval.records import Query, Usage
from rocketeval.store.codec import decode, encode
from rocketeval.store.inputs import Inputs
from rocketeval.store.journal import Journal
from rocketeval.text import count_of


@dataclass(frozen=True, slots=True)
class OutOfFoldFigure:
    """An out-of-fold metric with its standard error."""

    value: float
    """Accuracy for pairs, rank correlation for labels."""
    error: float
    """Standard error over queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUse:
    """Usage of the judge, and its cost; None without a price."""

    questions: int | None = None
    """Number of questions; None if every request held exactly one."""
    requests: int
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """Usage of judge and optimizer over all commands."""

    judge: JudgeUse
    optimizer: PricedUsage


@dataclass(frozen=True)
class Round:
    """Record of one finished round."""

    round: int
    split: str
    """Identity of the split; see `CaseSplit.digest`."""
    pool: int
    """Number of perspectives in the pool after the round."""
    people: int
    """Number of these that people added."""
    mistakes: int
    """Number of cases judged wrongly before the round."""
    proposed: Mapping[str, int]
    """New perspectives by origin."""
    dropped: Mapping[str, int]
    """Rejected proposals, by reason."""
    failed: Mapping[str, str]
    """Failed requests to the optimizer, with the reason."""
    analyses: tuple[str, ...]
    """The optimizer's analyses of the mistakes."""
    kept: tuple[str, ...]
    """Ids of the perspectives selected after the round."""
    before: OutOfFoldFigure
    after: OutOfFoldFigure
    judge: JudgeUse
    """Usage in the command that finished the round."""
    optimizer: PricedUsage
    seconds: float


class History:
    """The finished rounds of a run, in order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rounds = Journal(path)
        self._proposed = Journal(path.with_name("proposed.jsonl"))

    def read(self, split: str) -> list[Round]:
        """Return the finished rounds; raise RunMismatch if they saw other queries."""
        rows = [_round(self.path, row) for row in self._rounds.rows()]
        for row in rows:
            if row.split != split:
                raise RunMismatch(
                    f"{self.path.parent} holds rounds that learned from the mistakes on other "
                    "queries; some of those queries may be held out now.",
                    hint="The votes, labels or clusters changed, or `gold`, `asking`, `share` or "
                    "`seed` of `evolve`. Give this run another `name`; existing answers are reused "
                    "from the cache.",
                )
        return rows

    def append(self, done: Round) -> None:
        """Append a finished round and sync it to disk."""
        self._rounds.append(encode(done))

    def announce(self, round: int, news: Iterable[str]) -> None:
        """Record the ids of a round's proposals before they enter the pool file."""
        self._proposed.append({"round": round, "ids": list(news)})

    def proposed(self) -> set[str]:
        """Return the ids of all proposals, including those of unfinished rounds."""
        return {name for row in self._proposed.rows() for name in row["ids"]}


def best_round(rounds: Sequence[Round]) -> int:
    """Return the round with the best validation result, the first if tied; 0 for the seeds."""
    best, found = 0, -1.0
    for done in rounds:
        for number, measured in ((done.round - 1, done.before), (done.round, done.after)):
            if measured.value > found:
                best, found = number, measured.value
    return best


def rounds_without_gain(rounds: Sequence[Round], people: int) -> int:
    """Return the number of rounds since the last gain.

    The count restarts if people added perspectives; `people` is the number they have added now.
    """
    if not rounds or people > rounds[-1].people:
        return 0
    return rounds[-1].round - best_round(rounds)


def _round(path: Path, row: Mapping[str, Any]) -> Round:
    try:
        return decode(Round, row)
    except (KeyError, TypeError, ValueError):
        raise StoreError(
            f"{path} is damaged, or was written by another version.",
            hint="Give this run another `name`, or delete the file to restart evolution.",
        ) from None


Payee = Literal["judge", "optimizer"]
COUNTS = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
QUESTIONS = "questions"


class Spending:
    """Usage of a run's evolution, stored in spent.jsonl."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)

    def judge_used(self, why: str, usage: Usage, questions: int) -> None:
        """Record the judge's usage for a number of questions; a request may hold several."""
        self._add({"who": "judge", "why": why, QUESTIONS: questions}, usage)

    def optimizer_used(self, why: str, usage: Usage) -> None:
        """Record the optimizer's usage."""
        self._add({"who": "optimizer", "why": why}, usage)

    def _add(self, row: Mapping[str, Any], usage: Usage) -> None:
        """Append a line, unless there was no usage."""
        used = {name: getattr(usage, name) for name in COUNTS}
        if any(used.values()) or row.get(QUESTIONS):
            self._journal.append({**row, **used})

    def total(self, who: Payee) -> Usage:
        """Return the total usage of judge or optimizer over all commands."""
        rows = (row for row in self._journal.rows() if row["who"] == who)
        return sum((Usage(*(row[name] for name in COUNTS)) for row in rows), Usage())

    @property
    def questions(self) -> int:
        """Return the number of questions to the judge, over all commands."""
        rows = (row for row in self._journal.rows() if row["who"] == "judge")
        # A line without `questions` had one question per request.
        return sum(row.get(QUESTIONS, row["requests"]) for row in rows)

    @property
    def calls(self) -> int:
        """Return the questions to the judge plus requests to the optimizer, over all commands."""
        return self.questions + self.total("optimizer").requests

    def facts(self, judge: PriceConfig | None, optimizer: PriceConfig | None) -> Spent:
        """Return the usage and cost of both."""
        return Spent(
            JudgeUse(questions=self.questions, **asdict(priced(self.total("judge"), judge))),
            priced(self.total("optimizer"), optimizer),
        )


@dataclass(frozen=True)
class PoolFileState:
    """Contents of the pool file."""

    pool: Pool
    elsewhere: int
    """Number of entries that name a round this run has not done."""


class SharedPool:
    """The pool file; writing it keeps what people added meanwhile."""

    def __init__(self, path: Path, answers: Answers, history: History) -> None:
        self.path = path
        self._answers = answers
        self._history = history

    def read(self, rounds: int) -> PoolFileState:
        """Return the pool after a number of finished rounds, with all that people added.

        Proposals of an unfinished round are left out; its journal restores them.
        """
        proposed = self._history.proposed()
        there: list[Perspective] = []
        elsewhere = 0
        for each in read_pool(self.path):
            if each.round <= rounds:
                there.append(each)
            elif each.id not in proposed or each.origin is PerspectiveOrigin.PERSON:
                there.append(_by_a_person(each))
                elsewhere += 1
        return PoolFileState(Pool(with_formats(there, self._answers)), elsewhere)

    def write(self, pool: Pool, rounds: int) -> tuple[Perspective, ...]:
        """Write a pool, append what people added meanwhile, and return those additions.

        Raises ConfigError and leaves the file unchanged if it cannot be read.
        """
        added: tuple[Perspective, ...] = ()
        if self.path.exists():
            known = {each.id for each in pool}
            grown, _ = pool.add(self.read(rounds).pool)
            added = tuple(_by_a_person(each) for each in grown if each.id not in known)
        write_pool(Pool([*pool, *added]), self.path)
        return added


def _by_a_person(each: Perspective) -> Perspective:
    """Return the perspective as added by a person, without weights from another run."""
    return replace(each, origin=PerspectiveOrigin.PERSON, round=0, importance=None, stability=None)


FEWEST_QUERIES = 4
"""Minimum number of queries on either side, and at least one per fold."""


@dataclass(frozen=True)
class CaseSplit:
    """The cases with reference data, split into seen and held out."""

    seen: tuple[Case, ...]
    """The optimizer may see mistakes on these cases; perspectives are selected on them."""
    held_out: tuple[Case, ...]
    """Cases for the final figures; never used to find or select perspectives."""
    digest: str
    """Identity of the split; perspectives found under another one may have seen held-out cases."""

    @property
    def cases(self) -> tuple[Case, ...]:
        """Return all cases, seen ones first."""
        return (*self.seen, *self.held_out)


def gather_cases(inputs: Inputs, settings: EvolveConfig) -> tuple[Case, ...]:
    """Return the cases with votes or labels; raise BenchmarkError if there are none."""
    if settings.gold == "votes":
        found = oriented(cases_from_votes(inputs.votes()), inputs.queries.values())
    else:
        found = cases_from_labels(inputs.labels())
    if not found:
        other = {"votes": "labels", "labels": "votes"}[settings.gold]
        raise BenchmarkError(
            f"The benchmark has no {settings.gold} to learn from.",
            hint=f"Add {settings.gold}.jsonl to it, or set `evolve.gold: {other}` if it has those.",
        )
    return found


def split_cases(inputs: Inputs, settings: EvolveConfig) -> CaseSplit:
    """Split the cases by group of queries, with the seed; see `query_groups`."""
    cases = _grouped(gather_cases(inputs, settings), inputs.queries)
    texts = {name: query.content_hash.hex() for name, query in inputs.queries.items()}
    # A group is drawn by the smallest hash of its texts, which does not depend on ids or order.
    marks: dict[str, str] = {}
    for case in cases:
        own = texts[case.query_id]
        marks[case.unit] = min(own, marks.get(case.unit, own))
    _refuse_too_few(cases, len(marks), settings)
    drawn = sorted(marks, key=lambda unit: content_hash("evolve split", settings.seed, marks[unit]))
    least = _fewest(settings)
    wanted = round(settings.share * len(drawn))
    shown = set(drawn[: min(len(drawn) - least, max(least, wanted))])
    seen = tuple(case for case in cases if case.unit in shown)
    seen_texts = sorted({texts[case.query_id] for case in seen})
    return CaseSplit(
        seen,
        tuple(case for case in cases if case.unit not in shown),
        content_hash("evolve split", settings.gold, settings.asking, seen_texts).hex(),
    )


def _grouped(cases: Iterable[Case], queries: Mapping[str, Query]) -> tuple[Case, ...]:
    """Return the cases with the group of their query."""
    groups = query_groups(queries.values())
    return tuple(
        replace(case, group=None if first == case.query_id else first)
        for case in cases
        for first in (groups[case.query_id],)
    )


def learned_from(queries: Mapping[str, Query], cases: Iterable[Case]) -> list[str]:
    """Return the sorted content hashes of all queries in a group with reference data."""
    groups = query_groups(queries.values())
    with_gold = {groups[case.query_id] for case in cases if case.gold is not None}
    learned = (query for name, query in queries.items() if groups[name] in with_gold)
    return sorted({query.content_hash.hex() for query in learned})


def _fewest(settings: EvolveConfig) -> int:
    return max(FEWEST_QUERIES, settings.folds)


def _refuse_too_few(cases: Sequence[Case], queries: int, settings: EvolveConfig) -> None:
    fewest = 2 * _fewest(settings)
    if len(cases) >= FEWEST_CASES and queries >= fewest:
        return
    raise BenchmarkError(
        f"There are {settings.gold} on {count_of(len(cases), 'case', 'cases')} of "
        f"{count_of(queries, 'query', 'queries')}; to train and validate an evaluator takes "
        f"at least {FEWEST_CASES} cases and {fewest} queries.",
        hint=f"Collect more {settings.gold}; with fewer queries, lower `evolve.folds`.",
    )


class CallLimit:
    """Checks whether planned work fits into `evolve.max_calls`; without a limit all work does."""

    def __init__(self, settings: EvolveConfig, split: CaseSplit, spending: Spending) -> None:
        self._settings = settings
        self._split = split
        self._spending = spending

    def check_pool(self, pool: Pool, requests: int = 0) -> None:
        """Raise ConfigError if a pool exceeds the limit even without any rounds.

        `requests` counts requests to the optimizer, including those already made. A pool that was
        answered in full before always passes, because its answers are reused.
        """
        limit = self._settings.max_calls
        if limit is None or all(each.importance is not None for each in pool):
            return
        asked = questions(pool, self._split.seen, self._settings.asking) + self._end(pool)
        needed = asked + max(requests, self._spending.total("optimizer").requests)
        if needed > limit:
            raise ConfigError(
                f"`evolve.max_calls` allows {limit:,} questions and requests; the "
                f"{len(pool):,} perspectives of the pool need up to {needed:,} before any round.",
                hint=f"Set `evolve.max_calls` to at least {needed:,}, or more for rounds; or "
                "start with fewer perspectives or fewer queries (`limit`).",
            )

    def over(self, name: str, left: int, pool: Pool) -> str | None:
        """Return why a round exceeds the limit; None if it fits.

        `left` is the number of questions and requests of the round that have no answer yet: those
        already answered are among the calls so far. The questions on held-out cases at the end must
        fit too.
        """
        limit = self._settings.max_calls
        needed, so_far = left + self._end(pool), self._spending.calls
        if limit is None or so_far + needed <= limit:
            return None
        return (
            f"{name} and the held-out cases need up to {needed:,} questions and requests after the "
            f"{so_far:,} so far, which exceeds the {limit:,} that `evolve.max_calls` allows"
        )

    def _end(self, pool: Pool) -> int:
        """Return the maximum number of questions on the held-out cases."""
        return most_questions(pool, self._split.held_out, self._settings)
