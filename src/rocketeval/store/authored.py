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
        for line in self.path.read_bytes().splitlines():
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
        handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            # A torn line of a killed writer must not swallow this one.
            size = os.fstat(handle).st_size
            torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
            os.write(handle, b"\n" * torn + orjson.dumps(row) + b"\n")
            os.fsync(handle)
        finally:
            os.close(handle)
