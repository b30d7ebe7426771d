"""Snapshots: data in memory, such as a frame or a list of dicts, written to a file to be read."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from numbers import Real
from pathlib import Path
from typing import Any

from rocketeval.errors import ConfigError

ACCEPTED = (
    "Give a list of dicts, a data frame (pandas, polars, pyarrow or another that exports Arrow), a "
    "Hugging Face dataset, or the path of a file."
)


def snapshot(data: object, folder: Path) -> Path:
    """Write data in memory to a file in `folder`, and return its path."""
    import pyarrow as pa

    names = getattr(data, "column_names", getattr(data, "columns", ()))
    _refuse_repeated(names if isinstance(names, Iterable) else ())
    if hasattr(data, "__arrow_c_stream__"):
        try:
            reader = pa.RecordBatchReader.from_stream(data)
            return _write_parquet(reader, folder)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            # Columns of mixed types: written row by row below.
            pass
    if hasattr(data, "to_dict") and hasattr(data, "columns"):
        index = getattr(data, "index", None)
        named = any(name is not None for name in getattr(index, "names", ()))
        # A named index is a column, as Parquet has it.
        frame: Any = data.reset_index() if named and hasattr(data, "reset_index") else data
        data = frame.to_dict("records")
    elif hasattr(data, "to_dicts"):
        data = data.to_dicts()
    if not isinstance(data, Iterable) or isinstance(data, str | bytes | Mapping):
        raise ConfigError(f"Data of type {type(data).__name__} cannot be read.", hint=ACCEPTED)
    rows = iter(data)
    first = next(rows, None)
    if first is None:
        raise ConfigError("The data has no rows.", hint=ACCEPTED)
    if not isinstance(first, Mapping):
        raise ConfigError(f"The rows are of type {type(first).__name__}, not dicts.", hint=ACCEPTED)
    return _write_lines(chain([first], rows), folder)


def _refuse_repeated(names: Iterable[object]) -> None:
    """Raise ConfigError if two columns have the same name."""
    seen: set[str] = set()
    for name in map(str, names):
        if name in seen:
            raise ConfigError(
                f"The data has two columns named {name!r}.", hint="Rename one of them."
            )
        seen.add(name)


def _refuse_infinite(row: Mapping[str, Any], number: int) -> None:
    """Raise ConfigError for an infinite number, which JSON would make null."""
    for name, value in row.items():
        if isinstance(value, Real) and not isinstance(value, int) and math.isinf(value):
            raise ConfigError(
                f"Row {number} of the data: {name!r} is {value}.",
                hint="Give a finite number, or None.",
            )


@contextmanager
def _replacing(folder: Path, name: str) -> Iterator[Path]:
    """Yield a new file that takes the place of the earlier snapshot once it is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    fresh = folder / f".{name}.tmp"
    try:
        yield fresh
        fresh.replace(folder / name)
        for other in {"data.jsonl", "data.parquet"} - {name}:
            (folder / other).unlink(missing_ok=True)
    finally:
        fresh.unlink(missing_ok=True)


def _write_parquet(reader: Any, folder: Path) -> Path:
    import pyarrow.parquet as pq

    with (
        _replacing(folder, "data.parquet") as fresh,
        pq.ParquetWriter(fresh, reader.schema) as writer,
    ):
        for batch in reader:
            writer.write_batch(batch)
    return folder / "data.parquet"


def _write_lines(rows: Iterable[Mapping[str, Any]], folder: Path) -> Path:
    import orjson

    from rocketeval.benchmarks.row_files import without_nan

    options = orjson.OPT_APPEND_NEWLINE | orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS
    with _replacing(folder, "data.jsonl") as fresh, fresh.open("wb") as stream:
        for number, row in enumerate(rows, 1):
            if not isinstance(row, Mapping):
                raise ConfigError(
                    f"Row {number} of the data is of type {type(row).__name__}, not a dict.",
                    hint=ACCEPTED,
                )
            if not all(isinstance(name, str) for name in row):
                _refuse_repeated(row)
            _refuse_infinite(row, number)
            try:
                stream.write(orjson.dumps(without_nan(row), option=options))
            except TypeError as error:
                raise ConfigError(
                    f"Row {number} of the data holds a value that is not text, a number, a list or "
                    f"a dict: {error}.",
                    hint="Convert it to text.",
                ) from None
    return folder / "data.jsonl"
