"""The desk: takes requests, gathers them into batches, and hands out the answers.

A request is one row of a batch, named by a hash of its body. Asked again, by this process or a
later one, it is found in the batch that holds it: nothing is paid for twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import orjson

from rocketeval.engines.batch.api import ENDPOINT, BatchApi
from rocketeval.engines.batch.carrier import Carrier
from rocketeval.engines.batch.job import Job
from rocketeval.engines.batch.options import BatchOptions
from rocketeval.engines.batch.shelf import Shelf
from rocketeval.errors import EngineError, EngineUnavailable, RequestRejected
from rocketeval.hashing import content_hash

Outcome = dict[str, Any] | EngineError
"""A chat completion, or why there is none."""


class Place(NamedTuple):
    """Where a request's answer will be found, and when."""

    request: str
    job: Job
    over: asyncio.Future[None]


class Waits(NamedTuple):
    """What has been asked and is not decided yet."""

    batches: int
    """Batches at the server, or on their way there."""
    answered: int
    """Of their requests, by the server's last word."""
    requests: int
    gathering: bool
    """Whether a batch is being filled."""


class Desk:
    """Collects requests until a batch is full or nobody adds to it any more."""

    def __init__(self, api: BatchApi, shelf: Shelf, options: BatchOptions) -> None:
        self._api = api
        self._shelf = shelf
        self._options = options
        self._carrier = Carrier(api, shelf, poll=options.poll)
        self._opening: asyncio.Task[None] | None = None
        self._filling: Job | None = None
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
            pending = {place.over for place in places if isinstance(place, Place)}
            if pending:
                await asyncio.wait(pending)
        except (asyncio.CancelledError, EngineError):
            self._clean = False
            raise
        return [self._outcome(place) for place in places]

    @property
    def waits_for(self) -> Waits:
        """What those who asked wait for at this moment."""
        jobs = self._carrier.jobs
        answered, requests = (
            sum(job.answered for job in jobs),
            sum(len(job.requests) for job in jobs),
        )
        return Waits(len(jobs), answered, requests, self._filling is not None)

    async def aclose(self) -> None:
        """Stop watching; batches go on at the server, requests not yet sent are dropped."""
        if self._timer is not None:
            self._timer.cancel()
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        await self._carrier.aclose()
        if self._filling is not None:
            self._clean = False
            self._shelf.close(self._filling, "never sent")
            self._filling.end(EngineUnavailable("The engine was closed before a batch was sent."))
        self._shelf.clear(used=self._clean)
        self._filling = self._timer = self._opening = None
        self._clean = True

    async def _open(self) -> None:
        """Take up what earlier processes left, once; all who come meanwhile wait for it."""
        opening = self._opening
        if opening is None or (opening.done() and (opening.cancelled() or opening.exception())):
            opening = self._opening = asyncio.create_task(self._shelf.take_up(self._api))
        await asyncio.wait({opening})
        if opening.cancelled():
            raise EngineUnavailable("The engine was closed.")
        opening.result()

    def _place(self, body: Mapping[str, Any]) -> Place | RequestRejected:
        request = content_hash("request", body).hex()
        job = self._shelf.find(request)
        if job is None:
            try:
                job = self._add(request, body)
            except RequestRejected as error:
                return error
        elif job.answers is None and job is not self._filling:
            self._carrier.carry(job)
        return Place(request, job, job.over)

    def _add(self, request: str, body: Mapping[str, Any]) -> Job:
        row = {"custom_id": request, "method": "POST", "url": ENDPOINT, "body": body}
        line = orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)
        most = self._options.max_bytes
        if len(line) > most:
            raise RequestRejected(
                f"it is {len(line):,} bytes long, and a batch holds {most:,} at most."
            )
        if self._filling is not None and self._filling.size + len(line) > most:
            self._send_off(self._filling)
        job = self._filling = self._filling or Job.new(self._shelf.folder)
        job.add(request, line)
        self._shelf.holds(job, request)
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

    def _send_off(self, job: Job) -> None:
        self._filling = None
        job.seal()
        self._carrier.carry(job)

    def _outcome(self, place: Place | RequestRejected) -> Outcome:
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
