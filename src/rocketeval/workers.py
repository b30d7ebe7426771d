"""Concurrency: workers and how they stop, an adaptive limit, and BLAS threads."""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from typing import Any, Self, TypeVar

from rocketeval.errors import EngineError, JudgeChanged, RocketEvalError, Stopped

GRACE_SECONDS = 2.0
"""Seconds that requests in flight have to finish after a stop."""
SHRINK_SECONDS = 1.0
"""Minimum time between two reductions of the limit."""
ACCEPTING = 0.25
"""Share of accepted requests above which a server that turns some away is still in service."""
REMEMBERED = 50.0
"""Requests over which that share is averaged."""
KNOWN = 0.8
"""A share below this was measured over some rejected requests."""
HELPED = 1.25
"""A reduction of the limit helped if the accepted share grew by this factor."""
NO_SHRINKING = 10.0
"""Seconds without further reductions after one that did not help."""
MOST_OVERTAKEN = 8
"""Requests that may pass a waiting one; for a sent one, beyond two per request ahead of it."""

T = TypeVar("T")


class AdaptiveLimiter:
    """A concurrency limit with additive increase, multiplicative decrease and a shared back-off.

    It begins at `start`, if given, and grows by one per answer until the first back-off. A task
    that just released a slot may take it again before waiting tasks, so that the next item of a
    response is sent while its prefix is still in the server's cache. A waiting task is passed over
    at most MOST_OVERTAKEN times.
    """

    def __init__(self, ceiling: int, *, start: int | None = None) -> None:
        self.ceiling = ceiling
        self.allowed = float(min(ceiling, start or ceiling))
        self.in_flight = 0
        self.shrunk = False
        """True after the first back-off."""
        self.answers = 0
        """Number of answered requests."""
        self.answered_at = -math.inf
        """Time of the last answer."""
        self.usual_seconds = 0.0
        """Recent time to an answer."""
        self.accepted = 1.0
        """Recent share of requests that the server did not turn away."""
        self._silent_since = math.inf
        self._resume_at = 0.0
        self._before: tuple[float, float] | None = None
        self._hold_until = -math.inf
        self._shrunk_at = -SHRINK_SECONDS
        self._waiting: deque[_Turn] = deque()
        self._watched: set[Overdue] = set()
        self._timer: asyncio.TimerHandle | None = None
        """One for all requests; a timer for each would be a large part of a request's cost."""
        self._look_at = math.inf

    async def __aenter__(self) -> None:
        first = self._waiting[0] if self._waiting else None
        if (first is not None and first.overtaken >= MOST_OVERTAKEN) or not self._may_start():
            await self._wait()
        elif first is not None:
            first.overtaken += 1
        self.in_flight += 1

    async def __aexit__(self, *_: object) -> None:
        self.in_flight -= 1
        self._wake()

    @property
    def silence(self) -> float:
        """Seconds that a request has been waiting without any reply from the server."""
        return max(0.0, time.monotonic() - self._silent_since)

    def awaited(self) -> None:
        """Record that a request is waiting for an answer."""
        self._silent_since = min(self._silent_since, time.monotonic())

    def heard(self, *, answer: bool = False) -> None:
        """Record a reply, or an `answer`, or that no request is waiting any more."""
        self._silent_since = math.inf
        if answer:
            self.answers += 1
            self.answered_at = time.monotonic()

    def succeeded(self) -> None:
        """Raise the limit a little after an answer, if requests are waiting."""
        if self.allowed < self.ceiling and self._waiting:
            more = 1.0 / self.allowed if self.shrunk else 1.0
            self.allowed = min(self.ceiling, self.allowed + more)
            self._wake()

    @property
    def accepting(self) -> bool:
        """Whether the server turns requests away but still answers a good part of them."""
        return self.accepted >= ACCEPTING and self.usual_seconds > 0

    def took(self, seconds: float) -> None:
        """Record an accepted request and its time to an answer."""
        share = 1.0 / REMEMBERED
        self.usual_seconds += (seconds - self.usual_seconds) * (share if self.answers > 1 else 1.0)
        self.accepted += (1.0 - self.accepted) * share

    def rejected(self) -> None:
        """Record a request that a busy server turned away."""
        self.accepted -= self.accepted / REMEMBERED

    def pushed_back(self, pause: float, sent: float | None = None) -> None:
        """Halve the limit, at most once per second, and start nothing for `pause` seconds.

        A request `sent` before the last reduction does not reduce the limit again. If a reduction
        did not help, because the server turns requests away whatever their number, it is taken
        back, and the limit stays for a while.
        """
        now = time.monotonic()
        self._resume_at = max(self._resume_at, now + pause)
        if (sent is not None and sent < self._shrunk_at) or now < self._hold_until:
            return
        if now - self._shrunk_at >= SHRINK_SECONDS:
            if self._before is not None and self.accepting:
                allowed, accepted = self._before
                if self.accepted < min(1.0, HELPED * accepted):
                    self.allowed = max(self.allowed, allowed)
                    self._before, self._hold_until = None, now + NO_SHRINKING
                    self._wake()
                    return
            # Just after the first rejections, the share is not known yet.
            known = self.accepted <= KNOWN
            self._before = (self.allowed, self.accepted) if known else None
            self.allowed = max(1.0, self.allowed / 2)
            self._shrunk_at = now
            self.shrunk = True

    def watch(self, request: Overdue) -> None:
        """Look at a request when it is due, until it is unwatched."""
        self._watched.add(request)
        if request.due < self._look_at:
            self._set_timer(request.due)

    def unwatch(self, request: Overdue) -> None:
        """Forget a request that has ended."""
        self._watched.discard(request)
        if not self._watched:
            self._set_timer(math.inf)

    def _set_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._look_at = when
        if when < math.inf:
            seconds = max(0.0, when - time.monotonic())
            self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        now = time.monotonic()
        for request in self._watched:
            if request.due <= now:
                request.look(now)
        self._set_timer(min((one.due for one in self._watched if not one.ended), default=math.inf))

    def _may_start(self) -> bool:
        return self.in_flight < int(self.allowed) and time.monotonic() >= self._resume_at

    async def _wait(self) -> None:
        """Return when a slot is free and this task is the first of those that wait."""
        turn = _Turn()
        self._waiting.append(turn)
        try:
            while not (self._may_start() and self._waiting[0] is turn):
                pause = self._resume_at - time.monotonic()
                if pause > 0:
                    await asyncio.sleep(pause)
                else:
                    turn.called.clear()
                    await turn.called.wait()
        finally:
            # Also if cancelled: a free slot is for the next one.
            self._waiting.remove(turn)
            self._wake()

    def _wake(self) -> None:
        for turn in islice(self._waiting, max(0, int(self.allowed) - self.in_flight)):
            turn.called.set()


class _Turn:
    """A task that waits for a slot."""

    def __init__(self) -> None:
        self.called = asyncio.Event()
        self.overtaken = 0
        """Number of tasks that came later and started first."""


class Interruption:
    """A block of the current task that `end` interrupts with TimeoutError.

    It does what `asyncio.timeout` does, at a fraction of its cost while nothing is interrupted.
    """

    def __init__(self) -> None:
        self.ended = False
        self._task: asyncio.Task[Any] | None = None
        self._cancelling = 0

    def __enter__(self) -> Self:
        self._task = asyncio.current_task()
        assert self._task is not None
        self._cancelling = self._task.cancelling()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        if not self.ended or self._task is None:
            return
        # A task that somebody else cancels as well stays cancelled.
        ours = self._task.uncancel() <= self._cancelling
        if ours and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def end(self) -> None:
        """Interrupt the block, once."""
        if not self.ended and self._task is not None:
            self.ended = True
            self._task.cancel()


class Overdue(Interruption):
    """A timeout for requests that the server has lost; a late request lowers concurrency instead.

    A request is late after `seconds`. It counts as lost if no request is answered for that long, or
    if many more requests are answered than were ahead of it in the queue.
    """

    def __init__(self, limiter: AdaptiveLimiter, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.overtaken = False
        """True if too many later requests were answered first."""
        self._limiter = limiter
        self._sent = time.monotonic()
        self.due = self._sent + seconds
        """When to look at the request again."""
        self._expected = limiter.answers + 2 * limiter.in_flight + MOST_OVERTAKEN

    def __enter__(self) -> Self:
        super().__enter__()
        if self.seconds < math.inf:
            self._limiter.awaited()
            self._limiter.watch(self)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: Any) -> None:
        self._limiter.unwatch(self)
        if self.ended:
            super().__exit__(kind, error, trace)

    def look(self, now: float) -> None:
        """Lower the concurrency for a late request, and end it if it is lost."""
        limiter = self._limiter
        limiter.pushed_back(0.0, self._sent)
        self.due = max(self._sent, limiter.answered_at) + self.seconds
        self.overtaken = limiter.answers > self._expected
        if self.due <= now or self.overtaken:
            self.end()


async def run_workers(
    work: Callable[[], Awaitable[None]],
    count: int,
    *,
    stop: asyncio.Event | None = None,
    grace: float = GRACE_SECONDS,
    stopping: Callable[[float], None] | None = None,
    grace_on_error: bool = False,
) -> None:
    """Run `count` copies of `work` concurrently; raise a RocketEvalError itself, not in a group.

    Once `stop` is set, workers have `grace` seconds to end before they are cancelled; `stopping` is
    called with those seconds first. An error ends all workers at once. With `grace_on_error`, an
    EngineError other than JudgeChanged is like `stop`: `work` must then start nothing more.
    """
    failed, failures = asyncio.Event(), list[EngineError]()

    async def worker() -> None:
        try:
            await work()
        except EngineError as error:
            if not grace_on_error or isinstance(error, JudgeChanged):
                raise
            # Requests of other workers are in flight, and may be paid for.
            failures.append(error)
            failed.set()

    try:
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(worker()) for _ in range(count)]
            if stop is not None:
                await _until_done_or((stop, failed), workers, grace, stopping)
    except ExceptionGroup as errors:
        raise _for_people(errors, failures) from None
    if failures:
        raise failures[0]


async def _until_done_or(
    stops: Sequence[asyncio.Event],
    workers: list[asyncio.Task[None]],
    grace: float,
    stopping: Callable[[float], None] | None,
) -> None:
    asked = [asyncio.create_task(stop.wait()) for stop in stops]
    finished = asyncio.ensure_future(asyncio.wait(workers))
    try:
        await asyncio.wait([*asked, finished], return_when=asyncio.FIRST_COMPLETED)
        if not finished.done():
            if stopping is not None:
                stopping(grace)
                # Leave workers a moment to return partial results.
                grace += 1.0
            await asyncio.wait([finished], timeout=grace)
            for worker in workers:
                worker.cancel()
    finally:
        for waiting in (*asked, finished):
            waiting.cancel()


async def unless_stopped(work: Awaitable[T], stop: asyncio.Event) -> T:
    """Return the result of `work`; cancel it and raise Stopped once `stop` is set."""
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


GO_ON = "Run the same command again to continue from here."


def _for_people(errors: ExceptionGroup[Exception], failures: Sequence[EngineError]) -> Exception:
    """Return the first RocketEvalError, else the first OSError, else the group."""
    every = (*errors.exceptions, *failures)
    for kind in (RocketEvalError, OSError):
        found = next((error for error in every if isinstance(error, kind)), None)
        if found is not None:
            return found
    return errors


def one_blas_thread() -> AbstractContextManager[Any]:
    """Return a context in which BLAS uses one thread, if threadpoolctl is installed.

    Up to a thousand candidates, threads cost more than they save.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limits
