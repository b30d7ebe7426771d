"""One batch: its requests, its files, and how far it got."""

from __future__ import annotations

import asyncio
import secrets
from io import BufferedWriter
from pathlib import Path
from typing import Any

from rocketeval.engines.batch.answers import Answers
from rocketeval.engines.batch.journal import Entry
from rocketeval.store.files import write_bytes

SUFFIXES = (".input.jsonl", ".ids", ".output.jsonl", ".errors.jsonl")


class Job:
    """A batch from its first request to its last answer; `over` tells when it got no further."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.requests: list[str] = []
        self.size = 0
        """Bytes of its input file."""
        self.file = ""
        """The server's name for its input file; empty before the upload."""
        self.tag = ""
        """What its metadata carries; empty before any attempt to create it."""
        self.attempts = 0
        self.since = 0.0
        self.batch: str | None = None
        """The server's name for it; None when it does not exist, or nobody knows."""
        self.answers: Answers | None = None
        """None until it ended."""
        self.left: set[str] = set()
        """Answered requests that nobody has taken in this process."""
        self.ends_before = 0
        """How many other batches had ended when it was created."""
        self.answered = 0
        """Requests that the server had answered when it was last looked at."""
        self.carried = False
        """Whether somebody is seeing it through."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.input, self.ids, self.output, self.errors = (folder / (name + s) for s in SUFFIXES)
        self._stream: BufferedWriter | None = None

    @classmethod
    def new(cls, folder: Path) -> Job:
        """Return an empty job that takes requests."""
        return cls(folder, secrets.token_hex(8))

    @classmethod
    def known(cls, folder: Path, entry: Entry) -> Job:
        """Return a job that an earlier process began."""
        job = cls(folder, entry.job)
        job.requests = job.ids.read_text().split() if job.ids.exists() else []
        job.file, job.tag, job.since, job.batch = entry.file, entry.tag, entry.since, entry.batch
        # The number ends the tag: the next attempt must not repeat one.
        job.attempts = int(entry.tag.rpartition("-")[2])
        return job

    def add(self, request: str, line: bytes) -> None:
        """Take one more request."""
        if self._stream is None:
            self._stream = self.input.open("wb")
        self._stream.write(line)
        self.requests.append(request)
        self.size += len(line)

    def seal(self) -> None:
        """Take no more; from now on the names of its requests are safe on disk."""
        self._close()
        write_bytes(self.ids, "\n".join(self.requests).encode())

    def next_tag(self) -> str:
        """Return a new tag, never used before."""
        self.attempts += 1
        self.tag = f"{self.name}-{self.attempts}"
        return self.tag

    def begin(self) -> None:
        """Note that somebody sees it through from now on."""
        self.carried = True
        if self.over.done():
            self.over = asyncio.get_running_loop().create_future()

    def end(self, error: BaseException | None) -> None:
        """Tell all who wait that it got no further, and why, unless it is finished."""
        self.carried = False
        if self.over.done():
            return
        if error is None:
            self.over.set_result(None)
            return
        self.over.set_exception(error)
        # Perhaps nobody waits any more, which is no reason for a warning.
        self.over.exception()

    def settle(self, answers: Answers) -> None:
        """Take the answers: nothing more will come."""
        self.answers = answers
        self.left = set(answers.given)

    def take(self, request: str) -> dict[str, Any]:
        """Return the completion that answers `request`; RequestRejected says why there is none."""
        assert self.answers is not None
        completion = self.answers.get(request)
        self.left.discard(request)
        return completion

    def lacks(self, request: str) -> bool:
        """Whether it ended without an answer to `request`."""
        return self.answers is not None and request not in self.answers.given

    def remove_files(self) -> None:
        """Remove everything it keeps on disk."""
        self._close()
        for path in (self.input, self.ids, self.output, self.errors):
            path.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def remove_strays(folder: Path, jobs: set[str]) -> None:
    """Remove files of jobs that were never about to be paid for, or are closed."""
    for path in folder.iterdir():
        mine = path.name.endswith(".tmp") or path.name.endswith(SUFFIXES)
        if mine and path.name.lstrip(".").partition(".")[0] not in jobs:
            path.unlink()
