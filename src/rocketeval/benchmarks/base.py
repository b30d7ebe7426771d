"""The benchmark seam: the protocol of input formats, and a conformance check."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol, get_args, runtime_checkable

from rocketeval.config import BenchmarkConfig
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote, Winner
from rocketeval.registry import Registry

__all__ = ["Benchmark", "LeavesOut", "Located", "open_benchmark"]


class Benchmark(Protocol):
    """Reads one benchmark. Each method may be called once or many times, in any order.

    Responses are streamed and may come in any order; everything else fits in memory.
    """

    @classmethod
    def create(cls, config: BenchmarkConfig) -> Benchmark:
        """Return a reader for `config`; raise BenchmarkError if its files are missing."""
        ...

    def queries(self) -> Iterable[Query]:
        """Yield the queries in the benchmark's own order."""
        ...

    def responses(self) -> Iterable[Response]:
        """Yield every candidate's responses."""
        ...

    def checklists(self) -> Iterable[Checklist]:
        """Yield the benchmark's own checklists."""
        ...

    def labels(self) -> Iterable[Label]:
        """Yield human labels."""
        ...

    def votes(self) -> Iterable[Vote]:
        """Yield human votes."""
        ...

    def ratings(self) -> Iterable[Rating]:
        """Yield reference ratings of candidates."""
        ...


@runtime_checkable
class LeavesOut(Protocol):
    """Optional protocol: a benchmark that reports which data it ignores."""

    def left_out(self) -> Mapping[str, int]:
        """Return the number of ignored records, by description."""
        ...


@runtime_checkable
class ReportsFields(Protocol):
    """Optional protocol: a benchmark that reports fields which look misspelled."""

    def odd_fields(self) -> Iterable[str]:
        """Yield a sentence about each such field, once everything was read."""
        ...


@runtime_checkable
class Located(Protocol):
    """Optional protocol: a benchmark that reports where it read its last record, for messages."""

    where: str
    """`file:line`; empty before the first record."""


BENCHMARKS: Registry[Benchmark] = Registry(
    "benchmark",
    {
        "jsonl": "rocketeval.benchmarks.jsonl:JsonlBenchmark",
        "rocketeval": "rocketeval.benchmarks.rocketeval:RocketEvalBenchmark",
        "mt_bench": "rocketeval.benchmarks.mt_bench:MTBench",
    },
)


def open_benchmark(config: BenchmarkConfig) -> Benchmark:
    """Return the benchmark that `config` names."""
    return BENCHMARKS.get(config.kind).create(config)


def check_benchmark(benchmark: Benchmark) -> None:
    """Raise AssertionError unless `benchmark` conforms to the benchmark seam."""
    responses = _twice(benchmark.responses, Response)
    queries = _twice(benchmark.queries, Query)
    _require(bool(queries), "there is no query")
    _require(bool(responses), "there is no response")
    _distinct("query id", [query.id for query in queries])
    known = {query.id for query in queries}
    for query in queries:
        _named("query id", query.id)
        _require(isinstance(query.text, str), f"the text of query {query.id!r} is not a string")
        _require(len(query.content_hash) == 16, f"query {query.id!r} cannot be hashed")
    _check_responses(responses, known)
    _check_checklists(_twice(benchmark.checklists, Checklist), known)
    _check_gold(benchmark, known)


def _check_responses(responses: Sequence[Response], known: set[str]) -> None:
    _distinct("response", [(response.query_id, response.candidate) for response in responses])
    for response in responses:
        what = f"the response of {response.candidate!r} to {response.query_id!r}"
        _known(what, response.query_id, known)
        _named("candidate", response.candidate)
        _require(isinstance(response.text, str), f"{what} is not a string")
        _require(len(response.content_hash) == 16, f"{what} cannot be hashed")


def _check_checklists(checklists: Sequence[Checklist], known: set[str]) -> None:
    _distinct("query with a checklist", [checklist.query_id for checklist in checklists])
    for checklist in checklists:
        what = f"the checklist of {checklist.query_id!r}"
        _known(what, checklist.query_id, known)
        _require(isinstance(checklist.items, tuple), f"{what} is not a tuple of items")
        _require(all(isinstance(item, str) for item in checklist.items), f"{what} is not all text")


def _check_gold(benchmark: Benchmark, known: set[str]) -> None:
    for label in _twice(benchmark.labels, Label):
        what = f"the label of {label.candidate!r} on {label.query_id!r}"
        _known(what, label.query_id, known)
        _named("candidate", label.candidate)
        _require(math.isfinite(label.value), f"{what} is {label.value}")
    for vote in _twice(benchmark.votes, Vote):
        what = f"a vote on {vote.query_id!r}"
        _known(what, vote.query_id, known)
        _require(vote.winner in get_args(Winner), f"{what} has the winner {vote.winner!r}")
        _require(vote.candidate_a != vote.candidate_b, f"{what} compares a candidate with itself")
    ratings = _twice(benchmark.ratings, Rating)
    _distinct("rated candidate", [rating.candidate for rating in ratings])
    for rating in ratings:
        _require(math.isfinite(rating.value), f"{rating.candidate!r} is rated {rating.value}")


def _twice(read: Callable[[], Iterable[Any]], kind: type[Any]) -> list[Any]:
    name = getattr(read, "__name__", "it")
    first = list(read())
    _require(first == list(read()), f"`{name}` yields something else the second time")
    wrong = [record for record in first if not isinstance(record, kind)]
    _require(not wrong, f"`{name}` yields {wrong[:1]}, which is not a {kind.__name__}")
    return first


def _known(what: str, query_id: str, known: set[str]) -> None:
    _require(query_id in known, f"{what} belongs to no query")


def _named(what: str, name: object) -> None:
    _require(isinstance(name, str) and bool(name.strip()), f"a {what} is {name!r}")


def _distinct(what: str, names: Sequence[object]) -> None:
    seen: set[object] = set()
    for name in names:
        _require(name not in seen, f"the {what} {name!r} occurs twice")
        seen.add(name)


def _require(kept: bool, broken: str) -> None:
    if not kept:
        raise AssertionError(broken)
