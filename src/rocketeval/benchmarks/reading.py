"""Reading of JSON lines and CSV, with errors that name the line."""

from __future__ import annotations

import csv
import gzip
import json
import math
import shlex
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import orjson

from rocketeval.config import MOST_ON_SCALE
from rocketeval.errors import BenchmarkError, Hint
from rocketeval.items import ParsedItem, parse_item
from rocketeval.records import Turn
from rocketeval.resources import repeated_key
from rocketeval.text import join_words, near_name

T = TypeVar("T")
_MISSING = object()
_BOM = b"\xef\xbb\xbf"
UNREADABLE = (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error)
MOST_CHECKED = 1 << 20
"""Bytes at the start of a JSON file in which keys that occur twice are looked for."""
ONE_KEY = "Keep one of them: JSON readers would use the last and drop the other."
_TEXT = (str, int)
_NUMBER = (int, float, str)
PLAIN_NUMBER = "a plain number such as 4 or 3.5"
"""What a label is: neither a percentage, nor with a decimal comma, nor true or false."""
_EXPECTED: Mapping[object, str] = {
    _TEXT: "text",
    _NUMBER: "a number",
    list: "a list",
    dict: "an object",
    (list, dict): "a list or an object",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object with its file and line."""

    values: Mapping[str, object]
    where: str
    """`file:line`, for error messages."""
    uncomputed: frozenset[str] = frozenset()
    """Fields that are None because a formula of an Excel file has no stored value."""

    def get(self, name: str, kind: type[T] | tuple[type[T], ...], default: Any = _MISSING) -> T:
        """Return the field `name`; raise BenchmarkError if it is missing or of another type."""
        value = self.values.get(name, _MISSING)
        if value is _MISSING or (value is None and default is not _MISSING):
            if default is _MISSING:
                raise BenchmarkError(
                    f"{self.where}: the field {name!r} is missing.",
                    hint=field_hint(name, self.values),
                )
            return cast(T, default)
        # In Python bool is an int, but `true` in place of a number is a mistake.
        if isinstance(value, bool) or not isinstance(value, kind):
            raise BenchmarkError(
                f"{self.where}: the field {name!r} should be {_EXPECTED[kind]}, "
                f"but is {shown_value(value)}.",
                hint='Write "" for an empty text, or remove the row.'
                if value is None
                else f"Write {PLAIN_NUMBER}." * (kind is _NUMBER),
            )
        return value

    def text(self, name: str, default: Any = _MISSING) -> str:
        """Return a string field; an integer is converted to text."""
        value: Any = self.get(name, _TEXT, default)
        return cast(str, value) if value is default else str(value)

    def name(self, name: str, default: Any = _MISSING) -> str:
        """Return a non-blank string field, such as an id or a candidate."""
        if default is _MISSING and self.values.get(name, _MISSING) is None:
            raise BenchmarkError(f"{self.where}: the field {name!r} is null.")
        value = self.text(name, default)
        if not value.strip():
            raise BenchmarkError(f"{self.where}: the field {name!r} is empty.")
        return value

    def number(self, name: str) -> float:
        """Return a finite number; text such as "3.5" is converted."""
        value: Any = self.get(name, _NUMBER)
        return as_number(value, f"{self.where}: the field {name!r}")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        values: list[Any] = self.get(name, list)
        wrong = [value for value in values if not isinstance(value, str)]
        if wrong:
            raise BenchmarkError(
                f"{self.where}: the field {name!r} must be a list of texts, but holds "
                f"{shown_value(wrong[0])}."
            )
        return tuple(values)

    def items(self, name: str) -> list[ParsedItem]:
        """Return a list of items, each a text or an object."""
        values: list[Any] = self.get(name, list)
        found = []
        for number, value in enumerate(values, 1):
            try:
                # The author stage reports an empty text, as it does for a list without items.
                found.append(ParsedItem(value) if isinstance(value, str) else parse_item(value))
            except ValueError as error:
                raise BenchmarkError(
                    f"{self.where}: item {number} of {name!r}: {error}",
                    hint="docs/howto/rubrics.md describes items.",
                ) from None
        return found

    def passages(self, name: str) -> tuple[str, ...] | None:
        """Return a list of passages, given as one text, or as texts or objects with a text."""
        value = self.values.get(name)
        if value is None:
            return None
        given = [value] if isinstance(value, str) else value
        if not isinstance(given, list):
            raise BenchmarkError(
                f"{self.where}: the field {name!r} must be a list of passages, but is "
                f"{shown_value(value)}."
            )
        return tuple(self._passage(each, name) for each in given)

    def _passage(self, value: object, name: str) -> str:
        for key in ("text", "content", "context"):
            if isinstance(value, dict) and isinstance(value.get(key), str):
                value = value[key]
        if not isinstance(value, str):
            raise BenchmarkError(
                f"{self.where}: a passage of {name!r} must be a text, but is {shown_value(value)}."
            )
        return value

    def further(self, known: Collection[str]) -> dict[str, object]:
        """Return all fields except the `known` ones."""
        return {name: value for name, value in self.values.items() if name not in known}

    def turns(self, name: str) -> tuple[Turn, ...]:
        """Return a list of `{role, content}` messages."""
        messages: list[Any] = self.get(name, list)
        if not all(
            isinstance(m, dict)
            and isinstance(m.get("role"), str)
            and isinstance(m.get("content"), str)
            for m in messages
        ):
            raise BenchmarkError(
                f"{self.where}: the field {name!r} must be a list of {{role, content}} messages."
            )
        return tuple(Turn(message["role"], message["content"]) for message in messages)


def field_hint(name: str, known: Iterable[str]) -> str:
    """Return a hint that names the field nearest to `name`, and lists all of them."""
    names = [str(each) for each in known]
    meant = near_name(name, names)
    guess = f"Did you mean {meant!r}? " if meant else ""
    return f"{guess}It has: {join_words(names, most=30)}."


def as_number(value: Any, what: str) -> float:
    """Return `value` as a finite number; raise BenchmarkError that names `what` otherwise."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise BenchmarkError(
            f"{what} should be a number, but is {shown_value(value)}.",
            hint=f"Write {PLAIN_NUMBER}.",
        )
    if abs(number) > MOST_ON_SCALE:
        raise BenchmarkError(
            f"{what} is {number:g}; numbers from -{MOST_ON_SCALE:g} to {MOST_ON_SCALE:g} can be "
            "used.",
            hint="Correct it, or remove the row.",
        )
    return number


def find(folder: Path, *names: str) -> Path | None:
    """Return the first of `names` that exists in `folder`, gzipped or not."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.exists():
                return path
    return None


def need(folder: Path, *names: str) -> Path:
    """Like `find`, but raise BenchmarkError if none exists."""
    found = find(folder, *names)
    if found is None:
        raise BenchmarkError(
            f"There is no {' or '.join(names)} in {folder}.",
            hint="Check `benchmark.path` and `benchmark.kind` in the config.",
        )
    return found


def need_folder(folder: Path) -> Path:
    """Return `folder`; raise BenchmarkError if it is not a folder."""
    if not folder.is_dir():
        raise BenchmarkError(
            f"There is no benchmark folder {folder}.",
            hint="Check `benchmark.path`; `rocketeval init` writes an example to start from.",
        )
    return folder


def visible(paths: Iterator[Path]) -> list[Path]:
    """Return the sorted paths without hidden files."""
    return sorted(path for path in paths if not path.name.startswith("."))


def files_in(folder: Path, *endings: str) -> dict[Path, str]:
    """Return the visible files with one of `endings`, gzipped or not, and their stems."""
    found: dict[Path, str] = {}
    for path in visible(folder.iterdir()):
        plain = path.name.removesuffix(".gz")
        for ending in endings:
            if plain.endswith(ending):
                found[path] = plain.removesuffix(ending)
    return found


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSON-lines file or a JSON array, gzipped or not."""
    read = 0
    try:
        with open_bytes(path) as stream:
            if path.name.removesuffix(".gz").endswith(".json"):
                yield from _array(path, stream.read().removeprefix(_BOM))
                return
            for number, line in enumerate(stream, 1):
                content = line.removeprefix(_BOM) if number == 1 else line
                read += len(line)
                if content.strip():
                    row = _row(content, f"{path.name}:{number}")
                    if read <= MOST_CHECKED:
                        refuse_repeated(content, row.where)
                    yield row
    except UNREADABLE as error:
        raise cannot_read(path, error) from None


def open_bytes(path: Path) -> BinaryIO:
    """Open a file for reading, decompressing it if it is gzipped."""
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")


def cannot_read(path: Path, error: Exception) -> BenchmarkError:
    """Return the error for a file that cannot be opened, decoded or decompressed."""
    if isinstance(error, UnicodeDecodeError):
        return _not_utf8_in(path, error)
    hints = {
        PermissionError: "Check its permissions.",
        EOFError: "The file is truncated: copy or download it again.",
        gzip.BadGzipFile: "Its name ends in .gz: rename it, or compress it.",
        zlib.error: "The file is damaged: copy or download it again.",
    }
    hint = next((text for kind, text in hints.items() if isinstance(error, kind)), "")
    why = getattr(error, "strerror", None) or str(error)
    if isinstance(error, gzip.BadGzipFile):
        why = "it is not gzipped"
    return BenchmarkError(f"Cannot read {path}: {why.rstrip('.')}.", hint=hint)


def _not_utf8_in(path: Path, error: UnicodeDecodeError) -> BenchmarkError:
    """Return the error for the first line that is not UTF-8; `error` knows only a part."""
    with suppress(OSError, EOFError, zlib.error), open_bytes(path) as stream:
        for number, line in enumerate(stream, 1):
            if is_utf16(line):
                break
            try:
                line.decode("utf-8")
            except UnicodeDecodeError:
                return not_utf8(line, f"{path}:{number}")
    return not_utf8(error.object, str(path))


def _row(line: bytes, where: str) -> Row:
    try:
        values = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise _not_json(line, where, error) from None
    if not isinstance(values, dict):
        raise BenchmarkError(
            f"{where}: expected one JSON object per line, but found {shown_value(values)}.",
            hint='Write each row on its own line: {"...": ...}, without enclosing brackets.',
        )
    return Row(values, where)


def _array(path: Path, content: bytes) -> Iterator[Row]:
    try:
        rows = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise _not_json(content, path.name, error) from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BenchmarkError(
            f"{path.name}: expected a JSON array of objects.",
            hint="For one object per line, rename it to .jsonl.",
        )
    if len(content) <= MOST_CHECKED:
        refuse_repeated(content, path.name)
    for number, values in enumerate(rows, 1):
        yield Row(values, f"{path.name}[{number}]")


def refuse_repeated(content: bytes, where: str) -> None:
    """Raise BenchmarkError for a key that an object has twice in valid JSON."""
    problem = repeated_key(content)
    if problem is not None:
        raise BenchmarkError(f"{where}: {problem}.", hint=ONE_KEY)


def _not_json(content: bytes, where: str, error: orjson.JSONDecodeError) -> BenchmarkError:
    """Return an error that names the position of invalid JSON."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return not_utf8(content, where)
    place = min(error.pos, len(text.rstrip()))
    if text[place:].startswith(("NaN", "Infinity", "-Infinity")):
        return BenchmarkError(
            f"{where}: JSON has no NaN and no Infinity (character {place + 1}).",
            hint="Remove the row, or write the correct number.",
        )
    near = text[max(0, place - 20) : place + 20].strip()
    return BenchmarkError(
        f"{where}: not valid JSON: {error.msg.rstrip('.')}, at character {place + 1}, near "
        f"{near!r}.",
        hint="Correct the line, or remove it.",
    )


def nan_as_null(content: bytes) -> object:
    """Return JSON in which NaN and Infinity are None; raise ValueError for any other mistake.

    >>> nan_as_null(b'{"value": NaN}')
    {'value': None}
    """
    try:
        found = json.loads(content.decode("utf-8"), parse_constant=lambda _: None)
        # Python accepts more than JSON allows, such as texts that are not valid Unicode.
        return orjson.loads(json.dumps(found))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def is_inspect_log(document: object) -> bool:
    """Return whether a JSON document is a log of Inspect: it names the evaluated model."""
    about = document.get("eval") if isinstance(document, Mapping) else None
    return isinstance(about, Mapping) and "model" in about


def is_utf16(content: bytes) -> bool:
    """Return whether the start of a file is UTF-16, which Windows tools write."""
    return content.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in content[:100]


def not_utf8(content: bytes, where: str) -> BenchmarkError:
    """Return an error that names the first non-UTF-8 byte and how to convert the file."""
    name = where.rpartition(":")[0] or where
    to = f"-t UTF-8 {name} > converted{Path(name).suffix}"
    if is_utf16(content):
        return BenchmarkError(
            f"{where}: this is UTF-16, not UTF-8.", hint=f"Save it as UTF-8: iconv -f UTF-16 {to}"
        )
    try:
        content.decode("utf-8")
        place = 0
    except UnicodeDecodeError as error:
        place = error.start
    return BenchmarkError(
        f"{where}: not UTF-8 text: byte {place + 1} is 0x{content[place]:02x}, after "
        f"{content[max(0, place - 15) : place].decode('utf-8', 'replace')!r}.",
        hint=f"Save it as UTF-8. If it is Windows (CP1252) or Latin-1: iconv -f CP1252 {to}",
    )


def shown_value(value: Any) -> str:
    """Return a value as JSON, cut to 80 characters; an infinite number as Python writes it."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    try:
        written = orjson.dumps(value, default=str).decode()
    except TypeError:
        # Keys of YAML objects need not be texts.
        written = str(value)
    return written if len(written) <= 80 else written[:80] + "..."


def as_question(criterion: str) -> str:
    """Return a criterion as a yes/no question; one that is a question stays as it is.

    >>> as_question("Names Paris.")
    'Does the response meet this criterion? Names Paris.'
    """
    text = criterion.strip()
    return text if text.endswith("?") else f"Does the response meet this criterion? {text}"


SKIP_BAD = Hint.option("--skip-bad (`bad_rows: skip` in the config)", 'bad_rows="skip"')
"""The option that leaves rows with mistakes out."""


def format_option(kind: str) -> Hint:
    """Return the option that chooses a format."""
    return Hint.option(f"--format {kind}", f'format="{kind}"')


def naming(**columns: str) -> Hint:
    """Return the option that names the column of each part.

    >>> naming(query="the ask").python
    'columns={"query": "the ask"}'
    """
    named = [f"--column {shlex.quote(f'{part}={name}')}" for part, name in columns.items()]
    python = json.dumps(columns, ensure_ascii=False)
    return Hint.option(" ".join(named), f"columns={python}")


def naming_wide(columns: Sequence[str]) -> Hint:
    """Return the option that names the columns of a wide table."""
    python = json.dumps(list(columns), ensure_ascii=False)
    named = ",".join(f'"{each}"' if "," in each else each for each in columns)
    return Hint.option(f"--candidates {shlex.quote(named)}", f"candidates={python}")


def both(one: Hint, other: Hint) -> Hint:
    """Return two options; in Python they are two arguments."""
    return Hint.option(f"{one} {other}", f"{one.python}, {other.python}")


def readings(*options: tuple[Hint, str]) -> Hint:
    """Return the hint to choose one of several options, each with what it means."""
    lines = [
        part
        for option, meaning in options
        for part in ("\n  ", option, f"   ({meaning})" if meaning else "")
    ]
    return Hint.of("Choose a reading:", *lines)


MOST_IDS = 100_000
"""Number of rows to check for repeated ids after the first query with two ids."""


def why_not_ids(
    rows: Iterable[Row], column: str, query: str, candidate: Sequence[str]
) -> str | None:
    """Return why an id column cannot name queries; None if it can.

    It cannot if candidates answer the same query under different ids. Stops at the first id that
    repeats before, so that it remembers no more than one row per query.
    """
    ids: set[int] = set()
    asked: dict[int, int] = {}
    rest = iter(rows)
    for row in rest:
        name = _hash(row, column)
        if name in ids:
            return None
        ids.add(name)
        by = hash(tuple(str(row.values.get(each)) for each in candidate))
        if asked.setdefault(_hash(row, query), by) != by:
            if _are_new(rest, column, ids):
                return f"column {column!r} numbers rows, not queries"
            return f"column {column!r} gives one query two ids, the second in {row.where}"
    return None


def _are_new(rows: Iterable[Row], column: str, ids: set[int]) -> bool:
    """Return whether no id of the next rows repeats an earlier one."""
    for row in islice(rows, MOST_IDS):
        name = _hash(row, column)
        if name in ids:
            return False
        ids.add(name)
    return True


def _hash(row: Row, column: str) -> int:
    return hash(str(row.values.get(column)))
