"""Tables: one row per response (long), or per query with a column per candidate (wide).

Columns are recognized by the names that evaluation tools use. `columns` in the options overrides
them, and `candidates` names the columns of a wide table. A folder has one file per candidate, or
files with a candidate column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from functools import cached_property, partial
from itertools import count, islice
from pathlib import Path

from pydantic import Field

from rocketeval.benchmarks.cells import (
    NO_VALUE,
    OPEN_AND_SAVE,
    as_text,
    cell_value,
    is_missing,
    listed_items,
    plain_value,
    snake,
    whole_number,
)
from rocketeval.benchmarks.columns import COLUMN_NAMES, TableColumns, choose_columns
from rocketeval.benchmarks.data import (
    DataBenchmark,
    DataOptions,
    Example,
    Kept,
    Skipped,
    content_id,
)
from rocketeval.benchmarks.eval_datasets import passage_mark, passages
from rocketeval.benchmarks.messages import (
    RowError,
    from_json,
    is_messages,
    label_in_column,
    mapped,
    read_turns,
    split_turns,
    system_text,
)
from rocketeval.benchmarks.reading import Row, field_hint, naming, shown_value
from rocketeval.benchmarks.row_files import (
    SAMPLE_ROWS,
    BadRow,
    Rows,
    Sample,
    data_files,
    row_format,
    stem_of,
    without_nan,
)
from rocketeval.config import BenchmarkConfig, parse_options
from rocketeval.errors import BenchmarkError, Hint
from rocketeval.items import ParsedItem, is_of_another_kind
from rocketeval.records import Label, Query, Response, Turn
from rocketeval.text import join_words

NO_RESPONSE = "no response"
MESSAGES_IN_TEXT = "the response is a text that holds chat messages: the last one is judged"
NOT_ITEMS = "the checklist is not a list of items, and is not used"
NUMBERING = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
LATE_FIELD = (
    "the field {0!r} is not in the first rows, and is not read; to read it, set "
    "`columns: {{{1}: {0}}}`"
)
MOST_LATE = 100
"""Names of late fields that are kept for the mapping."""


class TableOptions(DataOptions):
    """Settings of a table."""

    columns: dict[str, str] = Field(default_factory=dict)
    """Column of each part: query, response, candidate, id, reference, category, checklist, label,
    context, system. Parts that are not named are recognized by name; an empty name means none."""
    candidates: tuple[str, ...] = ()
    """Columns of a wide table, one per candidate."""
    candidate: str | None = None
    """Name of the only candidate of a table without a candidate column; default: the file's."""
    dataset: str | None = None
    """Name of a Hugging Face dataset to read instead of a file; needs the package `datasets`."""
    split: str = "train"
    """Split of the dataset."""


class TableBenchmark(DataBenchmark):
    """A long or wide table."""

    kind = "table"
    options_type = TableOptions
    options: TableOptions

    @classmethod
    def create(cls, config: BenchmarkConfig) -> TableBenchmark:
        """Return a reader of `config.path`, or of the dataset in its options."""
        options = parse_options(config.options, TableOptions, "benchmark.options")
        return cls(Path() if options.dataset else config.path, options)

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Accept any file with rows."""
        form = row_format(sample.files[0]) if sample.files else None
        return f"{form} table" if sample.rows and form else None

    @cached_property
    def files(self) -> list[Path]:
        """The data files; none for a dataset."""
        found = [] if self.options.dataset else data_files(self.path)
        if not found and not self.options.dataset:
            raise BenchmarkError(
                f"{self.path} has no data file.", hint="Give a file, or a folder of files."
            )
        return found

    def _sample(self) -> list[Row]:
        """Return the first rows of every file; of the first file most."""
        few = max(1, SAMPLE_ROWS // max(1, len(self.files)))
        return [
            row
            for place in range(max(1, len(self.files)))
            for row in islice(self._rows(place), few if place else SAMPLE_ROWS)
            if isinstance(row, Row)
        ]

    @cached_property
    def _late(self) -> dict[str, str]:
        """Other fields that the first rows do not have, and the first row with each."""
        return {}

    @cached_property
    def columns(self) -> TableColumns:
        """The column of each part, chosen from the first rows."""
        rows = self._sample()
        if not rows:
            bad = next((row for row in self._rows(0) if isinstance(row, BadRow)), None)
            why = f": {bad.where}: {bad.kind} ({bad.detail})" if bad else ""
            raise BenchmarkError(f"{self.name} has no rows{why}.", hint=bad.hint if bad else "")
        return choose_columns(
            self.options.columns, self.options.candidates, rows, self.name, self._readable
        )

    def _readable(self) -> Iterator[Row]:
        """Yield all rows that can be read."""
        for place in range(max(1, len(self.files))):
            yield from (row for row in self._rows(place) if isinstance(row, Row))

    @property
    def repeat_hint(self) -> str:
        """What to do about two responses of one candidate to one query."""
        if self.columns.candidate or self.columns.wide:
            return super().repeat_hint
        return Hint.of(
            "If a column names the candidate (model, version), say which: ",
            naming(candidate="COLUMN"),
            f". {super().repeat_hint}",
        )

    @property
    def turns_hint(self) -> str:
        """What to do about one query and id with different turns before it."""
        if self.columns.system is None:
            return super().turns_hint
        return Hint.of(
            f"If column {self.columns.system!r} is part of the candidate, such as a version of the "
            "prompt, leave it out: ",
            naming(system=""),
            f". Otherwise: {super().turns_hint}",
        )

    @property
    def unnamed_labeler(self) -> str | None:
        """The name of the label column, for rows in which no column names a person."""
        return snake(self.columns.label) if self.columns.label else None

    @property
    def name(self) -> str:
        """The name of the first file, or of the dataset."""
        return self.options.dataset or self.files[0].name

    def mapping(self) -> Mapping[str, str]:
        """Return the column of each part."""
        many = f"the name of each of {len(self.files)} files"
        whose = "" if self.options.candidate or not self.files else ", the file's name"
        one = f"none: all responses are {self._alone(0)!r}{whose}"
        alone = many if len(set(map(self._alone, range(len(self.files))))) > 1 else one
        said = dict(describe_columns(self.columns, alone))
        if self._late:
            later = (f"{name!r} (from {where} on)" for name, where in self._late.items())
            unread = [said["not read"]] if "not read" in said else []
            said["not read"] = ", ".join([*unread, join_words(later, most=12)])
        return said

    def settings(self) -> Mapping[str, object]:
        """Return the mapping as options."""
        written: dict[str, object] = {"columns": self.columns.option(self.options.columns)}
        if self.columns.wide:
            written["candidates"] = list(self.columns.wide.values())
        if self.options.dataset:
            written |= {"dataset": self.options.dataset, "split": self.options.split}
        if self.options.candidate:
            written["candidate"] = self.options.candidate
        return written

    def examples(self) -> Iterator[Kept]:
        """Yield an example per row."""
        _ = self.columns
        for place in range(max(1, len(self.files))):
            for row in self._rows(place):
                if isinstance(row, BadRow):
                    yield row
                else:
                    yield mapped(row, partial(self._example, place=place))

    def other_files(self) -> Iterable[str]:
        """Return the files in the folder that are not read; none for a dataset."""
        return () if self.options.dataset else super().other_files()

    def _rows(self, place: int) -> Rows:
        if self.options.dataset:
            return map(_plain, dataset_rows(self.options.dataset, self.options.split))
        typed = row_format(self.files[place]) in ("parquet", "arrow")
        return map(_plain, self.rows(self.files[place])) if typed else self.rows(self.files[place])

    def _alone(self, place: int) -> str:
        if self.options.candidate or not self.files:
            return self.options.candidate or "responses"
        path = self.files[place]
        if sum(stem_of(each) == stem_of(path) for each in self.files) == 1:
            return stem_of(path)
        # Files of one name in two folders are two candidates.
        return str(path.relative_to(self.path).with_name(stem_of(path)))

    def _example(self, row: Row, place: int) -> Kept:
        columns = self.columns
        for column in sorted((row.uncomputed & columns.seen).difference(columns.unread)):
            raise RowError(NO_VALUE, f"column {column!r}", OPEN_AND_SAVE)
        query, spoken, notes = self._query(row)
        hidden: set[str] = set()
        found = dict(self._responses(row, spoken, place, hidden))
        context = self._context(row, place)
        answered = {name: text for name, text in found.items() if text is not None}
        if not answered:
            return Skipped(row.where, NO_RESPONSE)
        if len(answered) < len(found):
            notes = (*notes, "a candidate's cell is empty: it has no response to this query")
        if any(map(_holds_messages, self._response_cells(row))):
            notes = (*notes, MESSAGES_IN_TEXT)
        notes = (*notes, *self._late_fields(row))
        items, dropped = self._items(row)
        label = self._label(row, query.id, next(iter(answered)))
        if label is None and columns.label and row.values.get(columns.label) not in (None, ""):
            notes = (*notes, f"column {columns.label!r} holds no number: the row has no label")
        refused = columns.not_labels
        if refused and not is_missing(row.values.get(refused.name)):
            notes = (*notes, refused.why)
        return Example(
            row.where,
            query,
            tuple(
                Response(query.id, name, text, context=context) for name, text in answered.items()
            ),
            items,
            (label,) if isinstance(label, Label) else (),
            notes=(*notes, *sorted(hidden), *dropped),
            bad_label=label if isinstance(label, BadRow) else None,
        )

    def _query(self, row: Row) -> tuple[Query, str | None, tuple[str, ...]]:
        columns = self.columns
        cell = self._cell(row, columns.query)
        value = cell_value(cell)
        history: tuple[Turn, ...] = ()
        spoken: str | None = None
        notes: tuple[str, ...] = ()
        if is_messages(value):
            split = split_turns(*read_turns(value, columns.query))
            text, history, spoken, notes = split.query, split.history, split.response, split.notes
        elif isinstance(cell, Mapping) and len(cell) == 1:
            text = as_text(next(iter(cell.values())))
        else:
            text = "" if cell is None else as_text(cell)
        if not text.strip():
            raise RowError("the query is empty", f"column {columns.query!r}")
        given = text_or_none(row, columns.query_input)
        if given and given.strip():
            text = f"{text}\n\n{given}"
        system = system_text(row.values.get(columns.system)) if columns.system else ""
        if system.strip():
            history = (Turn("system", system), *history)
        query = Query(
            id=_name(row, columns.id, "id") if columns.id else content_id(text, history),
            text=text,
            history=history,
            reference=text_or_none(row, columns.reference),
            category=text_or_none(row, columns.category),
        )
        return query, spoken, notes

    def _responses(
        self, row: Row, spoken: str | None, place: int, notes: set[str]
    ) -> Iterator[tuple[str, str | None]]:
        columns = self.columns
        for name, column in columns.wide.items():
            yield name, _response_text(row.values.get(column), notes)
        if columns.wide:
            return
        text = spoken
        if columns.response is not None:
            text = _response_text(self._cell(row, columns.response), notes)
        names = []
        for column in columns.candidate:
            self._cell(row, column)
            names.append(_name(row, column, "candidate").strip())
        yield " / ".join(names) or self._alone(place), text

    def _response_cells(self, row: Row) -> Iterator[object]:
        response = self.columns.response
        for column in self.columns.wide.values() or ((response,) if response else ()):
            yield row.values.get(column)

    def _late_fields(self, row: Row) -> Iterator[str]:
        """Yield a note per field that looks like a part and that the first rows do not have."""
        for name in (each for each in row.values if each not in self.columns.seen):
            part = next((part for part, names in COLUMN_NAMES.items() if snake(name) in names), "")
            if part and self.options.columns.get(part) != "":
                yield LATE_FIELD.format(name, part)
            elif len(self._late) < MOST_LATE:
                self._late.setdefault(name, row.where)

    def _cell(self, row: Row, column: str) -> object:
        if column not in row.values:
            raise RowError(f"the field {column!r} is missing", "", field_hint(column, row.values))
        return row.values[column]

    @cached_property
    def _marks(self) -> list[str | None]:
        """What separates the passages in a cell of each file: only DeepEval's have a mark."""
        if not {"input", "actual_output"} <= {*map(snake, self.columns.seen)}:
            return [None] * len(self.files)
        return [passage_mark(path) for path in self.files]

    def _context(self, row: Row, place: int) -> tuple[str, ...] | None:
        value = cell_value(row.values.get(self.columns.context)) if self.columns.context else None
        if not value:
            return None
        if isinstance(value, str) and self.files and self._marks[place]:
            return passages(value, self._marks[place])
        texts = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        return tuple(as_text(each) for each in texts)

    def _items(self, row: Row) -> tuple[tuple[ParsedItem, ...], tuple[str, ...]]:
        column = self.columns.checklist or ""
        value = cell_value(row.values.get(column)) if column else ""
        if isinstance(value, str):
            value = [NUMBERING.sub("", line) for line in value.splitlines() if line.strip()]
        if not value:
            return (), ()
        given = listed_items(value)
        # A column named `items` may hold other things than a checklist.
        guessed = snake(column) != "checklist" and "checklist" not in self.options.columns
        if given is None or (guessed and any(map(is_of_another_kind, given))):
            return (), (NOT_ITEMS,)
        return tuple(Row({column: given}, row.where).items(column)), ()

    def _label(self, row: Row, query_id: str, candidate: str) -> Label | BadRow | None:
        column = self.columns.label
        value = row.values.get(column) if column else None
        if column is None or is_missing(value):
            return None
        by = row.values.get(self.columns.labeler) if self.columns.labeler else None
        labeler = self.unnamed_labeler or "" if is_missing(by) else str(by)
        return label_in_column(row, column, query_id, candidate, labeler)


def _plain(row: Row | BadRow) -> Row | BadRow:
    """Return a row of a typed file with texts for bytes, and numbers for decimals."""
    if isinstance(row, BadRow):
        return row
    return Row({name: plain_value(value) for name, value in row.values.items()}, row.where)


def text_or_none(row: Row, column: str | None) -> str | None:
    """Return the text of a cell, such as a reference; None if it is empty."""
    value = row.values.get(column) if column else None
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        return value[0] if len(value) == 1 else "\n".join(value)
    # Text stays as it is, also if it is JSON.
    return None if value is None or value in ("", []) else as_text(value)


def _name(row: Row, column: str, part: str) -> str:
    """Return the text of a cell that names something; a list or an object does not."""
    value = whole_number(row.values.get(column)) if part == "id" else row.values.get(column)
    if isinstance(value, Mapping | list):
        raise RowError(
            f"the {part} is not a text or a number",
            f"column {column!r}: {shown_value(value)}",
            f"Write a name in column {column!r}, or name another column for `{part}`.",
        )
    text = "" if value is None else as_text(value) if isinstance(value, date) else str(value)
    if not text.strip():
        raise RowError(f"the {part} is empty", f"column {column!r}")
    return text


def _response_text(value: object, notes: set[str]) -> str | None:
    """Return a response as text; None if there is none."""
    if value is None or value == "":
        return None
    if is_messages(value) or _holds_messages(value):
        turns, hidden = read_turns(from_json(value), "response")
        notes.update(hidden)
        return turns[-1].content or None
    # Text stays as it is, also if it is JSON: the model wrote it.
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    return as_text(value)


def _holds_messages(value: object) -> bool:
    """Return whether a text holds chat messages as JSON, the last one by the assistant."""
    found = from_json(value) if isinstance(value, str) else None
    return is_messages(found) and read_turns(found, "response")[0][-1].role == "assistant"


def describe_columns(columns: TableColumns, default: str) -> Iterator[tuple[str, str]]:
    """Yield where each part comes from, in words; `default` names a lone candidate."""
    said: Callable[[str], str] = "column {!r}".format
    more = columns.query_input
    yield "query", said(columns.query) + (f", then {more!r} where it is filled" if more else "")
    if columns.wide:
        yield "candidate", "one column each: " + join_words(map(repr, columns.wide), most=8)
    else:
        source = "the last assistant message of " + said(columns.query)
        yield "response", said(columns.response) if columns.response else source
        names = " + ".join(map(repr, columns.candidate))
        yield "candidate", f"column {names}" if names else default
    why = f" ({columns.why_not_ids})" if columns.why_not_ids else ""
    yield "id", said(columns.id) if columns.id else f"a hash of the query{why}"
    for role, words in (
        ("reference", ""),
        ("category", ""),
        ("checklist", ""),
        ("label", ", as reference data"),
        ("labeler", ", who gave the label"),
        ("context", ", shown to the judge"),
        ("system", ", shown to the judge as a system turn"),
    ):
        column = getattr(columns, role)
        if column:
            yield role, said(column) + words
    if columns.unread:
        yield "not read", join_words(map(repr, columns.unread), most=12)


def dataset_rows(name: str, split: str) -> Rows:
    """Yield the rows of a Hugging Face dataset, streamed."""
    try:
        import datasets  # type: ignore[import-not-found,unused-ignore]
    except ImportError:
        raise BenchmarkError(
            f"Reading the dataset {name!r} needs the package datasets.",
            hint="pip install datasets, or download its Parquet files and give their folder.",
        ) from None
    try:
        found = iter(datasets.load_dataset(name, split=split, streaming=True))
    except Exception as error:  # noqa: BLE001 - the hub raises many kinds
        raise _no_dataset(name, split, error) from None
    for number in count(1):
        try:
            values = next(found, None)
        except Exception as error:  # noqa: BLE001 - so does a file that breaks while it is read
            raise _no_dataset(name, f"{split}, row {number}", error) from None
        if values is None:
            return
        yield Row(without_nan(values), f"{name}[{number}]")


def _no_dataset(name: str, place: str, error: Exception) -> BenchmarkError:
    reason = (str(error).splitlines() or [type(error).__name__])[0]
    return BenchmarkError(
        f"The dataset {name!r} (split {place}) cannot be read: {reason}",
        hint="Check its name and split: hf:OWNER/NAME:SPLIT.",
    )
