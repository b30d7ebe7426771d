"""Sees batches through: created once, watched until they end, their answers brought home."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from functools import partial

from rocketeval.engines.batch.api import BatchApi, BatchState, InDoubt
from rocketeval.engines.batch.job import Job
from rocketeval.engines.batch.shelf import Shelf
from rocketeval.errors import EngineError, EngineUnavailable, RequestRejected

log = logging.getLogger("rocketeval.batch")


class Carrier:
    """Carries any number of batches at once, each in a task of its own."""

    def __init__(self, api: BatchApi, shelf: Shelf, *, poll: float) -> None:
        self._api = api
        self._shelf = shelf
        self._poll = poll
        self._tasks: set[asyncio.Task[None]] = set()
        self.jobs: set[Job] = set()
        """The batches that are being seen through."""
        self._queue: deque[asyncio.Future[None]] = deque()
        """Batches that wait until another one ends."""
        self._ends = 0
        """How many batches ended so far."""

    def carry(self, job: Job) -> None:
        """See a batch through in the background, unless that is being done already."""
        if job.carried:
            return
        job.begin()
        task = asyncio.create_task(self._see_through(job))
        self._tasks.add(task)
        self.jobs.add(job)
        task.add_done_callback(partial(self._carried, job))

    async def aclose(self) -> None:
        """Stop watching; batches go on at the server."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _carried(self, job: Job, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.jobs.discard(job)
        self._ends += 1
        if task.cancelled():
            job.end(EngineUnavailable("The engine was closed while a batch was open."))
        else:
            job.end(task.exception())
        self._wake_next()

    async def _see_through(self, job: Job) -> None:
        while True:
            if job.batch is None:
                await self._create(job)
            state = await self._ended(job)
            if not (state.queue_full and await self._room(job)):
                break
            job.batch, job.tag = None, ""
        await self._bring_home(job, state)

    async def _create(self, job: Job) -> None:
        try:
            found = await self._api.look_for(job.tag, job.since) if job.tag else None
            if found is None:
                job.file = job.file or await self._api.upload(job.input)
                tag, count, job.ends_before = job.next_tag(), len(job.requests), self._ends
                # From here to the record of its name, only the tag can find the batch.
                job.since = self._shelf.journal.intend(job.name, tag, job.file, count)
                found = await self._api.create(job.file, tag)
        except InDoubt:
            raise
        except EngineError as error:
            self._shelf.close(job, error.message)
            raise
        self._shelf.note_created(job, found)
        log.info("batch %s: %d requests submitted", found.id, len(job.requests))

    async def _ended(self, job: Job) -> BatchState:
        told: tuple[str, int] | None = None
        while True:
            assert job.batch is not None
            state = await self._api.state(job.batch)
            done = job.answered = state.completed + state.failed
            if told != (state.status, done):
                told = (state.status, done)
                total = state.total or len(job.requests)
                log.info("batch %s: %s, %d of %d answered", state.id, state.status, done, total)
            if state.ended:
                return state
            await asyncio.sleep(self._poll)

    async def _room(self, job: Job) -> bool:
        """Wait until another batch ends; False when there is none to wait for."""
        if self._ends > job.ends_before:
            return True
        if len(self._tasks) - len(self._queue) <= 1:
            return False
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        log.info("the account's queue of batches is full; waiting until one of ours ends")
        await turn
        return True

    def _wake_next(self) -> None:
        while self._queue:
            turn = self._queue.popleft()
            if not turn.done():
                turn.set_result(None)
                return

    async def _bring_home(self, job: Job, state: BatchState) -> None:
        if state.status == "failed":
            why = state.problem or "no reason given"
            self._shelf.close(job, why)
            advice = ". Set a lower `options.max_requests`" if state.queue_full else ""
            raise RequestRejected(f"batch {state.id} was not accepted: {why.rstrip('.')}{advice}.")
        if state.output_file is None:
            job.output.write_bytes(b"")
        elif not await self._api.fetch(state.output_file, job.output):
            self._shelf.close(job, "the server no longer has its answers")
            raise RequestRejected(f"the server no longer has the answers of batch {state.id}.")
        if state.error_file is not None:
            await self._api.fetch(state.error_file, job.errors)
        self._shelf.journal.ended(job.name, state.status)
        ended = "ended" if state.status == "completed" else state.status
        answers = await self._shelf.read(job, f"batch {state.id} {ended} without an answer to it.")
        given, asked = len(answers.given), len(job.requests)
        log.info("batch %s: %s with %d of %d answers", state.id, ended, given, asked)
        if not given:
            self._shelf.close(job, "it holds no answer")
