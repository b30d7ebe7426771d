"""The load stage: one benchmark, checked, in records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from rocketeval.benchmarks.base import Benchmark
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Label, Query, Rating, Response, Vote


@dataclass
class Loaded:
    """A benchmark with the config's choice of queries and candidates applied."""

    benchmark: Benchmark
    config: BenchmarkConfig
    queries: list[Query]
    skipped: Counter[str] = field(default_factory=Counter)
    """What was left out because the config did not ask for it."""

    def responses(self) -> Iterator[Response]:
        """Yield the chosen responses; BenchmarkError for a duplicate or an unknown query."""
        chosen = set(self.config.candidates or ())
        found: Counter[str] = Counter()
        seen: set[tuple[str, str]] = set()
        for response in self.benchmark.responses():
            if chosen and response.candidate not in chosen:
                self.skipped["responses"] += 1
                continue
            if response.query_id not in self._query_ids:
                self._check_beyond_limit(response)
                continue
            cell = (response.query_id, response.candidate)
            if cell in seen:
                raise BenchmarkError(
                    f"{response.candidate!r} has two responses to query {response.query_id!r}.",
                    hint="Keep one, or give the second another candidate name.",
                )
            seen.add(cell)
            found[response.candidate] += 1
            yield response
        self._check_candidates(chosen, found)

    def labels(self) -> Iterator[Label]:
        """Yield the labels of chosen queries and candidates."""
        return (label for label in self.benchmark.labels() if self._wanted(label, label.candidate))

    def votes(self) -> Iterator[Vote]:
        """Yield the votes on chosen queries between chosen candidates."""
        for vote in self.benchmark.votes():
            if self._wanted(vote, vote.candidate_a, vote.candidate_b):
                yield vote

    def ratings(self) -> Iterator[Rating]:
        """Yield the ratings of chosen candidates."""
        chosen = self.config.candidates
        return (r for r in self.benchmark.ratings() if chosen is None or r.candidate in chosen)

    @cached_property
    def _query_ids(self) -> set[str]:
        return {query.id for query in self.queries}

    def _wanted(self, gold: Label | Vote, *candidates: str) -> bool:
        chosen = self.config.candidates
        return gold.query_id in self._query_ids and (
            chosen is None or all(candidate in chosen for candidate in candidates)
        )

    def _check_beyond_limit(self, response: Response) -> None:
        if self.config.limit is None:
            raise BenchmarkError(
                f"{response.candidate!r} answers query {response.query_id!r}, which is not in the "
                "benchmark.",
                hint="Check the ids in the responses and the queries.",
            )
        self.skipped["responses"] += 1

    def _check_candidates(self, chosen: set[str], found: Counter[str]) -> None:
        absent = sorted(chosen - found.keys())
        if absent:
            raise BenchmarkError(
                f"The candidate {absent[0]!r} has no response to any chosen query.",
                hint="Check `benchmark.candidates`.",
            )
        if not found:
            raise BenchmarkError("There is not one response to judge.")


def load(benchmark: Benchmark, config: BenchmarkConfig) -> Loaded:
    """Return the benchmark's chosen queries, and its responses and gold to be streamed."""
    queries: dict[str, Query] = {}
    for query in benchmark.queries():
        if query.id in queries:
            raise BenchmarkError(f"Two queries have the id {query.id!r}.")
        if config.limit is not None and len(queries) >= config.limit:
            break
        queries[query.id] = query
    if not queries:
        raise BenchmarkError("There is not one query in the benchmark.")
    return Loaded(benchmark, config, list(queries.values()))
