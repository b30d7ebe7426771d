"""Which cases an evaluator may learn its questions from, and which ones its figures rest on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from rocketeval.config import EvolveConfig
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.cases import Case, cases_from_labels, cases_from_votes
from rocketeval.hashing import content_hash
from rocketeval.names import counted
from rocketeval.records import Query
from rocketeval.store.inputs import Inputs

FEWEST_CASES = 20
"""With fewer, no figure would say anything."""
FEWEST_QUERIES = 4
"""On either side, and one for each fold: with one fold left out, there are two to learn from."""


@dataclass(frozen=True)
class Split:
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


def split_cases(inputs: Inputs, settings: EvolveConfig) -> Split:
    """Return who is seen and who is held out: whole queries, equal ones together, by the seed."""
    content = {name: query.content_hash.hex() for name, query in inputs.queries.items()}
    cases = _joined(gather_cases(inputs, settings), content)
    distinct = {content[case.query_id] for case in cases}
    _refuse_too_few(cases, len(distinct), settings)
    drawn = sorted(distinct, key=lambda one: content_hash("evolve split", settings.seed, one))
    least = _fewest(settings)
    wanted = round(settings.share * len(drawn))
    shown = set(drawn[: min(len(drawn) - least, max(least, wanted))])
    return Split(
        tuple(case for case in cases if content[case.query_id] in shown),
        tuple(case for case in cases if content[case.query_id] not in shown),
        content_hash("evolve split", settings.gold, settings.asking, sorted(shown)).hex(),
    )


def _joined(cases: Iterable[Case], content: Mapping[str, str]) -> tuple[Case, ...]:
    """Return the cases, those of a query that says the same as an earlier one joined to it."""
    first: dict[str, str] = {}
    for name, said in content.items():
        first.setdefault(said, name)
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
        f"There are {settings.gold} on {counted(len(cases), 'case', 'cases')} of "
        f"{counted(queries, 'query', 'queries')}; to learn an evaluator and to check it takes "
        f"{FEWEST_CASES} cases and {fewest} queries at least.",
        hint=f"Collect more {settings.gold}; with fewer queries, lower `evolve.folds`.",
    )
