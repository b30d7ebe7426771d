"""Read JSON lines and say exactly which line is wrong."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, TypeVar, cast

import orjson

from rocketeval.errors import BenchmarkError
from rocketeval.records import Turn

T = TypeVar("T")
_MISSING = object()


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object and the place it came from."""

    values: Mapping[str, Any]
    where: str
    """`file:line`, for error messages."""

    def get(self, name: str, kind: type[T] | tuple[type[T], ...], default: Any = _MISSING) -> T:
        """Return the field `name`; BenchmarkError if it is absent or of another kind."""
        value = self.values.get(name, _MISSING)
        if value is _MISSING or (value is None and default is not _MISSING):
            if default is _MISSING:
                raise BenchmarkError(f"{self.where}: the field {name!r} is missing.")
            return cast(T, default)
        # bool is an int to Python, but not to a person who wrote `true` where a number belongs.
        if isinstance(value, bool) or not isinstance(value, kind):
            raise BenchmarkError(f"{self.where}: the field {name!r} has the value {value!r:.80}.")
        return value

    def text(self, name: str, default: Any = _MISSING) -> str:
        """Return a string field; numbers are accepted as ids."""
        value: Any = self.get(name, (str, int), default)
        return cast(str, value) if value is default else str(value)

    def number(self, name: str) -> float:
        """Return a number, also one written as text."""
        value: Any = self.get(name, (int, float, str))
        try:
            return float(value)
        except ValueError:
            raise BenchmarkError(
                f"{self.where}: the field {name!r} is not a number: {value!r:.80}."
            ) from None

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        values: list[Any] = self.get(name, list)
        if not all(isinstance(value, str) for value in values):
            raise BenchmarkError(f"{self.where}: the field {name!r} must be a list of texts.")
        return tuple(values)

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


def find(folder: Path, *names: str) -> Path | None:
    """Return the first of `names` that exists in `folder`, gzipped or not."""
    for name in names:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.exists():
                return path
    return None


def need(folder: Path, *names: str) -> Path:
    """Like `find`, but BenchmarkError when none exists."""
    found = find(folder, *names)
    if found is None:
        raise BenchmarkError(
            f"There is no {' or '.join(names)} in {folder}.",
            hint="Check `benchmark.path` and `benchmark.kind` in the config.",
        )
    return found


def read_rows(path: Path) -> Iterator[Row]:
    """Yield the objects of a JSON-lines file (or of a JSON array), gzipped or not."""
    try:
        with _open(path) as stream:
            if path.name.removesuffix(".gz").endswith(".json"):
                yield from _array(path, stream.read())
                return
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield _row(line, f"{path.name}:{number}")
    except OSError as error:
        raise BenchmarkError(f"Cannot read {path}: {error.strerror or error}.") from None


def _open(path: Path) -> BinaryIO:
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")


def _row(line: bytes, where: str) -> Row:
    try:
        values = orjson.loads(line)
    except orjson.JSONDecodeError as error:
        raise BenchmarkError(f"{where}: not valid JSON ({error}).") from None
    if not isinstance(values, dict):
        raise BenchmarkError(f"{where}: expected one JSON object a line.")
    return Row(values, where)


def _array(path: Path, content: bytes) -> Iterator[Row]:
    try:
        rows = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        raise BenchmarkError(f"{path.name}: not valid JSON ({error}).") from None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise BenchmarkError(f"{path.name}: expected a JSON array of objects.")
    for number, values in enumerate(rows, 1):
        yield Row(values, f"{path.name}[{number}]")
