"""The load stage: one benchmark, checked, in records.

load: snapshot the benchmark into the run.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property

from rocketeval.benchmarks.base import Benchmark, LeavesOut, Located, open_benchmark
from rocketeval.config import BenchmarkConfig, RunConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote
from rocketeval.registry import nearest
from rocketeval.store.files import check_folder
from rocketeval.store.manifest import LoadFacts
from rocketeval.store.run import RunStore
from rocketeval.text import did_you_mean, near_name

MOST_NAMED = 3
"""Records that a note names; all are counted."""
_log = logging.getLogger("rocketeval.load")


@dataclass
class Oddity:
    """Records that are odd, but not refused: how many, and the first few by name."""

    of: int = 0
    """Records that were looked at."""
    count: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        """Count one, and keep its name if it is among the first."""
        self.count += 1
        if len(self.named) < MOST_NAMED:
            self.named.append(name)

    def told(self, words: str) -> Iterator[str]:
        """Yield a sentence if there are any; `words` holds {count}, {of} and {named}."""
        if self.count:
            more = f" and {self.count - MOST_NAMED:,} more" if self.count > MOST_NAMED else ""
            named = ", ".join(self.named) + more
            yield words.format(count=f"{self.count:,}", of=f"{self.of:,}", named=named)


@dataclass
class LoadedBenchmark:
    """A benchmark with the config's choice of queries and candidates applied."""

    benchmark: Benchmark
    config: BenchmarkConfig
    queries: list[Query]
    skipped: Counter[str] = field(default_factory=Counter)
    """What was left out because the config did not ask for it."""
    scale: tuple[float, float] = (1.0, 10.0)
    """The scale that labels should be on."""
    empty: Oddity = field(default_factory=Oddity)
    off_scale: Oddity = field(default_factory=Oddity)
    foreign_labels: Oddity = field(default_factory=Oddity)
    foreign_votes: Oddity = field(default_factory=Oddity)

    def responses(self) -> Iterator[Response]:
        """Yield the chosen responses; BenchmarkError for a duplicate or an unknown query."""
        # Numbers, not names: millions of cells are remembered here.
        seen, candidates = self._cells, self._columns
        seen.clear()
        candidates.clear()
        passed_over: set[str] = set()
        for response in self.benchmark.responses():
            if not self._is_chosen("responses", response, response.candidate):
                passed_over.add(response.candidate)
                continue
            column = candidates.setdefault(response.candidate, len(candidates))
            cell = column * len(self.queries) + self._places[response.query_id]
            if cell in seen:
                raise BenchmarkError(
                    f"{response.candidate!r} has two responses to query {response.query_id!r}"
                    f"{_second(self.benchmark)}.",
                    hint="Keep one, or give the second another candidate name.",
                )
            seen.add(cell)
            if not response.text.strip():
                self.empty.add(f"{response.candidate} on {response.query_id}")
            yield response
        self._check_candidates(set(candidates), passed_over)

    def labels(self) -> Iterator[Label]:
        """Yield the labels of chosen queries and candidates."""
        for label in self.benchmark.labels():
            if self._is_chosen("labels", label, label.candidate):
                self._look_at_label(label)
                yield label
        if isinstance(self.benchmark, LeavesOut):
            self.skipped.update(self.benchmark.left_out())

    def votes(self) -> Iterator[Vote]:
        """Yield the votes on chosen queries between chosen candidates."""
        for vote in self.benchmark.votes():
            if vote.candidate_a == vote.candidate_b:
                raise BenchmarkError(
                    f"{self._at}{'a' if self._at else 'A'} vote on query {vote.query_id!r} sets "
                    f"{vote.candidate_a!r} "
                    "against itself.",
                    hint="Name two candidates, or leave the vote out.",
                )
            if self._is_chosen("votes", vote, vote.candidate_a, vote.candidate_b):
                self.foreign_votes.of += 1
                for name in (vote.candidate_a, vote.candidate_b):
                    if self._is_foreign(vote.query_id, name):
                        self.foreign_votes.add(self._foreign(vote.query_id, name))
                        break
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

    def notes(self) -> Iterator[str]:
        """Yield a sentence about everything odd; complete once everything was read."""
        low, high = self.scale
        blank = Oddity()
        for query in self.queries:
            if not query.text.strip():
                blank.add(repr(query.id))
        yield from blank.told(
            "queries without text: {count} ({named}). They are judged as they are: write their "
            "text, or leave them out."
        )
        yield from self.off_scale.told(
            f"labels outside the scale {low:g} to {high:g}: {{count}} of {{of}} ({{named}}). They "
            "are used as they are: correct them, or set `scorer.scale` to the scale of your labels."
        )
        for what, odd in (("labels", self.foreign_labels), ("votes", self.foreign_votes)):
            yield from odd.told(
                f"{what} on responses that do not exist: {{count}} of {{of}} ({{named}}). They are "
                f"not used: check the names in the {what}, and that the responses are there."
            )

    def absent(self) -> Iterator[str]:
        """Yield a sentence about candidates that did not answer every query."""
        answered = Counter(cell // len(self.queries) for cell in self._cells)
        lacking = Oddity()
        for candidate, column in self._columns.items():
            missing = len(self.queries) - answered[column]
            if missing:
                lacking.add(f"{candidate} lacks {missing:,} of {len(self.queries):,}")
        yield from lacking.told("candidates without a response to every query: {count} ({named})")

    def _look_at_label(self, label: Label) -> None:
        low, high = self.scale
        self.off_scale.of += 1
        self.foreign_labels.of += 1
        if not low <= label.value <= high:
            self.off_scale.add(
                f"{self._at}{label.value:g} for {label.candidate!r} on {label.query_id!r}"
            )
        if self._is_foreign(label.query_id, label.candidate):
            self.foreign_labels.add(self._foreign(label.query_id, label.candidate))

    def _is_foreign(self, query_id: str, candidate: str) -> bool:
        """Whether there is no such response, among those that were read already."""
        column = self._columns.get(candidate)
        if column is None:
            return bool(self._columns)
        return column * len(self.queries) + self._places[query_id] not in self._cells

    def _foreign(self, query_id: str, candidate: str) -> str:
        known = candidate in self._columns
        meant = None if known else near_name(candidate, list(self._columns))
        guess = f", did you mean {meant!r}?" if meant else ""
        return f"{self._at}{candidate!r} on {query_id!r}{guess}"

    @property
    def _at(self) -> str:
        """Where the last record was read, to begin a message with."""
        where = self.benchmark.where if isinstance(self.benchmark, Located) else ""
        return f"{where}: " if where else ""

    @cached_property
    def _cells(self) -> set[int]:
        return set()

    @cached_property
    def _columns(self) -> dict[str, int]:
        return {}

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
                f"{self._at}{'the' if self._at else 'The'} {kind} name a query "
                f"{record.query_id!r} (candidate "
                f"{candidates[0]!r}), which is not in the benchmark.",
                hint=f"Check the ids in the {kind} and the queries. "
                + did_you_mean(record.query_id, list(self._places)),
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


def _second(benchmark: Benchmark) -> str:
    """Return where the second of two records is, which was read last."""
    where = benchmark.where if isinstance(benchmark, Located) else ""
    return f" (the second: {where})" if where else ""


def load(benchmark: Benchmark, config: BenchmarkConfig) -> LoadedBenchmark:
    """Return the benchmark's chosen queries, and its responses and gold to be streamed."""
    queries: dict[str, Query] = {}
    for query in benchmark.queries():
        if query.id in queries:
            raise BenchmarkError(
                f"Two queries have the id {query.id!r}{_second(benchmark)}.",
                hint="Give each query an id of its own.",
            )
        if config.limit is not None and len(queries) >= config.limit:
            break
        queries[query.id] = query
    if not queries:
        raise BenchmarkError(
            f"There is no query in the benchmark {config.path}: its queries are empty.",
            hint='Write one per line, such as {"id": "q1", "text": "..."} in queries.jsonl.',
        )
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
    if config.cache is not None:
        # An author or a judge would be paid before it turns out that nothing can be kept.
        check_folder(config.cache)
    loaded = load(open_benchmark(config.benchmark), config.benchmark)
    loaded.scale = config.scorer.scale
    before = store.inputs.summary() if store.inputs.exist else None
    summary = store.inputs.save(
        loaded.queries, loaded.responses(), loaded.labels(), loaded.votes(), loaded.ratings()
    )
    if summary != before:
        store.drop_from("score")
    notes = tuple(loaded.notes())
    _log_all(notes)
    _log_all(loaded.absent())
    _log_all(loaded.empty.told("empty responses: {count} ({named}), judged as they are"))
    return LoadFacts(**asdict(summary), left_out_by_config=dict(loaded.skipped), notes=notes)


def _log_all(lines: Iterable[str]) -> None:
    for line in lines:
        _log.info("%s", line)
