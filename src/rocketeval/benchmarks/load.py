"""The load stage: one benchmark, checked, in records.

load: snapshot the benchmark into the run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property

from rocketeval.benchmarks.base import Benchmark, LeavesOut, open_benchmark
from rocketeval.config import BenchmarkConfig, RunConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote
from rocketeval.registry import nearest
from rocketeval.store.manifest import LoadFacts
from rocketeval.store.run import RunStore


@dataclass
class LoadedBenchmark:
    """A benchmark with the config's choice of queries and candidates applied."""

    benchmark: Benchmark
    config: BenchmarkConfig
    queries: list[Query]
    skipped: Counter[str] = field(default_factory=Counter)
    """What was left out because the config did not ask for it."""

    def responses(self) -> Iterator[Response]:
        """Yield the chosen responses; BenchmarkError for a duplicate or an unknown query."""
        # Numbers, not names: millions of cells are remembered here.
        seen: set[int] = set()
        candidates: dict[str, int] = {}
        passed_over: set[str] = set()
        for response in self.benchmark.responses():
            if not self._is_chosen("responses", response, response.candidate):
                passed_over.add(response.candidate)
                continue
            column = candidates.setdefault(response.candidate, len(candidates))
            cell = column * len(self.queries) + self._places[response.query_id]
            if cell in seen:
                raise BenchmarkError(
                    f"{response.candidate!r} has two responses to query {response.query_id!r}.",
                    hint="Keep one, or give the second another candidate name.",
                )
            seen.add(cell)
            yield response
        self._check_candidates(set(candidates), passed_over)

    def labels(self) -> Iterator[Label]:
        """Yield the labels of chosen queries and candidates."""
        for label in self.benchmark.labels():
            if self._is_chosen("labels", label, label.candidate):
                yield label
        if isinstance(self.benchmark, LeavesOut):
            self.skipped.update(self.benchmark.left_out())

    def votes(self) -> Iterator[Vote]:
        """Yield the votes on chosen queries between chosen candidates."""
        for vote in self.benchmark.votes():
            if vote.candidate_a == vote.candidate_b:
                raise BenchmarkError(
                    f"A vote on query {vote.query_id!r} sets {vote.candidate_a!r} against itself."
                )
            if self._is_chosen("votes", vote, vote.candidate_a, vote.candidate_b):
                yield vote

    def ratings(self) -> Iterator[Rating]:
        """Yield the ratings of chosen candidates."""
        rated: set[str] = set()
        for rating in self.benchmark.ratings():
            if rating.candidate in rated:
                raise BenchmarkError(f"The candidate {rating.candidate!r} has two ratings.")
            rated.add(rating.candidate)
            if self._chosen is None or rating.candidate in self._chosen:
                yield rating
            else:
                self.skipped["ratings"] += 1

    @cached_property
    def _places(self) -> dict[str, int]:
        return {query.id: place for place, query in enumerate(self.queries)}

    @cached_property
    def _chosen(self) -> set[str] | None:
        return None if self.config.candidates is None else set(self.config.candidates)

    def _is_chosen(self, kind: str, record: Response | Label | Vote, *candidates: str) -> bool:
        """Whether the config asks for `record`; BenchmarkError if its query exists nowhere."""
        known = record.query_id in self._places
        if not known and self.config.limit is None:
            raise BenchmarkError(
                f"The {kind} name a query {record.query_id!r} (candidate {candidates[0]!r}), "
                "which is not in the benchmark.",
                hint=f"Check the ids in the {kind} and the queries.",
            )
        if known and (self._chosen is None or self._chosen.issuperset(candidates)):
            return True
        self.skipped[kind] += 1
        return False

    def _check_candidates(self, found: set[str], passed_over: set[str]) -> None:
        absent = sorted((self._chosen or set()) - found)
        if absent:
            raise BenchmarkError(
                f"The candidate {absent[0]!r} has no response to any chosen query.",
                hint="Check `benchmark.candidates`. "
                + nearest(absent[0], sorted(found | passed_over)),
            )
        if not found:
            raise BenchmarkError("There is not one response to judge.")


def load(benchmark: Benchmark, config: BenchmarkConfig) -> LoadedBenchmark:
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
    return LoadedBenchmark(benchmark, config, list(queries.values()))


def imported_checklists(benchmark: Benchmark) -> dict[str, Checklist]:
    """Return the checklists that come with the benchmark, by query id."""
    found: dict[str, Checklist] = {}
    for checklist in benchmark.checklists():
        if checklist.query_id in found:
            raise BenchmarkError(
                f"Query {checklist.query_id!r} has two checklists.", hint="Keep one of them."
            )
        found[checklist.query_id] = checklist
    return found


def load_inputs(store: RunStore, config: RunConfig) -> LoadFacts:
    """Write the run's inputs; return counts and content hashes."""
    loaded = load(open_benchmark(config.benchmark), config.benchmark)
    before = store.inputs.summary() if store.inputs.exist else None
    summary = store.inputs.save(
        loaded.queries, loaded.responses(), loaded.labels(), loaded.votes(), loaded.ratings()
    )
    if summary != before:
        store.drop_from("score")
    return LoadFacts(**asdict(summary), left_out_by_config=dict(loaded.skipped))
