"""Files that grow by a line: one write each, and a line that a kill tore apart is passed over."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import orjson


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """Add a line of JSON, durably."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+", buffering=0) as stream:
        # A torn line is ended, or it would swallow this one.
        stream.write(_end_of_torn(stream) + orjson.dumps(row) + b"\n")
        os.fsync(stream.fileno())


def _end_of_torn(stream: IO[bytes]) -> bytes:
    """Return what ends the last line of a file, where a kill left it without an end."""
    if stream.seek(0, os.SEEK_END) == 0:
        return b""
    stream.seek(-1, os.SEEK_END)
    return b"" if stream.read(1) == b"\n" else b"\n"


def read_lines(path: Path) -> Iterator[Any]:
    """Yield what each whole line holds; nothing if there is no file."""
    if not path.exists():
        return
    for line in path.read_bytes().split(b"\n"):
        try:
            if line:
                yield orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
