"""Execution of a run from the command line: Ctrl-C handling and log output."""

from __future__ import annotations

import logging
import os
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TYPE_CHECKING, Any, TypeVar

import click

from rocketeval.text import printable

if TYPE_CHECKING:
    import asyncio

    from rocketeval.observer import Observer
    from rocketeval.pipeline import Run


class LogLines(logging.Handler):
    """A log handler that passes each record on as one printable line."""

    def __init__(self, say: Callable[[str], None]) -> None:
        super().__init__(logging.INFO)
        self._say = say

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on one record."""
        self._say(printable(record.getMessage()))


@contextmanager
def log_shown(observer: Observer) -> Iterator[None]:
    """Show log lines together with the progress, unless the observer shows nothing."""
    from rocketeval.cli.progress import StageObserver

    if not isinstance(observer, StageObserver):
        yield
        return
    logger, lines = logging.getLogger("rocketeval"), LogLines(observer.say)
    before = logger.level
    logger.addHandler(lines)
    logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.removeHandler(lines)
        logger.setLevel(before)


INCOMPLETE = 3
"""Exit code: finished, but some tasks failed or were left out."""
LOOP_FILES = 8
"""Files that an event loop and its first connection open."""
TICK_SECONDS = 1.0
STOPPING = "Stopping: waiting up to {seconds:.0f} s for answers in flight (Ctrl-C again: now)."

T = TypeVar("T")


def run_with_signals(run: Run, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return `await work()` while holding the run's lock.

    The first Ctrl-C, SIGTERM or SIGHUP waits a few seconds for answers in flight; the second stops
    immediately. Signals that the process was started to ignore stay ignored.
    """
    import asyncio

    working: list[asyncio.Task[Any]] = []

    async def begin() -> T:
        working.extend(task for task in [asyncio.current_task()] if task)
        return await ticking(run.observer, work)

    with _signals(run, working), run.store.locked(), log_shown(run.observer):
        try:
            _check_open_files()
            return asyncio.run(begin())
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None
        finally:
            run.observer.closed()


def _check_open_files() -> None:
    """Raise OSError if an event loop could not open its files; it would print a traceback."""
    handles: list[int] = []
    try:
        for _ in range(LOOP_FILES // 2):
            handles += os.pipe()
    finally:
        for handle in handles:
            os.close(handle)


async def ticking(observer: Observer, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return `await work()` while calling the observer's `tick` once per second."""
    import asyncio

    from rocketeval.cli.progress import StageObserver

    if not isinstance(observer, StageObserver):
        return await work()

    async def tick() -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            observer.tick()

    ticking = asyncio.create_task(tick())
    try:
        return await work()
    finally:
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking


@contextmanager
def _signals(run: Run, working: list[asyncio.Task[Any]]) -> Iterator[None]:
    """Stop the run at the first signal, cancel its task at the second."""
    import asyncio

    from rocketeval.cli.progress import StageObserver
    from rocketeval.workers import GRACE_SECONDS

    def stop() -> None:
        run.stop.set()
        text = STOPPING.format(seconds=GRACE_SECONDS)
        if isinstance(run.observer, StageObserver):
            run.observer.stopping()
            run.observer.say(text)
        else:
            click.echo(text, err=True)

    def interrupted(number: int, frame: FrameType | None) -> None:
        if run.stoppable and run.stop.is_set() and working:
            # Raised inside a worker, KeyboardInterrupt would print tracebacks of other tasks.
            asyncio.get_running_loop().call_soon_threadsafe(working.pop().cancel)
            return
        if not run.stoppable or run.stop.is_set():
            raise KeyboardInterrupt
        run.stop.set()
        # A signal does not wake a sleeping event loop, and may arrive while a line is drawn; so
        # the loop itself prints the message.
        asyncio.get_running_loop().call_soon_threadsafe(stop)

    # `nohup` and shells ignore signals for a command, which must then not be stopped by them.
    heeded = [number for number in _STOPPING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, interrupted) for number in heeded}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_STOPPING = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
)
"""Signals that end a run in order; a closed terminal sends SIGHUP, which Windows lacks."""
