"""Several workers on one stream of work, and one BLAS thread for small matrices."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from rocketeval.errors import RocketEvalError


async def run_workers(
    work: Callable[[], Awaitable[None]], count: int, *, drop_at: asyncio.Event | None = None
) -> None:
    """Run `work` `count` times at once; an error of ours surfaces as itself, not in a group.

    Setting `drop_at` ends them at once, whatever they wait for.
    """

    async def worker() -> None:
        await work()

    try:
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(worker()) for _ in range(count)]
            if drop_at is not None:
                await _until_done_or(drop_at, workers)
    except ExceptionGroup as errors:
        raise _for_people(errors) from None


async def _until_done_or(drop_at: asyncio.Event, workers: list[asyncio.Task[None]]) -> None:
    dropping = asyncio.create_task(drop_at.wait())
    finished = asyncio.ensure_future(asyncio.wait(workers))
    try:
        await asyncio.wait([dropping, finished], return_when=asyncio.FIRST_COMPLETED)
        if drop_at.is_set():
            for worker in workers:
                worker.cancel()
    finally:
        dropping.cancel()
        finished.cancel()


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
