"""The load stage: check a benchmark and copy it into the run."""

from __future__ import annotations

import logging
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from rocketeval.benchmarks.base import (
    Benchmark,
    LeavesOut,
    Located,
    ReportsFields,
    open_benchmark,
)
from rocketeval.benchmarks.cells import ResponseCells
from rocketeval.benchmarks.collected import (
    CollectedContent,
    CollectedLabels,
    absent_file,
)
from rocketeval.config import BenchmarkConfig, RunConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote
from rocketeval.registry import nearest
from rocketeval.settings import is_encodable
from rocketeval.store.files import check_folder
from rocketeval.store.manifest import LoadFacts
from rocketeval.store.run import RunStore
from rocketeval.text import count_of, did_you_mean, join_words, near_name

ANYBODY = "human"
"""Voter or labeler of records that name none; several people may be behind it."""
MOST_NAMED = 3
"""Number of records to name in a warning; all are counted."""
T = TypeVar("T")
_log = logging.getLogger("rocketeval.load")


@dataclass
class SuspiciousRecords:
    """A count of suspicious but accepted records, with the first few names."""

    of: int = 0
    """Number of records checked."""
    count: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        """Count a record, and keep its name if it is among the first."""
        self.count += 1
        if len(self.named) < MOST_NAMED:
            self.named.append(name)

    def sentence(self, words: str) -> Iterator[str]:
        """Yield a sentence if the count is positive; `words` contains {count}, {of} and {named}."""
        if self.count:
            more = f" and {self.count - MOST_NAMED:,} more" if self.count > MOST_NAMED else ""
            named = ", ".join(self.named) + more
            yield words.format(count=f"{self.count:,}", of=f"{self.of:,}", named=named)


@dataclass
class LoadedBenchmark:
    """A benchmark reduced to the config's queries and candidates."""

    benchmark: Benchmark
    config: BenchmarkConfig
    queries: list[Query]
    skipped: Counter[str] = field(default_factory=Counter)
    """Number of records outside the config's selection, by kind."""
    scale: tuple[float, float] = (1.0, 10.0)
    """Expected scale of the labels."""
    empty: SuspiciousRecords = field(default_factory=SuspiciousRecords)
    off_scale: SuspiciousRecords = field(default_factory=SuspiciousRecords)
    foreign_labels: SuspiciousRecords = field(default_factory=SuspiciousRecords)
    foreign_votes: SuspiciousRecords = field(default_factory=SuspiciousRecords)
    repeated_votes: SuspiciousRecords = field(default_factory=SuspiciousRecords)
    contradicting_votes: SuspiciousRecords = field(default_factory=SuspiciousRecords)
    repeated_labels: SuspiciousRecords = field(default_factory=SuspiciousRecords)
    _read: ResponseCells = field(default_factory=lambda: ResponseCells("B"))
    _place: str = ""
    """Where the current record is in the file of collected labels."""

    def responses(self) -> Iterator[Response]:
        """Yield the selected responses; raise BenchmarkError for a duplicate or unknown query."""
        read = self._read = ResponseCells("B")
        passed_over: set[str] = set()
        for response in self.benchmark.responses():
            if not self._is_chosen("responses", response, response.candidate):
                passed_over.add(response.candidate)
                continue
            if response.candidate not in read:
                self._check_name(response.candidate)
            if read.add(response.candidate, self._places[response.query_id]):
                raise BenchmarkError(
                    f"{response.candidate!r} has two responses to query {response.query_id!r}"
                    f"{_second(self.benchmark)}.",
                    hint="Keep one, or give the second another candidate name.",
                )
            if not response.text.strip():
                self.empty.add(f"{response.candidate} on {response.query_id}")
            yield response
        self._check_candidates({name for name, _ in read.counts()}, passed_over)

    def labels(self) -> Iterator[Label]:
        """Yield the labels of selected queries and candidates."""
        given: set[tuple[str, str, str]] = set()
        for label in self._both(self.benchmark.labels(), self._collected.labels()):
            if self._is_chosen("labels", label, label.candidate):
                self._check_label(label)
                by = (label.query_id, label.candidate, label.labeler)
                self.repeated_labels.of += 1
                if label.labeler != ANYBODY and by in given:
                    self.repeated_labels.add(f"{self._at}{label.labeler!r} on {label.candidate!r}")
                given.add(by)
                yield label
        if isinstance(self.benchmark, LeavesOut):
            self.skipped.update(self.benchmark.left_out())

    def votes(self) -> Iterator[Vote]:
        """Yield the votes on selected queries between selected candidates."""
        given: dict[tuple[str, frozenset[str], str], str | None] = {}
        for vote in self._both(self.benchmark.votes(), self._collected.votes()):
            if vote.candidate_a == vote.candidate_b:
                raise BenchmarkError(
                    f"{self._at}{'a' if self._at else 'A'} vote on query {vote.query_id!r} "
                    f"compares {vote.candidate_a!r} "
                    "with itself.",
                    hint="Name two candidates, or remove the vote.",
                )
            if self._is_chosen("votes", vote, vote.candidate_a, vote.candidate_b):
                self.foreign_votes.of += 1
                for name in (vote.candidate_a, vote.candidate_b):
                    if self._is_foreign(vote.query_id, name):
                        self.foreign_votes.add(self._foreign(vote.query_id, name))
                        break
                self._check_vote(vote, given)
                yield vote

    @cached_property
    def _collected(self) -> CollectedContent:
        path = self.config.collected
        return CollectedContent() if path is None else CollectedLabels(path).read()

    def _both(self, own: Iterable[T], collected: Iterable[tuple[str, T]]) -> Iterator[T]:
        """Yield the benchmark's records, then the collected ones, each of which sets the place."""
        yield from own
        for place, record in collected:
            self._place = place
            yield record
        self._place = ""

    def ratings(self) -> Iterator[Rating]:
        """Yield the ratings of selected candidates."""
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
        """Yield warnings about suspicious records; complete after everything was read."""
        low, high = self.scale
        blank = SuspiciousRecords()
        for query in self.queries:
            if not query.text.strip():
                blank.add(repr(query.id))
        yield from blank.sentence(
            "queries without text: {count} ({named}). They are judged anyway: add their "
            "text, or leave them out."
        )
        yield from self.off_scale.sentence(
            f"labels outside the scale {low:g} to {high:g}: {{count}} of {{of}} ({{named}}). They "
            "are used unchanged: correct them, or set `scorer.scale` to the scale of your labels."
        )
        yield from self._alike().sentence(
            "candidates whose names differ only by case or Unicode form: {count} ({named}). They "
            "count as different candidates: rename one if they are the same."
        )
        yield from self.contradicting_votes.sentence(
            "votes that contradict an earlier vote of the same voter: {count} of {of} ({named}). "
            "All are used: remove the wrong ones."
        )
        yield from self.repeated_votes.sentence(
            "votes that repeat an earlier vote of the same voter: {count} of {of} ({named}). All "
            "are used and count again: remove the copies."
        )
        yield from self.repeated_labels.sentence(
            "labels of one labeler for a response that it labeled before: {count} of {of} "
            "({named}). All are used: remove the wrong ones."
        )
        if isinstance(self.benchmark, ReportsFields):
            yield from self.benchmark.odd_fields()
        yield from absent_file(self.config.collected)
        yield from self._collected.notes
        for what, odd in (("labels", self.foreign_labels), ("votes", self.foreign_votes)):
            yield from odd.sentence(
                f"{what} on responses that do not exist: {{count}} of {{of}} ({{named}}). They are "
                f"not used: check the names in the {what}, and that the responses exist."
            )

    def absent(self) -> Iterator[str]:
        """Yield a warning about candidates without a response to every query."""
        lacking = SuspiciousRecords()
        for candidate, answered in self._read.counts():
            missing = len(self.queries) - answered
            if missing:
                lacking.add(f"{candidate} lacks {missing:,} of {len(self.queries):,}")
        words = "candidates without a response to every query: {count} ({named})"
        yield from lacking.sentence(words)

    def _check_label(self, label: Label) -> None:
        low, high = self.scale
        self.off_scale.of += 1
        self.foreign_labels.of += 1
        if not low <= label.value <= high:
            self.off_scale.add(
                f"{self._at}{label.value:g} for {label.candidate!r} on {label.query_id!r}"
            )
        if self._is_foreign(label.query_id, label.candidate):
            self.foreign_labels.add(self._foreign(label.query_id, label.candidate))

    def _check_vote(
        self, vote: Vote, given: dict[tuple[str, frozenset[str], str], str | None]
    ) -> None:
        """Count votes of one voter on one pair that repeat or contradict an earlier one."""
        for counted in (self.repeated_votes, self.contradicting_votes):
            counted.of += 1
        if vote.voter == ANYBODY:
            return
        pair = (vote.query_id, frozenset({vote.candidate_a, vote.candidate_b}), vote.voter)
        winner = {"a": vote.candidate_a, "b": vote.candidate_b}.get(vote.winner)
        if pair in given:
            same = given[pair] == winner
            odd = self.repeated_votes if same else self.contradicting_votes
            odd.add(f"{self._at}{vote.voter!r} on {vote.query_id!r}")
        given[pair] = winner

    def _check_name(self, candidate: str) -> None:
        """Raise BenchmarkError for a name that is no text, and count one that looks like another.

        A name that is not valid Unicode comes from the name of a file.
        """
        if not is_encodable(candidate):
            raise BenchmarkError(
                f"The name of the candidate {ascii(candidate)[1:-1]} is not valid Unicode text.",
                hint="Rename its file of responses.",
            )

    def _alike(self) -> SuspiciousRecords:
        """Return the candidates whose names differ only by case or Unicode form."""
        found, first = SuspiciousRecords(), dict[str, str]()
        for name, _ in self._read.counts():
            folded = " ".join(unicodedata.normalize("NFKC", name).casefold().split())
            if folded in first:
                found.add(f"{name!r} and {first[folded]!r}")
            first.setdefault(folded, name)
        return found

    def _is_foreign(self, query_id: str, candidate: str) -> bool:
        """Return whether no such response has been read."""
        return bool(self._read) and not self._read.get(candidate, self._places[query_id])

    def _foreign(self, query_id: str, candidate: str) -> str:
        known = candidate in self._read
        names = [name for name, _ in self._read.counts()]
        meant = None if known else near_name(candidate, names)
        guess = f", did you mean {meant!r}?" if meant else ""
        return f"{self._at}{candidate!r} on {query_id!r}{guess}"

    @property
    def _at(self) -> str:
        """Return the place of the last record, as the start of a message."""
        own = self.benchmark.where if isinstance(self.benchmark, Located) else ""
        where = self._place or own
        return f"{where}: " if where else ""

    @cached_property
    def _places(self) -> dict[str, int]:
        return {query.id: place for place, query in enumerate(self.queries)}

    @cached_property
    def _chosen(self) -> set[str] | None:
        return None if self.config.candidates is None else set(self.config.candidates)

    def _is_chosen(self, kind: str, record: Response | Label | Vote, *candidates: str) -> bool:
        """Return whether the config selects `record`; raise BenchmarkError for an unknown query."""
        known = record.query_id in self._places
        if not known and self.config.limit is None and self.config.queries is None:
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
                f"The candidate {absent[0]!r} has no response to any selected query.",
                hint="Check `benchmark.candidates`. "
                + nearest(absent[0], sorted(found | passed_over)),
            )
        if not found:
            raise BenchmarkError("There are no responses to judge.")


def _second(benchmark: Benchmark) -> str:
    """Return the place of the second of two duplicate records, which was read last."""
    where = benchmark.where if isinstance(benchmark, Located) else ""
    return f" (the second: {where})" if where else ""


def load(benchmark: Benchmark, config: BenchmarkConfig) -> LoadedBenchmark:
    """Return the selected queries, and a stream of responses and reference data."""
    queries: dict[str, Query] = {}
    chosen = None if config.queries is None else read_query_ids(config.queries)
    for query in benchmark.queries():
        if query.id in queries:
            raise BenchmarkError(
                f"Two queries have the id {query.id!r}{_second(benchmark)}.",
                hint="Give each query a unique id.",
            )
        if config.limit is not None and len(queries) >= config.limit:
            break
        if chosen is None or query.id in chosen:
            queries[query.id] = query
    unknown = sorted((chosen or frozenset()) - queries.keys())
    if unknown and config.limit is None:
        raise BenchmarkError(
            f"The benchmark lacks {count_of(len(unknown), 'query', 'queries')} that "
            f"{config.queries} names: {join_words(map(repr, unknown), most=3)}.",
            hint="Choose the queries from a run of the same benchmark.",
        )
    if not queries:
        raise BenchmarkError(
            f"The benchmark {config.path} has no queries: its query file is empty.",
            hint='Write one per line, such as {"id": "q1", "text": "..."} in queries.jsonl.',
        )
    return LoadedBenchmark(benchmark, config, list(queries.values()))


def read_query_ids(path: Path) -> frozenset[str]:
    """Return the query ids in a file, one per line."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchmarkError(
            f"The query ids in {path} cannot be read: {error}.",
            hint="Give a text file with one query id per line.",
        ) from None
    found = frozenset(line.strip() for line in text.splitlines()) - {""}
    if not found:
        raise BenchmarkError(f"{path} has no query ids.", hint="Write one per line.")
    return found


def imported_checklists(benchmark: Benchmark) -> dict[str, Checklist]:
    """Return the benchmark's own checklists by query id."""
    found: dict[str, Checklist] = {}
    for checklist in benchmark.checklists():
        if checklist.query_id in found:
            raise BenchmarkError(
                f"Query {checklist.query_id!r} has two checklists.", hint="Keep one of them."
            )
        found[checklist.query_id] = checklist
    return found


def load_inputs(store: RunStore, config: RunConfig) -> LoadFacts:
    """Write the run's inputs, and return counts and content hashes."""
    if config.cache is not None:
        # Check now, before paying for work that could not be stored.
        check_folder(config.cache)
    _refuse_assumed(config.benchmark)
    loaded = load(open_benchmark(config.benchmark), config.benchmark)
    loaded.scale = config.scorer.scale
    before = store.inputs.summary() if store.inputs.exist else None
    summary = store.inputs.save(
        loaded.queries, loaded.responses(), loaded.labels(), loaded.votes(), loaded.ratings()
    )
    if summary != before:
        store.drop_from("attack")
    notes = (*loaded.notes(), *_reader_notes(loaded.benchmark))
    _log_all(notes)
    _log_all(loaded.absent())
    _log_all(loaded.empty.sentence("empty responses: {count} ({named}); they are judged anyway"))
    return LoadFacts(**asdict(summary), left_out_by_config=dict(loaded.skipped), notes=notes)


def _refuse_assumed(config: BenchmarkConfig) -> None:
    if config.options.get("assume") is not None:
        raise BenchmarkError(
            "benchmark.options.assume: assumed responses are for `rocketeval plan` only.",
            hint="Remove it, and name real responses in benchmark.options.responses.",
        )


def _reader_notes(benchmark: Benchmark) -> Iterator[str]:
    """Yield what a data reader skipped or changed."""
    from rocketeval.benchmarks.data import DataBenchmark

    if isinstance(benchmark, DataBenchmark):
        yield from benchmark.summary.lines()


def _log_all(lines: Iterable[str]) -> None:
    for line in lines:
        _log.info("%s", line)
