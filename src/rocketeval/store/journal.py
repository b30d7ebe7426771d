"""Append-only JSONL, and the journal of authored checklists, which keeps every paid list."""

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
from rocketeval.items import parse_item
from rocketeval.records import Checklist, Usage
from rocketeval.store.checksums import append_whole
from rocketeval.store.files import make_folder, make_private, open_in_folder, writing


@dataclass(frozen=True, slots=True)
class RefusedList:
    """The reason why one list of an author was refused."""

    mistake: str
    """The kind of mistake, with the same text for all mistakes of this kind."""
    reason: str
    """The mistake in this list, as shown to the author."""


@dataclass(frozen=True, slots=True)
class AuthoringEffort:
    """The attempts, refusals and usage behind one list of an author."""

    attempts: int = 1
    """Number of requests for the list."""
    refused: tuple[RefusedList, ...] = ()
    """The refused lists, in order."""
    usage: Usage = field(default_factory=Usage)
    """Usage of all attempts."""
    failure: str | None = None
    """Why there is no list; None if the last one was accepted."""


class PaidWork(NamedTuple):
    """A paid result in the journal."""

    author: str
    """The author."""
    items: tuple[str, ...]
    """The resulting items or lines; empty for a step that the run did without."""
    effort: AuthoringEffort | None = None
    """How the result was obtained; None in journals of earlier versions."""
    run: str | None = None
    """The id of the run that paid; None in journals of earlier versions."""
    rubric: tuple[object, ...] | None = None
    """The items as JSON, if they have weights or kinds; None for plain ones."""

    def checklist(self, query_id: str) -> Checklist:
        """Return the result as the checklist of a query."""
        parsed = [parse_item(item) for item in self.rubric or self.items]
        return Checklist.from_items(query_id, parsed, self.author)


class Journal:
    """An append-only JSONL file: one synced write per line; a torn line is skipped."""

    def __init__(self, path: Path, *, shared: bool = False) -> None:
        """Open a journal; `shared` if several processes append to it.

        In a shared journal every line starts with a newline, so that another writer's torn line
        cannot swallow it; otherwise a newline is written only after a torn line.
        """
        self.path = path
        self._shared = shared

    def append(self, row: Mapping[str, object]) -> None:
        """Append a line durably."""
        with writing(self.path):
            make_folder(self.path.parent)
            with open(self.path, "ab+", buffering=0, opener=open_in_folder) as stream:
                torn = self._shared or is_torn(stream)
                line = (b"\n" if torn else b"") + orjson.dumps(row) + b"\n"
                append_whole(stream.fileno(), line)
                os.fsync(stream.fileno())

    def rows(self) -> Iterator[Any]:
        """Yield the content of each complete line; nothing if the file does not exist."""
        if not self.path.exists():
            return
        for line in self.path.read_bytes().split(b"\n"):
            with suppress(orjson.JSONDecodeError):
                yield orjson.loads(line)


def is_torn(stream: IO[bytes]) -> bool:
    """Return whether the last line of a file is incomplete."""
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
        """Raise StoreError if the journal is not writable, because paid work would be lost."""
        try:
            make_private(self.path.parent)
            # Do not create the journal here: another run may be about to start it.
            with TemporaryFile(dir=self.path.parent), suppress(FileNotFoundError):
                self.path.open("rb+").close()
        except OSError as error:
            raise StoreError(
                f"Cannot write checklists to {self.path}: {error.strerror or error}.",
                hint="Nothing was spent. Make the folder writable, or change `cache`.",
            ) from None

    def known(self) -> dict[bytes, PaidWork]:
        """Return all paid results by key."""
        return {
            bytes.fromhex(row["key"]): PaidWork(
                row["author"],
                tuple(row["items"]),
                _effort(row.get("effort")),
                row.get("run"),
                tuple(row["rubric"]) if row.get("rubric") else None,
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
        """Record a checklist, how it was obtained, and the id of the run that paid for it."""
        self._journal.append(
            {
                "key": key.hex(),
                "query_id": checklist.query_id,
                "author": checklist.author,
                "items": checklist.items,
                "effort": None if effort is None else asdict(effort),
                "run": run,
                **({} if checklist.details is None else {"rubric": checklist.to_json()}),
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
