"""Files that grow by a line: one write each, and a line that a kill tore apart is passed over."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson


def append_line(path: Path, row: Mapping[str, Any]) -> None:
    """Add a line of JSON, durably."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # The newline in front keeps a torn line from swallowing this one.
    line = b"\n" + orjson.dumps(row) + b"\n"
    with path.open("ab", buffering=0) as stream:
        stream.write(line)
        os.fsync(stream.fileno())


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
