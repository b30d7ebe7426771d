"""Run async stages from the command line so that Ctrl-C stops cleanly."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable
from typing import TypeVar

import click

from rocketeval.errors import Stopped
from rocketeval.pipeline import Run

INCOMPLETE = 3
"""Exit code: finished, but some tasks failed or were left out."""

T = TypeVar("T")


def drive(run: Run, work: Callable[[], Awaitable[T]]) -> T:
    """Return `await work()`; the first Ctrl-C lets tasks in flight finish, the second does not."""
    try:
        return asyncio.run(_with_signals(run, work))
    finally:
        run.observer.closed()


async def _with_signals(run: Run, work: Callable[[], Awaitable[T]]) -> T:
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work())

    def interrupted() -> None:
        if run.stop.is_set():
            task.cancel()
            return
        run.stop.set()
        click.echo("Stopping: waiting for answers in flight (Ctrl-C again to drop them).", err=True)

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, interrupted)
        except NotImplementedError:  # Windows: Ctrl-C raises KeyboardInterrupt instead
            break
    try:
        return await task
    except asyncio.CancelledError:
        raise Stopped(
            "Stopped at once; answers in flight were dropped.",
            hint="Finished judgments are safe: run the same command again to go on.",
        ) from None
