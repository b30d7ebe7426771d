"""How much is done at once: workers on one stream, how they stop, and an adaptive limit.

Also one BLAS thread for small matrices.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, TypeVar

from rocketeval.errors import RocketEvalError, Stopped

GRACE_SECONDS = 2.0
"""After a stop, what is in flight has so long to finish; then it is dropped."""
SHRINK_SECONDS = 1.0
"""One burst of push-back halves only once."""
MOST_OVERTAKEN = 8
"""Answers beyond two for each request ahead of it that a late request waits for."""

T = TypeVar("T")


class AdaptiveLimiter:
    """Additive increase, multiplicative decrease, and a shared pause after push-back.

    With a `start`, that many at first, and one more for every answer until the first push-back.
    Whoever just gave a place back may take it again before those who wait: the next item of a
    response goes out while its prefix is still in the server's cache.
    """

    def __init__(self, ceiling: int, *, start: int | None = None) -> None:
        self.ceiling = ceiling
        self.allowed = float(min(ceiling, start or ceiling))
        self.in_flight = 0
        self.shrunk = False
        """Whether there was any push-back so far."""
        self.answers = 0
        """Requests that were answered so far."""
        self.answered_at = -math.inf
        """When the last one was."""
        self._silent_since = math.inf
        self._resume_at = 0.0
        self._shrunk_at = -SHRINK_SECONDS
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        try:
            while not self._may_start():
                await self._wait()
        except BaseException:
            # The place this waiter was woken for must not be lost with it.
            self._wake()
            raise
        self.in_flight += 1

    async def __aexit__(self, *_: object) -> None:
        self.in_flight -= 1
        self._wake()

    @property
    def silence(self) -> float:
        """Seconds that someone has waited for an answer without a sign of life."""
        return max(0.0, time.monotonic() - self._silent_since)

    def awaited(self) -> None:
        """Note that an answer is waited for from now on, if none was already."""
        self._silent_since = min(self._silent_since, time.monotonic())

    def heard(self, *, answer: bool = False) -> None:
        """Note a sign of life, or an `answer`; or that nobody waits for one any more."""
        self._silent_since = math.inf
        if answer:
            self.answers += 1
            self.answered_at = time.monotonic()

    def succeeded(self) -> None:
        """Let a little more through after an answer, if anyone waits for it."""
        if self.allowed < self.ceiling and self._waiting:
            more = 1.0 / self.allowed if self.shrunk else 1.0
            self.allowed = min(self.ceiling, self.allowed + more)
            self._wake()

    def pushed_back(self, pause: float, sent: float | None = None) -> None:
        """Halve what is allowed, at most once a second, and start nothing for `pause` seconds.

        What was `sent` before the last time tells nothing new.
        """
        now = time.monotonic()
        self._resume_at = max(self._resume_at, now + pause)
        if sent is not None and sent < self._shrunk_at:
            return
        if now - self._shrunk_at >= SHRINK_SECONDS:
            self.allowed = max(1.0, self.allowed / 2)
            self._shrunk_at = now
            self.shrunk = True

    def _may_start(self) -> bool:
        return self.in_flight < int(self.allowed) and time.monotonic() >= self._resume_at

    async def _wait(self) -> None:
        pause = self._resume_at - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _wake(self) -> None:
        free = int(self.allowed) - self.in_flight
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1


class Overdue:
    """Ends a request that the server has forgotten; one that is only late makes room instead.

    A request is late after `seconds`. In a server's queue it is answered after those ahead of it;
    the server has forgotten it if nobody is answered for so long, or many more than were ahead.
    """

    def __init__(self, limiter: AdaptiveLimiter, seconds: float) -> None:
        self.seconds = seconds
        self.ended = False
        self.overtaken = False
        """Whether others were answered in its place."""
        self._limiter = limiter
        self._sent = time.monotonic()
        self._expected = limiter.answers + 2 * limiter.in_flight + MOST_OVERTAKEN
        self._limit = asyncio.timeout(None)
        self._timer: asyncio.TimerHandle | None = None

    async def __aenter__(self) -> None:
        await self._limit.__aenter__()
        if self.seconds < math.inf:
            self._limiter.awaited()
            self._timer = asyncio.get_running_loop().call_later(self.seconds, self._look)

    async def __aexit__(self, *error: Any) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._limit.__aexit__(*error)

    def _look(self) -> None:
        loop, limiter = asyncio.get_running_loop(), self._limiter
        limiter.pushed_back(0.0, self._sent)
        left = max(self._sent, limiter.answered_at) + self.seconds - time.monotonic()
        self.overtaken = limiter.answers > self._expected
        if left > 0 and not self.overtaken:
            self._timer = loop.call_later(left, self._look)
            return
        self.ended = True
        self._limit.reschedule(loop.time())


async def run_workers(
    work: Callable[[], Awaitable[None]],
    count: int,
    *,
    stop: asyncio.Event | None = None,
    grace: float = GRACE_SECONDS,
    stopping: Callable[[float], None] | None = None,
) -> None:
    """Run `work` `count` times at once; an error of ours surfaces as itself, not in a group.

    Once `stop` is set, workers have `grace` seconds to end by themselves before they are
    cancelled, whatever they wait for; `stopping` is told those seconds first.
    """

    async def worker() -> None:
        await work()

    try:
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(worker()) for _ in range(count)]
            if stop is not None:
                await _until_done_or(stop, workers, grace, stopping)
    except ExceptionGroup as errors:
        raise _for_people(errors) from None


async def _until_done_or(
    stop: asyncio.Event,
    workers: list[asyncio.Task[None]],
    grace: float,
    stopping: Callable[[float], None] | None,
) -> None:
    asked = asyncio.create_task(stop.wait())
    finished = asyncio.ensure_future(asyncio.wait(workers))
    try:
        await asyncio.wait([asked, finished], return_when=asyncio.FIRST_COMPLETED)
        if stop.is_set() and not finished.done():
            if stopping is not None:
                stopping(grace)
                # Those told have the last moment to hand over what they have.
                grace += 1.0
            await asyncio.wait([finished], timeout=grace)
            for worker in workers:
                worker.cancel()
    finally:
        asked.cancel()
        finished.cancel()


async def unless_stopped(work: Awaitable[T], stop: asyncio.Event) -> T:
    """Return what `work` returns; once `stop` is set it is cancelled, and Stopped is raised."""
    asked, working = asyncio.create_task(stop.wait()), asyncio.ensure_future(work)
    try:
        await asyncio.wait([asked, working], return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise Stopped("Stopped before the end.", hint=GO_ON)
    finally:
        for task in (asked, working):
            task.cancel()
            with suppress(asyncio.CancelledError, RocketEvalError):
                await task


GO_ON = "Run the same command again to go on from here."


def _for_people(errors: ExceptionGroup[Exception]) -> Exception:
    """Return the first error that says what to do next, else of the system, else the group."""
    for kind in (RocketEvalError, OSError):
        found = next((error for error in errors.exceptions if isinstance(error, kind)), None)
        if found is not None:
            return found
    return errors


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread, where threadpoolctl is there to ask it to.

    At a thousand candidates and fewer, threads cost more in waiting than they save.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limits
