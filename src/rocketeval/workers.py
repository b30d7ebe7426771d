"""Several workers on one stream of work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from rocketeval.errors import RocketEvalError


async def run_workers(work: Callable[[], Awaitable[None]], count: int) -> None:
    """Run `work` `count` times at once; an error of ours surfaces as itself, not in a group."""

    async def worker() -> None:
        await work()

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(worker())
    except ExceptionGroup as errors:
        raise _for_people(errors) from None


def _for_people(errors: ExceptionGroup[Exception]) -> Exception:
    """Return the first error that says what to do next, else the whole group."""
    ours = (error for error in errors.exceptions if isinstance(error, RocketEvalError))
    return next(ours, errors)
