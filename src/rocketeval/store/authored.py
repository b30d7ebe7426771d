"""The journal of authored checklists: one `os.write` each, so that a paid list is never lost."""

from __future__ import annotations

import os
from pathlib import Path

import orjson

from rocketeval.records import Checklist


class AuthoredJournal:
    """Checklists that an author was paid for, by identity."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def known(self) -> dict[bytes, tuple[str, tuple[str, ...]]]:
        """Return (author, items) by key; a torn last line is passed over."""
        found: dict[bytes, tuple[str, tuple[str, ...]]] = {}
        if not self.path.exists():
            return found
        for line in self.path.read_bytes().split(b"\n"):
            if not line:
                continue
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            found[bytes.fromhex(row["key"])] = (row["author"], tuple(row["items"]))
        return found

    def append(self, key: bytes, checklist: Checklist) -> None:
        """Record a checklist."""
        row = {
            "key": key.hex(),
            "query_id": checklist.query_id,
            "author": checklist.author,
            "items": checklist.items,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # The newline in front keeps a torn line of a killed writer from swallowing this one.
        line = b"\n" + orjson.dumps(row) + b"\n"
        with self.path.open("ab", buffering=0) as stream:
            stream.write(line)
            os.fsync(stream.fileno())
