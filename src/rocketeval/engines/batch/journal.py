"""The journal of batches: what was about to be paid for, what was, and what became of it.

    intent   a batch is about to be created; its tag goes into the batch's own metadata
    created  the server's name for it
    ended    its answers lie beside the journal
    closed   it holds nothing that anybody needs

An intent without a `created` is a batch that may or may not exist: the tag finds it.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson


@dataclass(frozen=True, slots=True)
class Entry:
    """A batch that is not closed, as the journal knows it."""

    job: str
    """Our own name for it; its files begin with it."""
    tag: str
    """What its metadata carries; new with every attempt to create it."""
    file: str
    """The server's name for the uploaded requests."""
    since: float
    """Unix time before which it was not created."""
    batch: str | None = None
    """The server's name for it; None when not known."""
    ended: bool = False
    """Whether its answers are here."""


class Journal:
    """Appends records and syncs each: a record that was written survives a power cut."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def live(self) -> dict[str, Entry]:
        """Return every batch that is not closed; a torn line is passed over."""
        entries: dict[str, Entry] = {}
        if not self.path.exists():
            return entries
        for line in self.path.read_bytes().split(b"\n"):
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            job, event = row["job"], row["event"]
            if event == "intent":
                entries[job] = Entry(job, row["tag"], row["file"], row["since"])
            elif event == "closed":
                entries.pop(job, None)
            elif job in entries:
                known = {"batch": row["batch"]} if event == "created" else {"ended": True}
                entries[job] = replace(entries[job], **known)
        return entries

    def intend(self, job: str, tag: str, file: str, requests: int) -> float:
        """Record that a batch is about to be created; return when."""
        now = time.time()
        self._append("intent", job, tag=tag, file=file, requests=requests, since=now)
        return now

    def created(self, job: str, batch: str) -> None:
        """Record the server's name for a batch."""
        self._append("created", job, batch=batch)

    def ended(self, job: str, status: str) -> None:
        """Record that a batch's answers are here."""
        self._append("ended", job, status=status)

    def closed(self, job: str, why: str) -> None:
        """Record that a batch holds nothing that anybody needs."""
        self._append("closed", job, why=why)

    def _append(self, event: str, job: str, **facts: Any) -> None:
        # The newline in front keeps a torn line of a killed writer from swallowing this one.
        line = b"\n" + orjson.dumps({"event": event, "job": job, **facts}) + b"\n"
        with self.path.open("ab", buffering=0) as stream:
            stream.write(line)
            os.fsync(stream.fileno())
