"""Gather requests into batches, watch the batches, and hand out the answers.

A request is one row of a batch, named by a hash of its body. Asked again, by this process or a
later one, it is found in the batch that holds it: nothing is paid for twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Annotated, Any, NamedTuple

import orjson
from pydantic import Field

from rocketeval.config import Section
from rocketeval.engines.batch.api import ENDPOINT, BatchApi, BatchState, InDoubt
from rocketeval.engines.batch.store import BatchJob, BatchStore
from rocketeval.errors import EngineError, EngineUnavailable, RequestRejected
from rocketeval.hashing import content_hash

log = logging.getLogger("rocketeval.batch")


class BatchPoller:
    """Watch any number of batches at once, each in a task of its own."""

    def __init__(self, api: BatchApi, store: BatchStore, *, poll: float) -> None:
        self._api = api
        self._store = store
        self._poll = poll
        self._tasks: set[asyncio.Task[None]] = set()
        self.jobs: set[BatchJob] = set()
        """The batches that are being seen through."""
        self._queue: deque[asyncio.Future[None]] = deque()
        """Batches that wait until another one ends."""
        self._ends = 0
        """How many batches ended so far."""

    def watch(self, job: BatchJob) -> None:
        """See a batch through in the background, unless that is being done already."""
        if job.watched:
            return
        job.begin()
        task = asyncio.create_task(self._see_through(job))
        self._tasks.add(task)
        self.jobs.add(job)
        task.add_done_callback(partial(self._finished, job))

    async def aclose(self) -> None:
        """Stop watching; batches go on at the server."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finished(self, job: BatchJob, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self.jobs.discard(job)
        self._ends += 1
        if task.cancelled():
            job.end(EngineUnavailable("The engine was closed while a batch was open."))
        else:
            job.end(task.exception())
        self._wake_next()

    async def _see_through(self, job: BatchJob) -> None:
        while True:
            if job.batch is None:
                await self._create(job)
            state = await self._ended(job)
            if not (state.queue_full and await self._room(job)):
                break
            job.batch, job.tag = None, ""
        await self._fetch_answers(job, state)

    async def _create(self, job: BatchJob) -> None:
        try:
            found = await self._api.look_for(job.tag, job.since) if job.tag else None
            if found is None:
                job.file = job.file or await self._api.upload(job.input)
                tag, count, job.ends_before = job.next_tag(), len(job.requests), self._ends
                # From here to the record of its name, only the tag can find the batch.
                job.since = self._store.journal.intend(job.name, tag, job.file, count)
                found = await self._api.create(job.file, tag)
        except InDoubt:
            raise
        except EngineError as error:
            self._store.close(job, error.message)
            raise
        self._store.note_created(job, found)
        log.info("batch %s: %d requests submitted", found.id, len(job.requests))

    async def _ended(self, job: BatchJob) -> BatchState:
        reported: tuple[str, int] | None = None
        while True:
            assert job.batch is not None
            state = await self._api.state(job.batch)
            done = job.answered = state.completed + state.failed
            if reported != (state.status, done):
                reported = (state.status, done)
                total = state.total or len(job.requests)
                log.info("batch %s: %s, %d of %d answered", state.id, state.status, done, total)
            if state.ended:
                return state
            await asyncio.sleep(self._poll)

    async def _room(self, job: BatchJob) -> bool:
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

    async def _fetch_answers(self, job: BatchJob, state: BatchState) -> None:
        if state.status == "failed":
            why = state.problem or "no reason given"
            self._store.close(job, why)
            advice = ". Set a lower `options.max_requests`" if state.queue_full else ""
            raise RequestRejected(f"batch {state.id} was not accepted: {why.rstrip('.')}{advice}.")
        if state.output_file is None:
            job.output.write_bytes(b"")
        elif not await self._api.fetch(state.output_file, job.output):
            self._store.close(job, "the server no longer has its answers")
            raise RequestRejected(f"the server no longer has the answers of batch {state.id}.")
        if state.error_file is not None:
            await self._api.fetch(state.error_file, job.errors)
        self._store.journal.ended(job.name, state.status)
        ended = "ended" if state.status == "completed" else state.status
        answers = await self._store.read(job, f"batch {state.id} {ended} without an answer to it.")
        given, asked = len(answers.given), len(job.requests)
        log.info("batch %s: %s with %d of %d answers", state.id, ended, given, asked)
        if not given:
            self._store.close(job, "it holds no answer")


MOST_REQUESTS = 50_000
"""In one input file, as documented."""
MOST_BYTES = 200_000_000


class BatchOptions(Section):
    """How requests are gathered into batches, and how often one is looked at."""

    max_requests: Annotated[int, Field(gt=0, le=MOST_REQUESTS)] = 49_000
    """Requests in one batch at most; fewer if the account may not queue so many tokens."""
    max_bytes: Annotated[int, Field(gt=0, le=MOST_BYTES)] = 190_000_000
    """Bytes in one batch's file at most."""
    gather: Annotated[float, Field(ge=0)] = 2.0
    """Seconds without a new request after which a batch that is not full is sent."""
    poll: Annotated[float, Field(gt=0)] = 30.0
    """Seconds between two looks at an open batch."""
    completion_window: str = "24h"
    """How long the server may take; 24h is the only one the OpenAI API knows."""


Outcome = dict[str, Any] | EngineError
"""A chat completion, or why there is none."""


class PendingAnswer(NamedTuple):
    """Where a request's answer will be found, and when."""

    request: str
    job: BatchJob
    over: asyncio.Future[None]


class PendingRequests(NamedTuple):
    """What has been asked and is not decided yet."""

    batches: int
    """Batches at the server, or on their way there."""
    answered: int
    """Of their requests, by the server's last word."""
    requests: int
    gathering: bool
    """Whether a batch is being filled."""


class Batcher:
    """Collects requests until a batch is full or nobody adds to it any more."""

    def __init__(self, api: BatchApi, store: BatchStore, options: BatchOptions) -> None:
        self._api = api
        self._store = store
        self._options = options
        self._poller = BatchPoller(api, store, poll=options.poll)
        self._opening: asyncio.Task[None] | None = None
        self._filling: BatchJob | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._last_added = 0.0
        self._clean = True
        """Whether everybody who asked was answered."""

    async def ask(self, bodies: Iterable[Mapping[str, Any]]) -> list[Outcome]:
        """Return what became of each request, once all of them are decided.

        Who is cancelled while waiting loses nothing: the batch goes on without them. Bodies made
        as they are taken need no memory while their batch is open.
        """
        try:
            await self._open()
            places = [self._place(body) for body in bodies]
            pending = {place.over for place in places if isinstance(place, PendingAnswer)}
            if pending:
                await asyncio.wait(pending)
        except (asyncio.CancelledError, EngineError):
            self._clean = False
            raise
        return [self._outcome(place) for place in places]

    @property
    def waits_for(self) -> PendingRequests:
        """What those who asked wait for at this moment."""
        jobs = self._poller.jobs
        answered, requests = (
            sum(job.answered for job in jobs),
            sum(len(job.requests) for job in jobs),
        )
        return PendingRequests(len(jobs), answered, requests, self._filling is not None)

    async def aclose(self) -> None:
        """Stop watching; batches go on at the server, requests not yet sent are dropped."""
        if self._timer is not None:
            self._timer.cancel()
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self._poller.aclose()
        if self._filling is not None:
            self._clean = False
            self._store.close(self._filling, "never sent")
            self._filling.end(EngineUnavailable("The engine was closed before a batch was sent."))
        self._store.clear(used=self._clean)
        self._filling = self._timer = self._opening = None
        self._clean = True

    async def _open(self) -> None:
        """Take up what earlier processes left, once; all who come meanwhile wait for it."""
        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            opening = self._opening = asyncio.create_task(self._store.take_up(self._api))
        await asyncio.wait({opening})
        if opening.cancelled():
            raise EngineUnavailable("The engine was closed.")
        opening.result()

    def _place(self, body: Mapping[str, Any]) -> PendingAnswer | RequestRejected:
        request = content_hash("request", body).hex()
        job = self._store.find(request)
        if job is None:
            try:
                job = self._add(request, body)
            except RequestRejected as error:
                return error
        elif job.answers is None and job is not self._filling:
            self._poller.watch(job)
        return PendingAnswer(request, job, job.over)

    def _add(self, request: str, body: Mapping[str, Any]) -> BatchJob:
        row = {"custom_id": request, "method": "POST", "url": ENDPOINT, "body": body}
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        most = self._options.max_bytes
        if len(line) > most:
            raise RequestRejected(
                f"it is {len(line):,} bytes long, and a batch holds {most:,} at most."
            )
        if self._filling is not None and self._filling.size + len(line) > most:
            self._send_off(self._filling)
        job = self._filling = self._filling or BatchJob.new(self._store.folder)
        job.add(request, line)
        self._store.holds(job, request)
        self._last_added = asyncio.get_running_loop().time()
        if len(job.requests) >= self._options.max_requests:
            self._send_off(job)
        elif self._timer is None:
            self._wait_for_more()
        return job

    def _wait_for_more(self) -> None:
        """Send what was gathered, unless something was added a moment ago."""
        self._timer = None
        if self._filling is None:
            return
        loop = asyncio.get_running_loop()
        due = self._last_added + self._options.gather
        if loop.time() >= due:
            self._send_off(self._filling)
        else:
            self._timer = loop.call_at(due, self._wait_for_more)

    def _send_off(self, job: BatchJob) -> None:
        self._filling = None
        job.seal()
        self._poller.watch(job)

    def _outcome(self, place: PendingAnswer | RequestRejected) -> Outcome:
        if isinstance(place, RequestRejected):
            return place
        error = place.over.exception()
        if isinstance(error, EngineError):
            self._clean = self._clean and isinstance(error, RequestRejected)
            return error
        if error is not None:
            raise error
        try:
            return place.job.take(place.request)
        except RequestRejected as rejected:
            return rejected
