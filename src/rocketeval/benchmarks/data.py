"""The core of the data readers: rows of a peer's file become examples, skips or problems.

A reader yields exactly one of these per row, so that rows in = examples + rows named as skipped.
The first pass over the file keeps queries, checklists, labels and votes, which are small, and
checks every row; the second streams the responses.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, Self

from rocketeval.benchmarks.cells import ResponseCells, repeated_labels, without
from rocketeval.benchmarks.reading import SKIP_BAD
from rocketeval.benchmarks.row_files import BadRow, Rows, Sample, other_files, rows_of
from rocketeval.config import BenchmarkConfig, Section, parse_options
from rocketeval.errors import BenchmarkError, Hint
from rocketeval.hashing import content_hash
from rocketeval.items import ParsedItem
from rocketeval.records import Checklist, Label, Query, Rating, Response, Turn, Vote
from rocketeval.text import count_of, join_words, start_of

__all__ = ["DataBenchmark", "DataOptions", "DataSummary", "Example", "Kept", "Skipped", "SourceIds"]

MOST_NAMED = 10
"""Rows that are named per kind of skip or problem; all are counted."""
SAME_TWICE = "the same response again"
SAME_LABEL = "the same response and label of the same labeler again: the label is dropped"
COPIED_LABEL = (
    "the same response and label again: the label is dropped as a copy; if another person gave it, "
    "name the people in a column `rater`"
)
AGREEING_LABEL = (
    "the same response and label again: kept as another person's label, because responses have "
    "different labels; name the people in a column `rater` to be sure"
)
OTHER_TEXT = "the id belongs to another query text in an earlier row"
TEXT_HINT = (
    "Correct the ids, or name another column for `query` (the text that all candidates answered) "
    "or `id`."
)
OTHER_TURNS = "the id belongs to the same query after other turns, such as another system prompt"
OTHER_FIRST = "another {} than the first row of its query; the first is used"


@dataclass(frozen=True, slots=True)
class SourceIds:
    """Ids of a row in the tool it comes from, for writing scores back."""

    trace: str = ""
    span: str = ""
    response: str = ""


@dataclass(frozen=True, slots=True)
class Example:
    """What one row of a data file holds."""

    where: str
    """`file:line`, or the row's name in its file."""
    query: Query
    responses: tuple[Response, ...] = ()
    items: tuple[ParsedItem, ...] = ()
    """Checklist items of the query."""
    labels: tuple[Label, ...] = ()
    votes: tuple[Vote, ...] = ()
    notes: tuple[str, ...] = ()
    """What was changed or left out in the row, in a few words."""
    source: SourceIds | None = None
    bad_label: BadRow | None = None
    """A label that cannot be read: an error, or left out if `bad_rows` is skip."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """A row that the format does not let us use, such as a failed request."""

    where: str
    reason: str


Kept = Example | Skipped | BadRow
"""What a reader makes of a row."""


class DataOptions(Section):
    """Settings common to all data readers."""

    bad_rows: Literal["refuse", "skip"] = "refuse"
    """refuse: a row with a mistake is an error that lists all of them; skip: leave such rows out,
    and count them; of a row whose only mistake is its label, leave out the label."""


@dataclass
class NamedCount:
    """A number of rows, with the first few named."""

    count: int = 0
    named: list[str] = field(default_factory=list)

    def add(self, where: str) -> None:
        """Count a row, and keep its name if it is among the first."""
        self.count += 1
        if len(self.named) < MOST_NAMED:
            self.named.append(where)

    def __str__(self) -> str:
        rest = self.count - len(self.named)
        return ", ".join(self.named) + (f" and {rest:,} more" if rest else "")


@dataclass
class DataSummary:
    """What a data file holds: the result of the first pass."""

    rows: int = 0
    used: int = 0
    """Rows that became at least part of an example."""
    responses: int = 0
    contexts: int = 0
    """Responses with retrieved context."""
    queries: dict[str, Query] = field(default_factory=dict)
    checklists: dict[str, Checklist] = field(default_factory=dict)
    labels: list[Label] = field(default_factory=list)
    votes: list[Vote] = field(default_factory=list)
    label_places: list[str] = field(default_factory=list)
    """Where each label was read."""
    vote_places: list[str] = field(default_factory=list)
    """Where each vote was read."""
    candidates: dict[str, int] = field(default_factory=dict)
    """Number of responses of each candidate, in order of appearance."""
    skipped: dict[str, NamedCount] = field(default_factory=dict)
    """Unused rows by reason."""
    notes: dict[str, NamedCount] = field(default_factory=dict)
    """Changes of used rows by kind."""
    problems: dict[str, NamedCount] = field(default_factory=dict)
    """Rows with a mistake, by kind."""
    other_files: NamedCount = field(default_factory=NamedCount)
    """Files of a folder that are not read."""
    hints: dict[str, str] = field(default_factory=dict)
    """What to do about each kind of mistake."""

    @property
    def unused(self) -> int:
        """Number of rows that are named as skipped."""
        return sum(each.count for each in self.skipped.values())

    def lines(self) -> Iterator[str]:
        """Yield what was skipped and what was changed, one line per kind."""
        for reason, rows in self.skipped.items():
            yield f"skipped {count_of(rows.count, 'row', 'rows')}: {reason} ({rows})"
        for change, rows in self.notes.items():
            yield f"{count_of(rows.count, 'row', 'rows')}: {change} ({rows})"
        if self.other_files.count:
            yield f"files that are not read: {self.other_files}"


class DataBenchmark(ABC):
    """A benchmark read from another tool's file; subclasses turn its rows into examples."""

    kind: ClassVar[str]
    """Name in the registry and in the config."""
    options_type: ClassVar[type[DataOptions]] = DataOptions

    def __init__(self, path: Path, options: DataOptions) -> None:
        if not path.exists():
            raise BenchmarkError(
                f"There is no file or folder {path}.", hint="Check `benchmark.path` in the config."
            )
        self.path = path
        self.options = options
        self.where = ""

    @classmethod
    def create(cls, config: BenchmarkConfig) -> Self:
        """Return a reader of `config.path`."""
        options = parse_options(config.options, cls.options_type, "benchmark.options")
        return cls(config.path, options)

    @classmethod
    @abstractmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Return the format's name, with its version if any, if the sample has it; else None."""

    @abstractmethod
    def examples(self) -> Iterator[Kept]:
        """Yield one example, skip or problem per row, in file order."""

    @abstractmethod
    def mapping(self) -> Mapping[str, str]:
        """Return where each record comes from, in words, by the record's name."""

    def settings(self) -> Mapping[str, object]:
        """Return the options to write into a config, so that the mapping can be edited."""
        return {}

    @property
    def repeat_hint(self) -> str:
        """What to do about two responses of one candidate to one query."""
        return "Give repeated runs different candidate names, or keep one row."

    @property
    def turns_hint(self) -> str:
        """What to do about one query and id with different turns before it."""
        return "Give each conversation its own id."

    @property
    def unnamed_labeler(self) -> str | None:
        """The labeler of labels whose people no column names; None if every label names one."""
        return None

    @cached_property
    def summary(self) -> DataSummary:
        """The first pass: counts, and everything but the responses.

        Raises BenchmarkError that lists all rows with a mistake, unless `bad_rows` is skip.
        """
        found = DataSummary()
        for name in self.other_files():
            found.other_files.add(name)
        for kept in self._checked(found):
            self.where = kept.where
            _collect(found, kept)
        if self.unnamed_labeler:
            _settle_repeats(found, self.unnamed_labeler)
        self._finish(found)
        return found

    def queries(self) -> Iterator[Query]:
        """Yield the distinct queries in order of appearance."""
        yield from self.summary.queries.values()

    def responses(self) -> Iterator[Response]:
        """Yield the responses, read again from the file."""
        for kept in self._checked(DataSummary(queries=self.summary.queries)):
            self.where = kept.where
            yield from kept.responses

    def other_files(self) -> Iterable[str]:
        """Return the files in the folder that are not read, each with the reason."""
        return (f"{name} (not a data file)" for name in other_files(self.path))

    def rows(self, path: Path) -> Rows:
        """Yield the rows of one file; in a folder, they are named by their path in it."""
        if not self.path.is_dir():
            yield from rows_of(path)
            return
        name = str(path.relative_to(self.path))
        row = None
        for row in rows_of(path, name):
            yield row
        if row is None:
            yield BadRow(name, "the file has no rows", "", "Complete the file, or remove it.")

    def checklists(self) -> Iterator[Checklist]:
        """Yield the checklists that the rows hold."""
        yield from self.summary.checklists.values()

    def labels(self) -> Iterator[Label]:
        """Yield the labels that the rows hold."""
        for where, label in zip(self.summary.label_places, self.summary.labels, strict=True):
            self.where = where
            yield label

    def votes(self) -> Iterator[Vote]:
        """Yield the votes that the rows hold."""
        for where, vote in zip(self.summary.vote_places, self.summary.votes, strict=True):
            self.where = where
            yield vote

    def ratings(self) -> Iterator[Rating]:
        """Yield nothing: these formats rate no candidates."""
        return iter(())

    def left_out(self) -> Mapping[str, int]:
        """Return the number of unused rows by reason."""
        return {f"rows: {reason}": each.count for reason, each in self.summary.skipped.items()}

    def _checked(self, found: DataSummary) -> Iterator[Example]:
        """Yield the usable examples, and count everything in `found`.

        The order of rows decides alone, so that both passes use the same rows.
        """
        cells = _Cells(self)
        for kept in self.examples():
            found.rows += 1
            checked = cells.check(kept, found.queries)
            if isinstance(checked, BadRow):
                _count_problem(found, checked)
                if self.options.bad_rows == "skip":
                    _named(found.skipped, checked.kind).add(checked.where)
            elif isinstance(checked, Skipped):
                _named(found.skipped, checked.reason).add(checked.where)
            else:
                found.used += 1
                yield checked
            if isinstance(kept, Example) and kept.bad_label and not isinstance(checked, BadRow):
                used = isinstance(checked, Example) and bool(checked.responses)
                self._count_bad_label(found, kept.bad_label, used=used)

    def _count_bad_label(self, found: DataSummary, label: BadRow, *, used: bool) -> None:
        _count_problem(found, label)
        if self.options.bad_rows == "skip":
            note = f"the label is left out{', the response is used' * used}: {label.kind}"
            _named(found.notes, note).add(f"{label.where}: {label.detail}")

    def _finish(self, found: DataSummary) -> None:
        if found.problems and self.options.bad_rows == "refuse":
            raise _refusal(self.path, found)
        if not found.queries:
            raise BenchmarkError(
                f"{self.path} has no usable row"
                + (f": {_reasons(found)}." if found.rows else ": it is empty."),
                hint="Check that it is complete, and that this is the right file.",
            )


def read_scores(
    scores: Iterable[tuple[str, object]], query_id: str, candidate: str
) -> tuple[tuple[Label, ...], tuple[str, ...]]:
    """Return the scores of other tools as labels, and a note for each that is not a number.

    >>> labels, notes = read_scores([("exact", True), ("judge", None)], "q1", "model-a")
    >>> labels[0].value, notes
    (1.0, ("there is no score of 'judge': it gives no label",))
    """
    labels, notes = [], []
    for name, score in scores:
        if isinstance(score, int | float):
            labels.append(Label(query_id, candidate, float(score), name))
        elif score is None:
            notes.append(f"there is no score of {name!r}: it gives no label")
        else:
            notes.append(f"the score of {name!r} is not a number: it gives no label")
    return tuple(labels), tuple(notes)


def content_id(text: str, history: Iterable[Turn] = ()) -> str:
    """Return the id of a query that has none: a hash of its text and history.

    >>> content_id("What is 1?")
    '281feac585d9'
    """
    turns = [[turn.role, turn.content] for turn in history]
    return content_hash("query", text, turns).hex()[:12]


class _Cells:
    """Which responses and labels were read: 8 bytes per response, a hash of its text."""

    def __init__(self, reader: DataBenchmark) -> None:
        self._reader = reader
        self._texts = ResponseCells("Q")
        self._places: dict[str, int] = {}
        self._labels: set[tuple[int, str, str, float]] = set()

    def check(self, kept: Kept, queries: Mapping[str, Query]) -> Kept:
        """Return an example without what was read before, or why it is not usable."""
        if not isinstance(kept, Example):
            return kept
        query = kept.query
        known = queries.get(query.id)
        if known is not None and (known.text, known.history) != (query.text, query.history):
            same = known.text == query.text
            return BadRow(kept.where, OTHER_TURNS if same else OTHER_TEXT, f"id {query.id!r}",
                          self._reader.turns_hint if same else TEXT_HINT)  # fmt: skip
        place = self._places.setdefault(query.id, len(self._places))
        # Nothing is recorded before every response is checked, so that a bad row records none.
        fresh: dict[str, tuple[Response, int]] = {}
        for response in kept.responses:
            # Python's hash is keyed and several times faster than a cryptographic one; it is never
            # stored. The last bit is set because 0 means that there is no response.
            code = hash(response.text) & (2**64 - 1) | 1
            own = fresh.get(response.candidate)
            before = own[1] if own else self._texts.get(response.candidate, place)
            if before and before != code:
                return BadRow(
                    kept.where,
                    "a candidate has a second, different response to the same query",
                    f"{response.candidate!r} on {_shown_query(query)}",
                    self._reader.repeat_hint,
                )
            if not before:
                fresh[response.candidate] = (response, code)
        for candidate, (_, code) in fresh.items():
            self._texts.add(candidate, place, code)
        labels = [label for label in kept.labels if self._is_new(place, label)]
        if kept.responses and not (fresh or labels or kept.votes):
            return Skipped(kept.where, SAME_LABEL if kept.labels else SAME_TWICE)
        if len(fresh) == len(kept.responses) and len(labels) == len(kept.labels):
            return kept
        responses = tuple(response for response, _ in fresh.values())
        notes = (*kept.notes, *((SAME_LABEL,) if len(labels) < len(kept.labels) else ()))
        return replace(kept, responses=responses, labels=tuple(labels), notes=notes)

    def _is_new(self, place: int, label: Label) -> bool:
        if label.labeler == self._reader.unnamed_labeler:
            return True
        # Another value is another label, also by the same labeler.
        key = (place, label.candidate, label.labeler, label.value)
        new = key not in self._labels
        self._labels.add(key)
        return new


def _settle_repeats(found: DataSummary, unnamed: str) -> None:
    """Drop repeated labels of unnamed people as copies of a row, or keep them as agreement."""
    repeats, several = repeated_labels(found.labels, unnamed)
    counts, reason = (found.notes, AGREEING_LABEL) if several else (found.skipped, COPIED_LABEL)
    for place in repeats:
        _named(counts, reason).add(found.label_places[place])
    if repeats and not several:
        found.labels = without(found.labels, repeats)
        found.label_places = without(found.label_places, repeats)
        found.used -= len(repeats)


def _collect(found: DataSummary, example: Example) -> None:
    query = example.query
    known = found.queries.get(query.id)
    notes = list(example.notes)
    if known is None:
        found.queries[query.id] = query
    else:
        for name in ("reference", "category"):
            first, own = getattr(known, name), getattr(query, name)
            if first is None and own is not None:
                found.queries[query.id] = known = replace(known, **{name: own})
            elif own not in (None, first):
                notes.append(OTHER_FIRST.format(name))
    found.responses += len(example.responses)
    for response in example.responses:
        found.contexts += response.context is not None
        found.candidates[response.candidate] = found.candidates.get(response.candidate, 0) + 1
    if example.items:
        before = found.checklists.get(query.id)
        made = Checklist.from_items(query.id, example.items)
        if before is None:
            found.checklists[query.id] = made
        elif before != made:
            notes.append(OTHER_FIRST.format("checklist"))
    found.labels.extend(example.labels)
    found.label_places.extend(example.where for _ in example.labels)
    found.votes.extend(example.votes)
    found.vote_places.extend(example.where for _ in example.votes)
    for note in notes:
        _named(found.notes, note).add(example.where)


def _shown_query(query: Query) -> str:
    """Return a query's id, or the start of its text if the id is only a hash of it."""
    made = query.id == content_id(query.text, query.history)
    return repr(start_of(query.text) if made else query.id)


def _named(counts: dict[str, NamedCount], name: str) -> NamedCount:
    return counts.setdefault(name, NamedCount())


def _count_problem(found: DataSummary, row: BadRow) -> None:
    shown = f"{row.where}: {row.detail}" if row.detail else row.where
    _named(found.problems, row.kind).add(shown)
    found.hints.setdefault(row.kind, row.hint)


def _refusal(path: Path, found: DataSummary) -> BenchmarkError:
    """Return the error that lists the first ten rows of each kind of mistake."""
    total = sum(each.count for each in found.problems.values())
    lines = [f"{path}: {total:,} of {count_of(found.rows, 'row', 'rows')} cannot be used."]
    for kind, rows in found.problems.items():
        lines.append(f"  {kind} ({count_of(rows.count, 'row', 'rows')}):")
        lines += [f"    {named}" for named in rows.named]
        if rows.count > len(rows.named):
            lines.append(f"    and {rows.count - len(rows.named):,} more")
    advice = [hint for hint in dict.fromkeys(found.hints[kind] for kind in found.problems) if hint]
    advice.append(Hint.of("Correct the rows, or leave them out with ", SKIP_BAD, "."))
    spaced = [part for hint in advice for part in ("\n", hint)]
    return BenchmarkError("\n".join(lines), hint=Hint.of(*spaced[1:]))


def _reasons(found: DataSummary) -> str:
    counts = Counter({reason: each.count for reason, each in found.skipped.items()})
    return join_words((f"{reason} ({n:,})" for reason, n in counts.most_common()), most=3)
