"""Tables: one row per response (long), or per query with a column per candidate (wide).

Columns are recognized by the names that evaluation tools use. `columns` in the options overrides
them, and `candidates` names the columns of a wide table. A folder has one file per candidate, or
files with a candidate column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from itertools import count, islice
from pathlib import Path

from pydantic import Field

from rocketeval.benchmarks.columns import (
    TableColumns,
    choose_columns,
    describe_columns,
    is_missing,
    snake,
)
from rocketeval.benchmarks.data import (
    DataBenchmark,
    DataOptions,
    Example,
    Kept,
    Skipped,
    as_text,
    content_id,
)
from rocketeval.benchmarks.messages import (
    RowError,
    from_json,
    is_messages,
    label_in_column,
    mapped,
    read_turns,
    split_turns,
)
from rocketeval.benchmarks.reading import Row, as_question, field_hint, naming
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
from rocketeval.items import ParsedItem
from rocketeval.records import Label, Query, Response, Turn

NO_RESPONSE = "no response"
NOT_ITEMS = "the checklist is not a list of items, and is not used"
NUMBERING = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")


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

    @cached_property
    def columns(self) -> TableColumns:
        """The column of each part, chosen from the first rows."""
        rows = [row for row in islice(self._rows(0), SAMPLE_ROWS) if isinstance(row, Row)]
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
    def name(self) -> str:
        """The name of the first file, or of the dataset."""
        return self.options.dataset or self.files[0].name

    def mapping(self) -> Mapping[str, str]:
        """Return the column of each part."""
        many = f"the name of each of {len(self.files)} files"
        whose = "" if self.options.candidate or not self.files else ", the file's name"
        one = f"none: all responses are {self._alone(0)!r}{whose}"
        alone = many if len(self.files) > 1 else one
        return dict(describe_columns(self.columns, alone))

    def settings(self) -> Mapping[str, object]:
        """Return the mapping as options."""
        written: dict[str, object] = {"columns": self.columns.option()}
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
            return dataset_rows(self.options.dataset, self.options.split)
        return self.rows(self.files[place])

    def _alone(self, place: int) -> str:
        return self.options.candidate or (stem_of(self.files[place]) if self.files else "responses")

    def _example(self, row: Row, place: int) -> Kept:
        columns = self.columns
        query, spoken, notes = self._query(row)
        found = dict(self._responses(row, spoken, place))
        context = self._context(row)
        answered = {name: text for name, text in found.items() if text is not None}
        if not answered:
            return Skipped(row.where, NO_RESPONSE)
        if len(answered) < len(found):
            notes = (*notes, "a candidate's cell is empty: it has no response to this query")
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
            notes=(*notes, *dropped),
            bad_label=label if isinstance(label, BadRow) else None,
        )

    def _query(self, row: Row) -> tuple[Query, str | None, tuple[str, ...]]:
        columns = self.columns
        cell = self._cell(row, columns.query)
        value = from_json(cell)
        history: tuple[Turn, ...] = ()
        spoken: str | None = None
        notes: tuple[str, ...] = ()
        if is_messages(value):
            split = split_turns(*read_turns(value, columns.query))
            text, history, spoken, notes = split.query, split.history, split.response, split.notes
        elif isinstance(value, Mapping) and len(value) == 1:
            text = as_text(next(iter(value.values())))
        else:
            text = "" if cell is None else as_text(cell)
        if not text.strip():
            raise RowError("the query is empty", f"column {columns.query!r}")
        system = row.values.get(columns.system) if columns.system else None
        if isinstance(system, str) and system.strip():
            history = (Turn("system", system), *history)
        name = row.values.get(columns.id) if columns.id else None
        if columns.id and (name is None or not str(name).strip()):
            raise RowError("the id is empty", f"column {columns.id!r}")
        query = Query(
            id=str(name) if columns.id else content_id(text, history),
            text=text,
            history=history,
            reference=text_or_none(row, columns.reference),
            category=text_or_none(row, columns.category),
        )
        return query, spoken, notes

    def _responses(
        self, row: Row, spoken: str | None, place: int
    ) -> Iterator[tuple[str, str | None]]:
        columns = self.columns
        for name, column in columns.wide.items():
            yield name, _response_text(row.values.get(column))
        if columns.wide:
            return
        text = spoken
        if columns.response is not None:
            text = _response_text(self._cell(row, columns.response))
        names = [str(self._cell(row, column) or "").strip() for column in columns.candidate]
        if columns.candidate and not all(names):
            raise RowError("the candidate is empty", f"column {columns.candidate[0]!r}")
        yield " / ".join(names) or self._alone(place), text

    def _cell(self, row: Row, column: str) -> object:
        if column not in row.values:
            raise RowError(f"the field {column!r} is missing", "", field_hint(column, row.values))
        return row.values[column]

    def _context(self, row: Row) -> tuple[str, ...] | None:
        value = from_json(row.values.get(self.columns.context)) if self.columns.context else None
        if not value:
            return None
        texts = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
        return tuple(as_text(each) for each in texts)

    def _items(self, row: Row) -> tuple[tuple[ParsedItem, ...], tuple[str, ...]]:
        value = from_json(row.values.get(self.columns.checklist)) if self.columns.checklist else ""
        if isinstance(value, str):
            value = [NUMBERING.sub("", line) for line in value.splitlines() if line.strip()]
        if not value:
            return (), ()
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            return (), (NOT_ITEMS,)
        return tuple(ParsedItem(as_question(each)) for each in value if each.strip()), ()

    def _label(self, row: Row, query_id: str, candidate: str) -> Label | BadRow | None:
        column = self.columns.label
        value = row.values.get(column) if column else None
        if column is None or is_missing(value):
            return None
        by = row.values.get(self.columns.labeler) if self.columns.labeler else None
        labeler = snake(column) if is_missing(by) else str(by)
        return label_in_column(row, column, query_id, candidate, labeler)


def text_or_none(row: Row, column: str | None) -> str | None:
    """Return the text of a cell, such as a reference; None if it is empty."""
    value = from_json(row.values.get(column)) if column else None
    if isinstance(value, list) and value and all(isinstance(each, str) for each in value):
        value = value[0] if len(value) == 1 else "\n".join(value)
    return None if value is None or value == "" else as_text(value)


def _response_text(value: object) -> str | None:
    """Return a response as text; None if there is none."""
    if value is None or value == "":
        return None
    decoded = from_json(value)
    if is_messages(decoded):
        turns, _ = read_turns(decoded, "response")
        if not isinstance(value, str) or turns[-1].role == "assistant":
            return turns[-1].content
    # Text stays as it is, also if it is JSON: the model wrote it.
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], str):
        return value[0]
    return as_text(value)


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
