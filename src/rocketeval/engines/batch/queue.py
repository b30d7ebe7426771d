"""Collecting requests into batches, polling the batches, and handing out the answers.

A request is one row of a batch, named by a hash of its body. If the same request comes again, from
this process or a later one, it is found in the batch that contains it, so it is paid for only once.
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
from rocketeval.errors import (
    EngineError,
    EngineUnavailable,
    RequestRejected,
    StoreError,
    UnusableReply,
)
from rocketeval.hashing import content_hash
from rocketeval.store.files import write_bytes

log = logging.getLogger("rocketeval.batch")


class BatchPoller:
    """Polls any number of batches at once, each in its own task."""

    def __init__(self, api: BatchApi, store: BatchStore, *, poll: float) -> None:
        self._api = api
        self._store = store
        self._poll = poll
        self._tasks: set[asyncio.Task[None]] = set()
        self.jobs: set[BatchJob] = set()
        """The batches being polled."""
        self._queue: deque[asyncio.Future[None]] = deque()
        """Batches that wait until another one ends."""
        self._ends = 0
        """Number of batches that have ended."""

    def watch(self, job: BatchJob) -> None:
        """Follow a batch to its end in the background, unless that is already happening."""
        if job.watched:
            return
        job.begin()
        task = asyncio.create_task(self._follow(job))
        self._tasks.add(task)
        self.jobs.add(job)
        task.add_done_callback(partial(self._finished, job))

    async def aclose(self) -> None:
        """Stop polling; batches continue on the server."""
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

    async def _follow(self, job: BatchJob) -> None:
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
                # Until its id is recorded, only the tag can find the batch.
                job.since = self._store.journal.intend(job.name, tag, job.file, count)
                found = await self._api.create(job.file, tag)
        except InDoubt as doubt:
            raise doubt.reason from None
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
        """Wait until another batch ends; False if there is none to wait for."""
        if self._ends > job.ends_before:
            return True
        if len(self._tasks) - len(self._queue) <= 1:
            return False
        turn = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        log.info("the account's batch queue is full; waiting until one of our batches ends")
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
            raise UnusableReply(f"batch {state.id} was rejected: {why.rstrip('.')}{advice}.")
        if state.output_file is None:
            write_bytes(job.output, b"")
        elif not await self._api.fetch(state.output_file, job.output):
            self._store.close(job, "the server no longer has its answers")
            raise UnusableReply(f"the server no longer has the answers of batch {state.id}.")
        if state.error_file is not None:
            await self._api.fetch(state.error_file, job.errors)
        self._store.journal.ended(job.name, state.status)
        ended = "ended" if state.status == "completed" else state.status
        answers = await self._store.read(job, f"batch {state.id} {ended} without an answer to it.")
        given, asked = len(answers.given), len(job.requests)
        log.info("batch %s: %s with %d of %d answers", state.id, ended, given, asked)
        if not given:
            self._store.close(job, "it contains no answer")


MOST_REQUESTS = 50_000
"""Documented limit of requests per input file."""
MOST_BYTES = 200_000_000


class BatchOptions(Section):
    """Options that control how requests are collected into batches, and how often to poll."""

    max_requests: Annotated[int, Field(gt=0, le=MOST_REQUESTS)] = 49_000
    """Maximum requests per batch; lower it if the account's token queue is smaller."""
    max_bytes: Annotated[int, Field(gt=0, le=MOST_BYTES)] = 190_000_000
    """Maximum bytes per batch file."""
    gather: Annotated[float, Field(ge=0)] = 2.0
    """Seconds without a new request after which a partly filled batch is sent."""
    poll: Annotated[float, Field(gt=0)] = 30.0
    """Seconds between two polls of an open batch."""
    completion_window: str = "24h"
    """Time the server may take; the OpenAI API accepts only 24h."""


Outcome = dict[str, Any] | EngineError
"""A chat completion, or the error in its place."""


class PendingAnswer(NamedTuple):
    """The batch that will contain a request's answer, and a future for its end."""

    request: str
    job: BatchJob
    over: asyncio.Future[None]


class PendingRequests(NamedTuple):
    """Summary of the requests that are not answered yet."""

    batches: int
    """Batches on the server, or being created."""
    answered: int
    """Answered requests in those batches, as the server last reported."""
    requests: int
    gathering: bool
    """Whether a batch is being filled."""


class Batcher:
    """Collects requests until a batch is full or no more arrive."""

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
        """Whether every caller got its answers."""
        self._recorded = False
        """Whether all answers given so far are recorded."""
        self._everything = False
        """Whether no other answers are needed either."""

    async def ask(self, bodies: Iterable[Mapping[str, Any]]) -> list[Outcome]:
        """Return the outcome of each request, once all of them are decided.

        A caller that is cancelled while waiting loses nothing: the batch continues. If `bodies` is
        a generator, no body stays in memory while its batch is open.
        """
        self._recorded = False
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

    def discard(self, body: Mapping[str, Any]) -> None:
        """Note that the answer to a request is unusable: who asks again gets another one."""
        self._store.discard(_name(body))

    def recorded(self, *, everything: bool) -> None:
        """Note that callers have recorded all answers so far; `everything`: they need no others."""
        self._recorded, self._everything = True, everything

    @property
    def waits_for(self) -> PendingRequests:
        """Summary of the requests that callers currently wait for."""
        jobs = self._poller.jobs
        answered, requests = (
            sum(job.answered for job in jobs),
            sum(len(job.requests) for job in jobs),
        )
        return PendingRequests(len(jobs), answered, requests, self._filling is not None)

    async def aclose(self) -> None:
        """Stop polling; batches continue on the server, requests not yet sent are dropped."""
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
        used = self._clean and self._recorded
        self._store.clear(used=used, everything=used and self._everything)
        self._filling = self._timer = self._opening = None
        self._clean, self._recorded, self._everything = True, False, False

    async def _open(self) -> None:
        """Resume the batches of earlier processes, once; concurrent callers wait for it."""
        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            opening = self._opening = asyncio.create_task(self._store.resume(self._api))
        await asyncio.wait({opening})
        if opening.cancelled():
            raise EngineUnavailable("The engine was closed.")
        opening.result()

    def _place(self, body: Mapping[str, Any]) -> PendingAnswer | RequestRejected:
        request = _name(body)
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
                f"the request has {len(line):,} bytes, and a batch file at most {most:,}."
            )
        if self._filling is not None and self._filling.size + len(line) > most:
            self._send_off(self._filling)
        job = self._filling = self._filling or BatchJob.new(self._store.folder)
        try:
            job.add(request, line)
        except StoreError as error:
            self._give_up(job, error)
            raise
        self._store.holds(job, request)
        self._last_added = asyncio.get_running_loop().time()
        if len(job.requests) >= self._options.max_requests:
            self._send_off(job)
        elif self._timer is None:
            self._wait_for_more()
        return job

    def _wait_for_more(self) -> None:
        """Send the collected requests, unless one was added a moment ago."""
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
        try:
            job.seal()
        except StoreError as error:
            self._give_up(job, error)
        else:
            self._poller.watch(job)

    def _give_up(self, job: BatchJob, error: StoreError) -> None:
        """Forget an unsent batch that cannot be written to this disk."""
        self._filling = None
        self._store.close(job, error.message)
        job.end(error)

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


def _name(body: Mapping[str, Any]) -> str:
    """Return the name of a request: a hash of its content."""
    return content_hash("request", body).hex()
