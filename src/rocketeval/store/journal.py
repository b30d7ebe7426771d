"""Append-only JSONL, and the journal of authored checklists: a paid list is never lost."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NamedTuple

import orjson

from rocketeval.errors import StoreError
from rocketeval.records import Checklist, Usage
from rocketeval.store.files import writing


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


class Journal:
    """An append-only JSONL file: one synced write per line, and a torn line is skipped."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """`shared`: several processes append. Every line then begins with a newline, so that the
        torn line of another writer cannot swallow it; else a newline ends a torn line only."""
        self.path = path
        self._shared = shared

    def append(self, row: Mapping[str, object]) -> None:
        """Add a line; it survives a power cut."""
        with writing(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("ab+", buffering=0) as stream:
                torn = self._shared or _is_torn(stream)
                stream.write((b"\n" if torn else b"") + orjson.dumps(row) + b"\n")
                os.fsync(stream.fileno())

    def rows(self) -> Iterator[Any]:
        """Yield what each whole line holds; nothing if there is no file."""
        if not self.path.exists():
            return
        for line in self.path.read_bytes().split(b"\n"):
            with suppress(orjson.JSONDecodeError):
                yield orjson.loads(line)


def _is_torn(stream: IO[bytes]) -> bool:
    """Return whether the last line of a file has no end."""
    if stream.seek(0, os.SEEK_END) == 0:
        return False
    stream.seek(-1, os.SEEK_END)
    return stream.read(1) != b"\n"


class AuthoredJournal:
    """Checklists that an author was paid for, by identity."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = Journal(path, shared=True)

    def check_writable(self) -> None:
        """Raise StoreError if nothing can be recorded: what is paid for next would be lost."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            # Not the journal itself where there is none: another run may be about to begin it.
            with TemporaryFile(dir=self.path.parent), suppress(FileNotFoundError):
                self.path.open("rb+").close()
        except OSError as error:
            raise StoreError(
                f"Checklists cannot be kept in {self.path}: {error.strerror or error}.",
                hint="Nothing was paid for. Make the folder writable, or set `cache` to another.",
            ) from None

    def known(self) -> dict[bytes, PaidWork]:
        """Return what was paid for, by key."""
        return {
            bytes.fromhex(row["key"]): PaidWork(
                row["author"], tuple(row["items"]), _effort(row.get("effort")), row.get("run")
            )
            for row in self._journal.rows()
        }

    def append(
        self,
        key: bytes,
        checklist: Checklist,
        effort: AuthoringEffort | None = None,
        run: str | None = None,
    ) -> None:
        """Record a checklist, what it took, and the id of the run that paid for it."""
        self._journal.append(
            {
                "key": key.hex(),
                "query_id": checklist.query_id,
                "author": checklist.author,
                "items": checklist.items,
                "effort": None if effort is None else asdict(effort),
                "run": run,
            }
        )


def _effort(row: Mapping[str, Any] | None) -> AuthoringEffort | None:
    if row is None:
        return None
    return AuthoringEffort(
        row["attempts"],
        tuple(RefusedList(**refusal) for refusal in row["refused"]),
        Usage(**row["usage"]),
        row["failure"],
    )
