"""Rows of data files: CSV, TSV, JSON lines, JSON, YAML, Parquet, Arrow and Excel, one at a time.

Only JSON arrays and YAML are read as a whole. A row that cannot be read is a `BadRow`, so that one
broken line does not hide the others; a file that cannot be read is a BenchmarkError.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import orjson

from rocketeval.benchmarks.reading import (
    MOST_CHECKED,
    ONE_KEY,
    UNREADABLE,
    Row,
    cannot_read,
    is_inspect_log,
    is_utf16,
    nan_as_null,
    not_utf8,
    open_bytes,
    refuse_repeated,
    shown_value,
)
from rocketeval.errors import BenchmarkError
from rocketeval.resources import repeated_key
from rocketeval.text import join_words

__all__ = ["BadRow", "Rows", "Sample", "data_files", "read_document", "row_format", "rows_of"]

SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".xlsx": "excel",
    ".eval": "eval",
}
"""Format of each file name suffix; a further .gz is allowed for text."""
SHARD = re.compile(r"-\d{5}-of-\d{5}$")
"""End of the name of one of the files into which a Hugging Face dataset is split."""
SAMPLE_ROWS = 2000
"""Rows that detection looks at."""
BATCH_ROWS = 256
CONFIGS = "rocketeval.yaml"
"""End of the names of configs, which are no data."""
DESCRIPTIONS = ("dataset_info.json", "state.json", "dataset_dict.json")
"""What a Hugging Face dataset keeps next to its Arrow files."""
WRAPPERS = ("data", "rows", "examples", "items", "records", "samples", "results", "test_cases")
"""Keys under which a JSON document may hold its rows."""


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row with a mistake."""

    where: str
    kind: str
    """The mistake, in words that other rows share."""
    detail: str = ""
    """What this row holds instead."""
    hint: str = ""


Rows = Iterator[Row | BadRow]
NOT_JSON = "the line is not valid JSON"
KEY = "the name of a field is not text"


def row_format(path: Path) -> str | None:
    """Return the format that the name of a file states; None if it is not a data file."""
    return SUFFIXES.get(Path(path.name.removesuffix(".gz")).suffix.lower())


def stem_of(path: Path) -> str:
    """Return a file's name without its suffixes and the number of a shard.

    >>> stem_of(Path("a/gpt-4.1.jsonl.gz")), stem_of(Path("train-00001-of-00002.parquet"))
    ('gpt-4.1', 'train')
    """
    return SHARD.sub("", Path(path.name.removesuffix(".gz")).stem)


def data_files(path: Path) -> list[Path]:
    """Return the data files at `path`: itself, or the visible ones in a folder and below it."""
    if not path.is_dir():
        return [path]
    found = [each for each in _visible_files(path) if row_format(each) and not _is_cache(each)]
    described = any(each.suffix == ".arrow" for each in found)
    return [each for each in found if not (described and each.name in DESCRIPTIONS)]


def _is_cache(path: Path) -> bool:
    """Return whether a file holds what the package `datasets` computed, not the dataset."""
    return path.suffix == ".arrow" and path.name.startswith("cache-")


def other_files(path: Path) -> Iterator[str]:
    """Yield the visible files of a folder that are not data, except notes such as README.md."""
    for each in _visible_files(path) if path.is_dir() else ():
        if _is_cache(each) or not (is_notes(each) or row_format(each)):
            yield str(each.relative_to(path))


def is_notes(path: Path) -> bool:
    """Return whether a file is certainly no data, such as README.md or a script."""
    return path.suffix.lower() in (".md", ".py", ".sh", ".html", ".log", ".lock", ".js")


def _visible_files(folder: Path) -> list[Path]:
    """Return the files in a folder and below it, without hidden ones, configs and runs."""
    runs = {
        each.parent for each in folder.rglob("run.yaml") if (each.parent / "manifest.json").exists()
    } - {folder}
    return sorted(
        each
        for each in folder.rglob("*")
        if each.is_file()
        and not any(part.startswith(".") for part in each.relative_to(folder).parts)
        and not each.name.endswith(CONFIGS)
        and runs.isdisjoint(each.parents)
    )


@dataclass(frozen=True)
class Sample:
    """What detection sees: the path, its data files, and the first rows of the first one."""

    path: Path

    @cached_property
    def files(self) -> list[Path]:
        """The data files."""
        return data_files(self.path)

    @cached_property
    def names(self) -> set[str]:
        """Names of the files, relative to the folder, without .gz."""
        if not self.path.is_dir():
            return {self.path.name.removesuffix(".gz")}
        return {str(each.relative_to(self.path)).removesuffix(".gz") for each in self.files}

    @cached_property
    def document(self) -> Mapping[str, Any]:
        """The single JSON or YAML object that the first file holds; empty for rows."""
        if not self.files or row_format(self.files[0]) not in ("json", "yaml"):
            return {}
        found = read_document(self.files[0])
        return found if isinstance(found, dict) else {}

    @cached_property
    def rows(self) -> list[Row]:
        """The first readable rows."""
        if not self.files or row_format(self.files[0]) in (None, "eval"):
            return []
        if self.document and not _lists_in(self.document):
            return []
        read = rows_of(self.files[0])
        return [row for row in islice(read, SAMPLE_ROWS) if isinstance(row, Row)]

    @cached_property
    def first_problem(self) -> BadRow | None:
        """The first row that cannot be read."""
        if not self.files or row_format(self.files[0]) in (None, "eval"):
            return None
        read = islice(rows_of(self.files[0]), SAMPLE_ROWS)
        return next((row for row in read if isinstance(row, BadRow)), None)

    def has(self, *keys: str) -> bool:
        """Return whether the first row has all of these fields."""
        return bool(self.rows) and all(key in self.rows[0].values for key in keys)


def rows_of(path: Path, name: str | None = None) -> Rows:
    """Yield the rows of a data file; `name` is how messages call it (default: its name)."""
    form, name = row_format(path), name or path.name
    if form == "jsonl":
        return _guarded(path, _json_lines(path, name))
    if form in ("json", "yaml"):
        return _document_rows(path, name)
    if form in ("parquet", "arrow"):
        return _guarded(path, _arrow_rows(path, name, form))
    if form in ("csv", "tsv", "excel"):
        from rocketeval.benchmarks.sheets import csv_rows, excel_rows

        if form == "excel":
            return _guarded(path, excel_rows(path, name))
        return _guarded(path, csv_rows(path, name, "\t" if form == "tsv" else None))
    raise not_a_data_file(path)


def not_a_data_file(path: Path) -> BenchmarkError:
    """Return the error for a file whose suffix names no format."""
    return BenchmarkError(
        f"{path} is not a data file: its name does not end in a known suffix.",
        hint=f"Rename or convert it. Known: {', '.join(SUFFIXES)}, and .gz of those with text.",
    )


def no_rows(path: Path) -> BenchmarkError:
    """Return the error for a data file without a row: nothing at all, or only a header."""
    with open_bytes(path) as stream:
        if not stream.read(1 << 20).strip():
            return _empty(path)
    header = "a header but " if row_format(path) in ("csv", "tsv", "excel") else ""
    return BenchmarkError(
        f"{path} has {header}no rows.", hint="Add rows, or check that this is the right file."
    )


def _empty(path: Path) -> BenchmarkError:
    return BenchmarkError(f"{path} is empty.", hint="Write or download it again.")


def _guarded(path: Path, rows: Rows) -> Rows:
    try:
        yield from rows
    except UNREADABLE as error:
        raise cannot_read(path, error) from None


def _json_lines(path: Path, name: str) -> Rows:
    read = 0
    with open_bytes(path) as stream:
        for number, line in enumerate(stream, 1):
            if number == 1 and is_utf16(line):
                raise not_utf8(line, str(path))
            content = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            read += len(line)
            if content.strip():
                yield _json_row(content, f"{name}:{number}", checked=read <= MOST_CHECKED)


def _json_row(content: bytes, where: str, *, checked: bool) -> Row | BadRow:
    """Return the row of a line; if `checked`, a key that occurs twice is a mistake."""
    try:
        values = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        return _broken(content, where, error)
    if isinstance(values, dict):
        problem = repeated_key(content) if checked else None
        exact = json.loads(content) if _has_long_number(values) else values
        return BadRow(where, problem, "", ONE_KEY) if problem else Row(exact, where)
    hint = "Write one JSON object per line; rename a JSON array to .json."
    return BadRow(where, "the line is not a JSON object", shown_value(values), hint)


def _has_long_number(values: Mapping[str, object]) -> bool:
    """Return whether a field holds an integer of more than 64 bits, which orjson makes a float."""
    return any(isinstance(value, float) and abs(value) >= 1 << 63 for value in values.values())


def _broken(content: bytes, where: str, error: orjson.JSONDecodeError) -> BadRow:
    text = content.decode("utf-8", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in content:
        problem = not_utf8(content, where)
        found = problem.message.removeprefix(f"{where}: not UTF-8 text: ").rstrip(".")
        return BadRow(where, "the line is not UTF-8 text", found, problem.hint)
    place = min(error.pos, len(text.rstrip()))
    near = text[max(0, place - 20) : place + 20].strip()
    if text[place:].startswith(("NaN", "Infinity", "-Infinity")):
        hint = "JSON has no NaN: write null, or the correct number."
        return BadRow(where, "the line holds NaN or Infinity", f"near {near!r}", hint)
    return BadRow(
        where,
        NOT_JSON,
        f"{error.msg.rstrip('.')}, near {near!r}",
        "Correct the lines; a cut last line means that the file is incomplete.",
    )


def read_document(path: Path) -> object:
    """Return the content of a JSON or YAML file; JSON lines become a list.

    Only logs of Inspect may hold NaN and Infinity.
    """
    try:
        with open_bytes(path) as stream:
            content = stream.read().removeprefix(b"\xef\xbb\xbf")
    except UNREADABLE as error:
        raise cannot_read(path, error) from None
    if not content.strip():
        raise _empty(path)
    if row_format(path) == "yaml":
        from rocketeval.resources import read_yaml

        return read_yaml(path, "data file", hint="Check that it is complete.")
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        lines = [(n, line) for n, line in enumerate(content.splitlines(), 1) if line.strip()]
        if len(lines) > 1 and isinstance(_json_row(lines[0][1], "", checked=False), Row):
            small = len(content) <= MOST_CHECKED
            rows = (_json_row(line, f"{path.name}:{n}", checked=small) for n, line in lines)
            return [row.values if isinstance(row, Row) else row for row in rows]
        if is_utf16(content):
            raise not_utf8(content, str(path)) from None
        with suppress(ValueError):
            log = nan_as_null(content)
            if is_inspect_log(log):
                return log
        problem = _broken(content, path.name, error)
        cut = "The file may be cut off: write or download it again."
        raise BenchmarkError(
            f"{path.name} {problem.kind.removeprefix('the line ')}: {problem.detail}.",
            hint=cut if problem.kind == NOT_JSON else problem.hint,
        ) from None
    if len(content) <= MOST_CHECKED:
        refuse_repeated(content, path.name)
    listed = found if isinstance(found, list) else []
    long = any(isinstance(each, dict) and _has_long_number(each) for each in listed)
    return json.loads(content) if long else found


def _lists_in(document: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return the lists that may be the rows of a document, by key; empty ones only if all are."""
    found = {key: document[key] for key in WRAPPERS if isinstance(document.get(key), list)}
    return {key: rows for key, rows in found.items() if rows} or found


def _document_rows(path: Path, name: str) -> Rows:
    found = read_document(path)
    if isinstance(found, dict):
        lists = _lists_in(found)
        if len(lists) != 1:
            keys = join_words(map(repr, lists or found), most=12) or "no field at all"
            which = "several of its fields may" if lists else "none of its fields is known to"
            raise BenchmarkError(
                f"{path.name} is a JSON object, and {which} hold rows (it has {keys}).",
                hint="Give a JSON array of objects, or JSON lines (.jsonl).",
            )
        found = next(iter(lists.values()))
    if not isinstance(found, list):
        raise BenchmarkError(
            f"{path.name}: expected a JSON array of objects, but found {shown_value(found)}."
        )
    for number, values in enumerate(found, 1):
        where = f"{name}[{number}]"
        if isinstance(values, BadRow):
            yield values
        elif isinstance(values, dict):
            strange = [key for key in values if not isinstance(key, str)]
            what = shown_value(strange[0]) if strange else ""
            hint = "Put it in quotes."
            yield BadRow(where, KEY, what, hint) if strange else Row(values, where)
        else:
            hint = 'Write an array of objects: [{"question": "...", "output": "..."}, ...].'
            yield BadRow(where, "the element is not a JSON object", shown_value(values), hint)


def header_names(path: Path, cells: list[str]) -> list[str]:
    """Return the names of columns; BenchmarkError if two are the same."""
    names = [cell.strip() for cell in cells]
    twice = sorted(name for name, count in Counter(names).items() if name and count > 1)
    if twice:
        raise BenchmarkError(
            f"{path.name} has two columns named {twice[0]!r}.", hint="Rename one of them."
        )
    # An unnamed first column is the index that data frames write.
    return [name or f"unnamed {place}" for place, name in enumerate(names, 1)]


def _arrow_rows(path: Path, name: str, form: str) -> Rows:
    import pyarrow as pa

    number = 0
    try:
        for batch in _batches(path, form):
            # Without this, damaged offsets are errors of the interpreter.
            batch.validate(full=True)
            header_names(path, batch.schema.names)
            for values in batch.to_pylist():
                number += 1
                yield Row(without_nan(values), f"{name}[{number}]")
    except pa.ArrowException as error:
        raise BenchmarkError(
            f"{path.name} is not a readable {form.title()} file: {str(error).splitlines()[0]}",
            hint="Write or download it again.",
        ) from None


def _batches(path: Path, form: str) -> Iterator[Any]:
    import pyarrow as pa

    if form == "parquet":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as file:
            yield from file.iter_batches(BATCH_ROWS)
        return
    with pa.OSFile(str(path)) as source:
        try:
            reader = pa.ipc.open_stream(source)
        except pa.ArrowInvalid:
            source.seek(0)
            file = pa.ipc.open_file(source)
            yield from (file.get_batch(place) for place in range(file.num_record_batches))
            return
        for batch in reader:
            for start in range(0, batch.num_rows, BATCH_ROWS):
                yield batch.slice(start, BATCH_ROWS)


def without_nan(values: Mapping[str, object]) -> dict[str, object]:
    """Return a row in which NaN, a data frame's missing value, is None."""
    return {
        name: None if isinstance(value, float) and math.isnan(value) else value
        for name, value in values.items()
    }
