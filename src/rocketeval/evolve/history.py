"""What each finished round did: one line of rounds.jsonl, written as soon as the round is over.

What judge and optimizer were asked over all commands: a line for each piece of work.
The pool of a run as a file that people may add to at any time, also while a command runs.
Which cases an evaluator may learn its questions from, and which ones its figures rest on.
`evolve.max_calls`: questions to the judge and requests to the optimizer, over all commands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from rocketeval.config import EvolveConfig, PriceConfig
from rocketeval.errors import BenchmarkError, ConfigError, RunMismatch, StoreError
from rocketeval.evolve.ask import most_questions, questions
from rocketeval.evolve.cases import Case, cases_from_labels, cases_from_votes
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
    """A figure on cases that were left out, one fold after the other."""

    value: float
    """The accuracy of pairs, or the rank correlation of labels."""
    error: float
    """Its standard error over queries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeUse:
    """What the judge used, and the money; None without a price."""

    questions: int | None = None
    """A request may hold several; None of a judge that got one question per request."""
    requests: int
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    currency: str = ""


@dataclass(frozen=True, slots=True)
class Spent:
    """What judge and optimizer used over all commands."""

    judge: JudgeUse
    optimizer: PricedUsage


@dataclass(frozen=True)
class Round:
    """What one round did."""

    round: int
    split: str
    """Who was seen; see `Split.digest`."""
    pool: int
    """Perspectives after it, all that were ever there."""
    people: int
    """Of these, what people added."""
    mistakes: int
    """Cases that were judged wrongly before it."""
    proposed: Mapping[str, int]
    """New perspectives by origin."""
    dropped: Mapping[str, int]
    """Proposals that were not taken, by the reason."""
    failed: Mapping[str, str]
    """Requests to the optimizer that brought nothing, and why."""
    analyses: tuple[str, ...]
    """What the optimizer made of the mistakes."""
    kept: tuple[str, ...]
    """Ids of the perspectives worth keeping after it."""
    before: OutOfFoldFigure
    after: OutOfFoldFigure
    judge: JudgeUse
    """In the command that finished it."""
    optimizer: PricedUsage
    seconds: float


class History:
    """The rounds of a run, in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rounds = Journal(path)
        self._proposed = Journal(path.with_name("proposed.jsonl"))

    def read(self, split: str) -> list[Round]:
        """Return the finished rounds; RunMismatch if they learned from other queries."""
        rows = [_round(self.path, row) for row in self._rounds.rows()]
        for row in rows:
            if row.split != split:
                raise RunMismatch(
                    f"{self.path.parent} holds rounds that looked at the mistakes of other "
                    "queries: some of those could be held out now.",
                    hint="What changed is the gold, or `gold`, `asking`, `share` or `seed` of "
                    "`evolve`. Give this run another `name`; answers that were paid for are taken "
                    "from the cache.",
                )
        return rows

    def append(self, done: Round) -> None:
        """Write down a finished round, durably."""
        self._rounds.append(encode(done))

    def announce(self, round: int, news: Iterable[str]) -> None:
        """Write down the ids of what a round proposed, before any of it is in the pool's file."""
        self._proposed.append({"round": round, "ids": list(news)})

    def proposed(self) -> set[str]:
        """Return the ids of all that rounds proposed, also those that were not finished."""
        return {name for row in self._proposed.rows() for name in row["ids"]}


def best_round(rounds: Sequence[Round]) -> int:
    """Return the round after which validation was best, the first of equals; 0 for the seeds."""
    best, found = 0, -1.0
    for done in rounds:
        for number, measured in ((done.round - 1, done.before), (done.round, done.after)):
            if measured.value > found:
                best, found = number, measured.value
    return best


def rounds_without_gain(rounds: Sequence[Round], people: int) -> int:
    """Return how many of the last rounds brought nothing.

    What people added since the last one is a new beginning: `people` is how many they are now.
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
            hint="Give this run another `name`, or delete the file to begin evolution anew.",
        ) from None


Payee = Literal["judge", "optimizer"]
COUNTS = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
QUESTIONS = "questions"


class Spending:
    """The bill of a run's evolution."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path)

    def judge_used(self, why: str, usage: Usage, questions: int) -> None:
        """Write down what a judge used for so many questions: a request may hold several."""
        self._add({"who": "judge", "why": why, QUESTIONS: questions}, usage)

    def optimizer_used(self, why: str, usage: Usage) -> None:
        """Write down what the optimizer used for a piece of work."""
        self._add({"who": "optimizer", "why": why}, usage)

    def _add(self, row: Mapping[str, Any], usage: Usage) -> None:
        """Add a line; none for work that used nothing."""
        used = {name: getattr(usage, name) for name in COUNTS}
        if any(used.values()) or row.get(QUESTIONS):
            self._journal.append({**row, **used})

    def total(self, who: Payee) -> Usage:
        """Return what one of them used over all commands."""
        rows = (row for row in self._journal.rows() if row["who"] == who)
        return sum((Usage(*(row[name] for name in COUNTS)) for row in rows), Usage())

    @property
    def questions(self) -> int:
        """What the judge answered, over all commands."""
        rows = (row for row in self._journal.rows() if row["who"] == "judge")
        # A line without them is of a judge that got one question a request.
        return sum(row.get(QUESTIONS, row["requests"]) for row in rows)

    @property
    def calls(self) -> int:
        """Questions to the judge and requests to the optimizer, over all commands."""
        return self.questions + self.total("optimizer").requests

    def facts(self, judge: PriceConfig | None, optimizer: PriceConfig | None) -> Spent:
        """Return what both used, with the money."""
        return Spent(
            JudgeUse(questions=self.questions, **asdict(priced(self.total("judge"), judge))),
            priced(self.total("optimizer"), optimizer),
        )


@dataclass(frozen=True)
class PoolFileState:
    """What stands in the file."""

    pool: Pool
    elsewhere: int
    """Entries of a round that this run has not done: somebody brought them from elsewhere."""


class SharedPool:
    """Reads and writes the file without losing what people put into it."""

    def __init__(self, path: Path, answers: Answers, history: History) -> None:
        self.path = path
        self._answers = answers
        self._history = history

    def read(self, rounds: int) -> PoolFileState:
        """Return the pool after so many finished rounds, with all that people added.

        What a round of this run proposed that was not finished is left out: its journal brings
        it again.
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
        """Write a pool and behind it what people added meanwhile, which is returned.

        ConfigError, and the file stays as it is, if it cannot be read.
        """
        added: tuple[Perspective, ...] = ()
        if self.path.exists():
            known = {each.id for each in pool}
            grown, _ = pool.add(self.read(rounds).pool)
            added = tuple(_by_a_person(each) for each in grown if each.id not in known)
        write_pool(Pool([*pool, *added]), self.path)
        return added


def _by_a_person(each: Perspective) -> Perspective:
    """Return it as new: what it was worth elsewhere does not hold here."""
    return replace(each, origin=PerspectiveOrigin.PERSON, round=0, importance=None, stability=None)


FEWEST_CASES = 20
"""With fewer, no figure would say anything."""
FEWEST_QUERIES = 4
"""On either side, and one for each fold: with one fold left out, there are two to learn from."""


@dataclass(frozen=True)
class CaseSplit:
    """The cases with gold, by what may be done with them."""

    seen: tuple[Case, ...]
    """The optimizer may see how these were judged wrongly; perspectives are selected on them."""
    held_out: tuple[Case, ...]
    """Nobody looked at these while perspectives were found: the figures rest on them."""
    digest: str
    """What fixes who was seen: another digest, and perspectives may know what is held out now."""

    @property
    def cases(self) -> tuple[Case, ...]:
        """All of them, those seen first."""
        return (*self.seen, *self.held_out)


def gather_cases(inputs: Inputs, settings: EvolveConfig) -> tuple[Case, ...]:
    """Return the cases that people decided; BenchmarkError when there are none."""
    if settings.gold == "votes":
        found = cases_from_votes(inputs.votes())
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
    """Return who is seen and who is held out: whole queries, equal ones together, by the seed."""
    content = {name: query.content_hash.hex() for name, query in inputs.queries.items()}
    cases = _joined(gather_cases(inputs, settings), content)
    distinct = {content[case.query_id] for case in cases}
    _refuse_too_few(cases, len(distinct), settings)
    drawn = sorted(distinct, key=lambda one: content_hash("evolve split", settings.seed, one))
    least = _fewest(settings)
    wanted = round(settings.share * len(drawn))
    shown = set(drawn[: min(len(drawn) - least, max(least, wanted))])
    return CaseSplit(
        tuple(case for case in cases if content[case.query_id] in shown),
        tuple(case for case in cases if content[case.query_id] not in shown),
        content_hash("evolve split", settings.gold, settings.asking, sorted(shown)).hex(),
    )


def _joined(cases: Iterable[Case], content: Mapping[str, str]) -> tuple[Case, ...]:
    """Return the cases, those of a query that says the same as an earlier one joined to it."""
    first: dict[str, str] = {}
    for name, text in content.items():
        first.setdefault(text, name)
    return tuple(
        replace(case, same_as=None if known == case.query_id else known)
        for case in cases
        for known in (first[content[case.query_id]],)
    )


def learned_from(queries: Mapping[str, Query], cases: Iterable[Case]) -> list[str]:
    """Return the content hashes of all queries with gold among the cases, sorted."""
    with_gold = {case.query_id for case in cases if case.gold is not None}
    return sorted({queries[name].content_hash.hex() for name in with_gold})


def _fewest(settings: EvolveConfig) -> int:
    return max(FEWEST_QUERIES, settings.folds)


def _refuse_too_few(cases: Sequence[Case], queries: int, settings: EvolveConfig) -> None:
    fewest = 2 * _fewest(settings)
    if len(cases) >= FEWEST_CASES and queries >= fewest:
        return
    raise BenchmarkError(
        f"There are {settings.gold} on {count_of(len(cases), 'case', 'cases')} of "
        f"{count_of(queries, 'query', 'queries')}; to learn an evaluator and to check it takes "
        f"{FEWEST_CASES} cases and {fewest} queries at least.",
        hint=f"Collect more {settings.gold}; with fewer queries, lower `evolve.folds`.",
    )


class CallLimit:
    """Compares what comes next with what the limit leaves; without a limit all may come."""

    def __init__(self, settings: EvolveConfig, split: CaseSplit, spending: Spending) -> None:
        self._settings = settings
        self._split = split
        self._spending = spending

    def check_pool(self, pool: Pool, requests: int = 0) -> None:
        """Raise ConfigError if a pool takes more than the limit, rounds aside.

        `requests` to the optimizer belong to it, those made already included. A pool that was
        asked about in full before passes: nothing is paid for it again.
        """
        limit = self._settings.max_calls
        if limit is None or all(each.importance is not None for each in pool):
            return
        asked = questions(pool, self._split.seen, self._settings.asking) + self._end(pool)
        needed = asked + max(requests, self._spending.total("optimizer").requests)
        if needed > limit:
            raise ConfigError(
                f"`evolve.max_calls` allows {limit:,} questions and requests; the "
                f"{len(pool):,} perspectives of the pool alone take up to {needed:,}, without any "
                "round.",
                hint=f"Set `evolve.max_calls` to {needed:,} at least, and to more for rounds; or "
                "begin with fewer perspectives, or fewer queries (`limit`).",
            )

    def over(
        self, name: str, news: Collection[Perspective], pool: Pool, requests: int = 0
    ) -> str | None:
        """Return why a round with these news does not fit, in words; None if it does.

        What the end can take has to fit beside it.
        """
        limit = self._settings.max_calls
        asked = questions(news, self._split.seen, self._settings.asking) + self._end(pool)
        needed, so_far = asked + requests, self._spending.calls
        if limit is None or so_far + needed <= limit:
            return None
        return (
            f"{name} and the end would take up to {needed:,} questions and requests after the "
            f"{so_far:,} so far, which is more than the {limit:,} that `evolve.max_calls` allows"
        )

    def _end(self, pool: Pool) -> int:
        """Return the most questions that the held-out cases can take."""
        return most_questions(pool, self._split.held_out, self._settings)
