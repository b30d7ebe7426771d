"""The batches of one home folder: a journal, resumption by the next process, and cleanup."""

from __future__ import annotations

import asyncio
import logging
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BufferedWriter
from pathlib import Path
from typing import Any

import orjson

from rocketeval.engines.batch import api as batch_api
from rocketeval.engines.batch.api import BatchApi, BatchState
from rocketeval.engines.http import REFUSED, RETRIED
from rocketeval.errors import RequestRejected, StoreError, UnusableReply
from rocketeval.store.files import write_bytes, writing
from rocketeval.store.journal import Journal


@dataclass(frozen=True, slots=True)
class OpenBatch:
    """A batch that is not closed, as recorded in the journal."""

    job: str
    """Our name for it; its files start with this name."""
    tag: str
    """The tag in its metadata; new for every attempt to create it."""
    file: str
    """The server's name for the uploaded requests."""
    since: float
    """Unix time; the batch was created later."""
    batch: str | None = None
    """The server's name for it; None if unknown."""
    ended: bool = False
    """Whether its answers have been downloaded."""
    unusable: frozenset[str] = frozenset()
    """Requests whose answers cannot be used."""


class BatchJournal:
    """The journal of batches: about to be created, created, ended, unusable answers, closed."""

    def __init__(self, path: Path) -> None:
        self._journal = Journal(path, shared=True)

    def live(self) -> dict[str, OpenBatch]:
        """Return every batch that is not closed."""
        entries: dict[str, OpenBatch] = {}
        for row in self._journal.rows():
            job, event = row["job"], row["event"]
            if event == "intent":
                entries[job] = OpenBatch(job, row["tag"], row["file"], row["since"])
            elif event == "closed":
                entries.pop(job, None)
            elif job in entries:
                entries[job] = _continued(entries[job], row)
        return entries

    def intend(self, job: str, tag: str, file: str, requests: int) -> float:
        """Record that a batch is about to be created, and return the time."""
        now = time.time()
        self._append("intent", job, tag=tag, file=file, requests=requests, since=now)
        return now

    def created(self, job: str, batch: str) -> None:
        """Record the server's name for a batch."""
        self._append("created", job, batch=batch)

    def ended(self, job: str, status: str) -> None:
        """Record that a batch's answers were downloaded."""
        self._append("ended", job, status=status)

    def unusable(self, job: str, requests: Iterable[str]) -> None:
        """Record requests of a batch whose answers cannot be used."""
        self._append("unusable", job, requests=list(requests))

    def closed(self, job: str, why: str) -> None:
        """Record that a batch is no longer needed."""
        self._append("closed", job, why=why)

    def _append(self, event: str, job: str, **facts: Any) -> None:
        self._journal.append({"event": event, "job": job, **facts})


def _continued(entry: OpenBatch, row: Mapping[str, Any]) -> OpenBatch:
    """Return a batch after one more event."""
    match row["event"]:
        case "created":
            return replace(entry, batch=row["batch"])
        case "ended":
            return replace(entry, ended=True)
        case "unusable":
            return replace(entry, unusable=entry.unusable.union(row["requests"]))
    return entry


class BatchAnswers:
    """The answers in the output and error files of one batch, in any order."""

    def __init__(self, output: Path, otherwise: str, safe: Callable[[str], str]) -> None:
        self.given: dict[str, tuple[int, int]] = {}
        """Offset and length of the row of each answered request."""
        self._failed: dict[str, RequestRejected] = {}
        self._output = output
        self._otherwise = otherwise
        """The reason for a request that neither file mentions."""
        self._safe = safe
        self._index(output, keep=True)

    def add_errors(self, errors: Path) -> None:
        """Read the reasons in an error file."""
        self._index(errors, keep=False)

    def get(self, request: str) -> dict[str, Any]:
        """Return the answer to `request`; RequestRejected gives the reason if there is none.

        It is an UnusableReply unless the server rejects the request itself.
        """
        if request not in self.given:
            raise self._failed.get(request) or UnusableReply(self._otherwise)
        offset, length = self.given[request]
        with self._output.open("rb") as stream:
            stream.seek(offset)
            row = orjson.loads(stream.read(length))
        body: dict[str, Any] = row["response"]["body"]
        return body

    def _index(self, path: Path, *, keep: bool) -> None:
        offset = 0
        with path.open("rb") as stream:
            for line in stream:
                row = _row(line)
                if row is not None:
                    request, problem = row["custom_id"], _problem(row, self._safe)
                    if problem is not None:
                        self._failed[request] = problem
                    elif keep:
                        self.given[request] = (offset, len(line))
                offset += len(line)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("custom_id"), str) else None


def _problem(row: Mapping[str, Any], safe: Callable[[str], str]) -> RequestRejected | None:
    """Return why a row is not an answer; None if it is one."""
    error = row.get("error")
    if error:
        return UnusableReply(safe(_words(error)))
    response = row.get("response")
    if not isinstance(response, dict):
        return UnusableReply("the batch's row for it contains no answer")
    status, body = response.get("status_code", 200), response.get("body")
    if status == 200 and isinstance(body, dict):
        return None
    reason = body.get("error") if isinstance(body, dict) else body
    for_good = isinstance(status, int) and status not in RETRIED | REFUSED
    kind = RequestRejected if for_good else UnusableReply
    return kind(safe(f"HTTP {status}: {_words(reason)}"))


def _words(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or "no reason given"
    return str(error)


SUFFIXES = (".input.jsonl", ".ids", ".output.jsonl", ".errors.jsonl")


class BatchJob:
    """A batch from its first request to its last answer; `over` is done when it ends or fails."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.requests: list[str] = []
        self.size = 0
        """Size of its input file in bytes."""
        self.file = ""
        """The server's name for its input file; empty before the upload."""
        self.tag = ""
        """The tag in its metadata; empty before the first attempt to create it."""
        self.attempts = 0
        self.since = 0.0
        self.batch: str | None = None
        """The server's name for it; None if it does not exist, or this is unknown."""
        self.answers: BatchAnswers | None = None
        """None until the batch has ended."""
        self.left: set[str] = set()
        """Answered requests that nobody has read in this process."""
        self.unusable: set[str] = set()
        """Requests whose answers this process could not use."""
        self.asked_again: frozenset[str] = frozenset()
        """Requests whose answers an earlier process could not use."""
        self.ends_before = 0
        """Number of batches that had ended when this one was created."""
        self.answered = 0
        """Requests answered, as the server last reported."""
        self.watched = False
        """Whether a task is following it."""
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.input, self.ids, self.output, self.errors = (folder / (name + s) for s in SUFFIXES)
        self._stream: BufferedWriter | None = None

    @classmethod
    def new(cls, folder: Path) -> BatchJob:
        """Return an empty job that accepts requests."""
        return cls(folder, secrets.token_hex(8))

    @classmethod
    def known(cls, folder: Path, entry: OpenBatch) -> BatchJob:
        """Return a job that an earlier process started."""
        job = cls(folder, entry.job)
        job.requests = job.ids.read_text().split() if job.ids.exists() else []
        job.file, job.tag, job.since, job.batch = entry.file, entry.tag, entry.since, entry.batch
        job.asked_again = entry.unusable
        # The tag ends in this number, and the next attempt must not repeat a tag.
        job.attempts = int(entry.tag.rpartition("-")[2])
        return job

    def add(self, request: str, line: bytes) -> None:
        """Add one request."""
        with writing(self.input):
            if self._stream is None:
                self._stream = self.input.open("wb")
            self._stream.write(line)
        self.requests.append(request)
        self.size += len(line)

    def seal(self) -> None:
        """Close the input file, and write the ids of its requests to disk."""
        with writing(self.input):
            self._close()
        write_bytes(self.ids, "\n".join(self.requests).encode())

    def next_tag(self) -> str:
        """Return a tag that was never used before."""
        self.attempts += 1
        self.tag = f"{self.name}-{self.attempts}"
        return self.tag

    def begin(self) -> None:
        """Mark the batch as being followed."""
        self.watched = True
        if self.over.done():
            self.over = asyncio.get_running_loop().create_future()

    def end(self, error: BaseException | None) -> None:
        """Notify all waiting callers that the batch has ended, or why it failed."""
        self.watched = False
        if self.over.done():
            return
        if error is None:
            self.over.set_result(None)
            return
        self.over.set_exception(error)
        # Prevents a warning if no caller waits any more.
        self.over.exception()

    def settle(self, answers: BatchAnswers) -> None:
        """Store the final answers."""
        self.answers = answers
        self.left = answers.given.keys() - self.asked_again

    def take(self, request: str) -> dict[str, Any]:
        """Return the answer to `request`; RequestRejected gives the reason if there is none."""
        assert self.answers is not None
        completion = self.answers.get(request)
        self.left.discard(request)
        return completion

    def lacks(self, request: str) -> bool:
        """Return whether the batch ended without a usable answer to `request`."""
        return self.answers is not None and (
            request in self.unusable or request not in self.answers.given
        )

    def remove_files(self) -> None:
        """Remove all of its files."""
        with suppress(OSError):
            self._close()
        for path in (self.input, self.ids, self.output, self.errors):
            path.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None


def remove_strays(folder: Path, jobs: set[str]) -> None:
    """Remove files of jobs that were never submitted, or are closed."""
    for path in folder.iterdir():
        mine = path.name.endswith(".tmp") or path.name.endswith(SUFFIXES)
        if mine and path.name.lstrip(".").partition(".")[0] not in jobs:
            path.unlink()


JOURNAL = "batches.jsonl"

log = logging.getLogger("rocketeval.batch")


class BatchStore:
    """The mapping from requests to batches.

    A batch stays, also on disk, until a process has handed out all of its answers and its callers
    say that they have recorded them, or that they need no more of them. After a stop or a crash
    that is uncertain, so everything is kept, and the next process reads it instead of paying again.
    """

    def __init__(self, home: Path | None, safe: Callable[[str], str]) -> None:
        self._home = home
        self._safe = safe
        self._temporary: Path | None = None
        self._where: dict[str, BatchJob] = {}
        self._jobs: set[BatchJob] = set()
        self._resumed = False
        """Whether all batches in the journal are known."""

    @property
    def folder(self) -> Path:
        """The folder for files: the home, or a temporary folder if there is none."""
        if self._home is not None:
            self._home.mkdir(parents=True, exist_ok=True)
            return self._home
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="rocketeval-batch-"))
        return self._temporary

    @property
    def journal(self) -> BatchJournal:
        """The journal of this folder."""
        return BatchJournal(self.folder / JOURNAL)

    def unfinished(self) -> int:
        """Return the number of batches that an earlier process left open."""
        if self._home is None or not (self._home / JOURNAL).exists():
            return 0
        return len(self.journal.live())

    async def resume(self, api: BatchApi) -> None:
        """Find every batch of earlier processes, including those whose creation is uncertain."""
        entries = self.journal.live()
        remove_strays(self.folder, set(entries))
        created = await self._settle_doubts(api, entries.values())
        for entry in entries.values():
            job = BatchJob.known(self.folder, entry)
            if entry.ended and job.output.exists():
                await self.read(job, "an earlier process received the reason")
                job.end(None)
            elif entry.batch is None:
                state = created.get(entry.tag)
                if state is None:
                    self.close(job, "it was never created")
                    continue
                self.note_created(job, state)
            self.put(job)
        self._resumed = True
        if self._jobs:
            log.info("resuming %d batches of an earlier process", len(self._jobs))

    def put(self, job: BatchJob) -> None:
        """Register a batch and its requests."""
        self._jobs.add(job)
        held = job.requests if job.answers is None else job.answers.given
        self._where.update((one, job) for one in held if one not in job.asked_again)

    def holds(self, job: BatchJob, request: str) -> None:
        """Register one more request of a batch."""
        self._jobs.add(job)
        self._where[request] = job

    def find(self, request: str) -> BatchJob | None:
        """Return the batch that has, or will have, the answer to `request`."""
        job = self._where.get(request)
        return None if job is None or job.lacks(request) else job

    def discard(self, request: str) -> None:
        """Note that the answer to `request` is unusable, so that it can be asked again."""
        job = self._where.get(request)
        if job is not None and job.answers is not None and request in job.answers.given:
            job.unusable.add(request)

    def note_created(self, job: BatchJob, state: BatchState) -> None:
        """Record the server's name for a batch."""
        job.batch = state.id
        self.journal.created(job.name, state.id)
        job.input.unlink(missing_ok=True)

    async def read(self, job: BatchJob, otherwise: str) -> BatchAnswers:
        """Load a batch's answers from disk, and return them."""

        def index() -> BatchAnswers:
            answers = BatchAnswers(job.output, otherwise, self._safe)
            if job.errors.exists():
                answers.add_errors(job.errors)
            return answers

        answers = await asyncio.to_thread(index)
        job.settle(answers)
        return answers

    def close(self, job: BatchJob, why: str) -> None:
        """Forget a batch that is no longer needed."""
        if job.tag:
            self.journal.closed(job.name, why)
        job.remove_files()
        self._jobs.discard(job)
        for request in job.requests:
            if self._where.get(request) is job:
                del self._where[request]

    def clear(self, *, used: bool, everything: bool) -> None:
        """Clean up at the end.

        `used`: every answer that was handed out has been recorded; `everything`: the others, which
        earlier processes recorded or nobody wants, are not needed.
        """
        for job in [job for job in self._jobs if job.answers is not None]:
            if everything or (used and not job.left):
                self.close(job, "every answer was used")
            elif job.unusable:
                with suppress(StoreError):
                    self.journal.unusable(job.name, job.unusable)
        if self._resumed and not self._jobs and self._home is not None:
            (self._home / JOURNAL).unlink(missing_ok=True)
        if self._temporary is not None:
            lost = sum(job.batch is not None and job.answers is None for job in self._jobs)
            if lost:
                log.warning("%d open batches are lost: no folder to keep them in", lost)
            shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary = None
        self._where, self._jobs, self._resumed = {}, set(), False

    async def _settle_doubts(
        self, api: BatchApi, entries: Iterable[OpenBatch]
    ) -> dict[str, BatchState]:
        doubtful = {entry.tag: entry.since for entry in entries if entry.batch is None}
        if not doubtful:
            return {}
        since = min(doubtful.values())
        found = await api.find(doubtful, since)
        unfound = [doubtful[tag] for tag in doubtful.keys() - found.keys()]
        wait = batch_api.SETTLE - (time.time() - max(unfound, default=0.0))
        if wait <= 0:
            return found
        # A creation may still be in progress: the last process died a moment ago.
        await asyncio.sleep(min(wait, batch_api.SETTLE))
        return await api.find(doubtful, since)
