"""The batches of one home folder: journaled, found again by the next process, and cleared away."""

from __future__ import annotations

import asyncio
import logging
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from rocketeval.engines.batch import api as batch_api
from rocketeval.engines.batch.answers import Answers
from rocketeval.engines.batch.api import BatchApi, BatchState
from rocketeval.engines.batch.job import Job, remove_strays
from rocketeval.engines.batch.journal import Entry, Journal

JOURNAL = "batches.jsonl"

log = logging.getLogger("rocketeval.batch")


class Shelf:
    """Which batch holds which request.

    A batch stays, on disk too, until a process that ended by itself has handed out all of its
    answers. Whoever got them has recorded them by then; after a stop or a crash nobody can know,
    so everything is kept, and the next process reads it instead of paying again.
    """

    def __init__(self, home: Path | None, safe: Callable[[str], str]) -> None:
        self._home = home
        self._safe = safe
        self._temporary: Path | None = None
        self._where: dict[str, Job] = {}
        self._jobs: set[Job] = set()

    @property
    def folder(self) -> Path:
        """Where files are kept: the home, or a temporary folder if there is none."""
        if self._home is not None:
            self._home.mkdir(parents=True, exist_ok=True)
            return self._home
        if self._temporary is None:
            self._temporary = Path(tempfile.mkdtemp(prefix="rocketeval-batch-"))
        return self._temporary

    @property
    def journal(self) -> Journal:
        """The journal of this folder."""
        return Journal(self.folder / JOURNAL)

    def unfinished(self) -> int:
        """Return how many batches an earlier process left."""
        if self._home is None or not (self._home / JOURNAL).exists():
            return 0
        return len(self.journal.live())

    async def take_up(self, api: BatchApi) -> None:
        """Find everything that earlier processes paid for, also what they did not hear of."""
        entries = self.journal.live()
        remove_strays(self.folder, set(entries))
        created = await self._settle_doubts(api, entries.values())
        for entry in entries.values():
            job = Job.known(self.folder, entry)
            if entry.ended and job.output.exists():
                await self.read(job, "an earlier process was told why")
                job.end(None)
            elif entry.batch is None:
                state = created.get(entry.tag)
                if state is None:
                    self.close(job, "it was never created")
                    continue
                self.note_created(job, state)
            self.put(job)
        if self._jobs:
            log.info("taking up %d batches of an earlier process", len(self._jobs))

    def put(self, job: Job) -> None:
        """Remember a batch and what it holds."""
        self._jobs.add(job)
        held = job.requests if job.answers is None else job.answers.given
        self._where.update(dict.fromkeys(held, job))

    def holds(self, job: Job, request: str) -> None:
        """Remember one more request of a batch."""
        self._jobs.add(job)
        self._where[request] = job

    def find(self, request: str) -> Job | None:
        """Return the batch that has, or will have, the answer to `request`."""
        job = self._where.get(request)
        return None if job is None or job.lacks(request) else job

    def note_created(self, job: Job, state: BatchState) -> None:
        """Record the server's name for a batch."""
        job.batch = state.id
        self.journal.created(job.name, state.id)
        job.input.unlink(missing_ok=True)

    async def read(self, job: Job, otherwise: str) -> Answers:
        """Give a batch the answers that lie on disk, and return them."""

        def index() -> Answers:
            answers = Answers(job.output, otherwise, self._safe)
            if job.errors.exists():
                answers.add_errors(job.errors)
            return answers

        answers = await asyncio.to_thread(index)
        job.settle(answers)
        return answers

    def close(self, job: Job, why: str) -> None:
        """Forget a batch that holds nothing anybody needs."""
        if job.tag:
            self.journal.closed(job.name, why)
        job.remove_files()
        self._jobs.discard(job)
        for request in job.requests:
            if self._where.get(request) is job:
                del self._where[request]

    def clear(self, *, used: bool) -> None:
        """End this process's part; `used`: what was handed out has been recorded by now."""
        if used:
            for job in [job for job in self._jobs if job.answers is not None and not job.left]:
                self.close(job, "every answer was used")
            if not self._jobs and self._home is not None:
                (self._home / JOURNAL).unlink(missing_ok=True)
        if self._temporary is not None:
            lost = sum(job.batch is not None and job.answers is None for job in self._jobs)
            if lost:
                log.warning("%d open batches are lost: there is no folder to keep them in", lost)
            shutil.rmtree(self._temporary, ignore_errors=True)
        self._temporary = None
        self._where, self._jobs = {}, set()

    async def _settle_doubts(
        self, api: BatchApi, entries: Iterable[Entry]
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
        # Its creation may still be on its way: the last process died a moment ago.
        await asyncio.sleep(min(wait, batch_api.SETTLE))
        return await api.find(doubtful, since)
