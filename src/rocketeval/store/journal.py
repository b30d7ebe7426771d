"""The journal of authored checklists: one `os.write` each, so that a paid list is never lost.

Files that grow by a line: one write each, and a line that a kill tore apart is passed over.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from rocketeval.records import Checklist, Usage


@dataclass(frozen=True, slots=True)
class RefusedList:
    """Why one list of an author was not taken."""

    mistake: str
    """The kind of mistake, in words that are the same for all of its kind."""
    reason: str
    """What was wrong with this very list, as the author was told."""


@dataclass(frozen=True, slots=True)
class AuthoringEffort:
    """What it took to get one list from an author."""

    attempts: int = 1
    """How often it was asked for."""
    refused: tuple[RefusedList, ...] = ()
    """What was wrong with the lists that were not taken, in their order."""
    usage: Usage = field(default_factory=Usage)
    """What all attempts cost."""
    failure: str | None = None
    """Why there is no list after all; None when the last one was taken."""


class PaidWork(NamedTuple):
    """What the journal keeps of paid work."""

    author: str
    """Who did it."""
    items: tuple[str, ...]
    """The items or lines that came of it; none for a step that a run went on without."""
    effort: AuthoringEffort | None = None
    """What it took; None in a journal that was written before this was kept."""
    run: str | None = None
    """The id of the run that paid; None as above."""


class AuthoredJournal:
    """Checklists that an author was paid for, by identity."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def known(self) -> dict[bytes, PaidWork]:
        """Return what was paid for, by key; a torn last line is passed over."""
        found: dict[bytes, PaidWork] = {}
        if not self.path.exists():
            return found
        for line in self.path.read_bytes().split(b"\n"):
            if not line:
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            found[bytes.fromhex(row["key"])] = PaidWork(
                row["author"], tuple(row["items"]), _effort(row.get("effort")), row.get("run")
            )
        return found

    def append(
        self,
        key: bytes,
        checklist: Checklist,
        effort: AuthoringEffort | None = None,
        run: str | None = None,
    ) -> None:
        """Record a checklist, what it took, and the id of the run that paid for it."""
        row = {
            "key": key.hex(),
            "query_id": checklist.query_id,
            "author": checklist.author,
            "items": checklist.items,
            "effort": None if effort is None else asdict(effort),
            "run": run,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The newline in front keeps a torn line of a killed writer from swallowing this one.
        line = b"\n" + orjson.dumps(row) + b"\n"
        with self.path.open("ab", buffering=0) as stream:
            stream.write(line)
            os.fsync(stream.fileno())


def _effort(row: Mapping[str, Any] | None) -> AuthoringEffort | None:
    if row is None:
        return None
    return AuthoringEffort(
        row["attempts"],
        tuple(RefusedList(**refusal) for refusal in row["refused"]),
        Usage(**row["usage"]),
        row["failure"],
    )


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
