"""Run a run from the command line so that Ctrl-C stops it cleanly."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar

import click

from rocketeval.cli.log_lines import log_shown
from rocketeval.pipeline import Run

INCOMPLETE = 3
"""Exit code: finished, but some tasks failed or were left out."""

T = TypeVar("T")


def drive(run: Run, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Return `await work()`, holding the run; one Ctrl-C lets tasks in flight finish, two don't."""
    with _signals(run), run.store.locked(), log_shown(run.observer):
        try:
            return asyncio.run(work())
        finally:
            run.observer.closed()


@contextmanager
def _signals(run: Run) -> Iterator[None]:
    def interrupted(number: int, frame: FrameType | None) -> None:
        if not run.stoppable or run.stop.is_set():
            raise KeyboardInterrupt
        run.stop.set()
        # A signal does not wake a loop that sleeps until its next look at an open batch.
        asyncio.get_running_loop().call_soon_threadsafe(run.stop.set)
        click.echo("Stopping: waiting for answers in flight (Ctrl-C again to drop them).", err=True)

    before = {number: signal.signal(number, interrupted) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_STOPPING = (signal.SIGINT, signal.SIGTERM)
