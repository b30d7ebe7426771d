"""The journal of authored checklists: one `os.write` each, so that a paid list is never lost."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rocketeval.records import Checklist, Usage


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one list of an author was not taken."""

    mistake: str
    """The kind of mistake, in words that are the same for all of its kind."""
    reason: str
    """What was wrong with this very list, as the author was told."""


@dataclass(frozen=True, slots=True)
class Effort:
    """What it took to get one list from an author."""

    attempts: int = 1
    """How often it was asked for."""
    refused: tuple[Refusal, ...] = ()
    """What was wrong with the lists that were not taken, in their order."""
    usage: Usage = field(default_factory=Usage)
    """What all attempts cost."""
    failure: str | None = None
    """Why there is no list after all; None when the last one was taken."""


class Paid(NamedTuple):
    """What the journal keeps of paid work."""

    author: str
    """Who did it."""
    items: tuple[str, ...]
    """The items or lines that came of it; none for a step that a run went on without."""
    effort: Effort | None = None
    """What it took; None in a journal that was written before this was kept."""
    run: str | None = None
    """The id of the run that paid; None as above."""


class AuthoredJournal:
    """Checklists that an author was paid for, by identity."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def known(self) -> dict[bytes, Paid]:
        """Return what was paid for, by key; a torn last line is passed over."""
        found: dict[bytes, Paid] = {}
        if not self.path.exists():
            return found
        for line in self.path.read_bytes().split(b"\n"):
            if not line:
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            found[bytes.fromhex(row["key"])] = Paid(
                row["author"], tuple(row["items"]), _effort(row.get("effort")), row.get("run")
            )
        return found

    def append(
        self, key: bytes, checklist: Checklist, effort: Effort | None = None, run: str | None = None
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


def _effort(row: Mapping[str, Any] | None) -> Effort | None:
    if row is None:
        return None
    return Effort(
        row["attempts"],
        tuple(Refusal(**refusal) for refusal in row["refused"]),
        Usage(**row["usage"]),
        row["failure"],
    )
