"""Concurrent workers: completion, errors and stopping."""

from __future__ import annotations

import asyncio

import pytest

from rocketeval.errors import EngineRefused, JudgeChanged, Stopped
from rocketeval.workers import run_workers, unless_stopped


async def test_every_piece_is_done_once() -> None:
    """Three workers share one iterator."""
    stream, done = iter(range(10)), []

    async def work() -> None:
        for piece in stream:
            await asyncio.sleep(0)
            done.append(piece)

    await run_workers(work, 3)
    assert sorted(done) == list(range(10))


@pytest.mark.parametrize("droppable", [True, False])
async def test_error_is_raised_without_a_group(droppable: bool) -> None:
    """One worker's error ends the others, and no task is left."""
    before = asyncio.all_tasks()

    async def work() -> None:
        await asyncio.sleep(0)
        raise EngineRefused("no")

    with pytest.raises(EngineRefused):
        await run_workers(work, 2, stop=asyncio.Event() if droppable else None)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


@pytest.mark.parametrize(
    ("error", "grace_on_error", "ended"),
    [
        (EngineRefused("no"), True, "by itself"),
        (EngineRefused("no"), False, "cancelled"),
        (JudgeChanged("other"), True, "cancelled"),
    ],
)
async def test_refusal_lets_requests_in_flight_end(
    error: EngineRefused, grace_on_error: bool, ended: str
) -> None:
    """With grace, the other workers end by themselves, unless they may ask another judge."""
    first, found = iter([True]), list[str]()

    async def work() -> None:
        if next(first, False):
            raise error
        try:
            await asyncio.sleep(0.01)
            found.append("by itself")
        except asyncio.CancelledError:
            found.append("cancelled")
            raise

    with pytest.raises(type(error)):
        await run_workers(work, 3, stop=asyncio.Event(), grace=60.0, grace_on_error=grace_on_error)
    assert set(found) <= {ended}


async def test_waiting_workers_are_cancelled() -> None:
    """Setting the event ends workers that would wait forever."""
    drop, reached = asyncio.Event(), []

    async def work() -> None:
        reached.append(True)
        await asyncio.Event().wait()

    async def soon() -> None:
        await asyncio.sleep(0.01)
        drop.set()

    await asyncio.wait_for(asyncio.gather(run_workers(work, 2, stop=drop, grace=0.0), soon()), 120)
    assert len(reached) == 2


async def test_finished_workers_do_not_wait_for_a_stop() -> None:
    """The call returns when the work is done, although the event is never set."""

    async def work() -> None:
        await asyncio.sleep(0)

    await asyncio.wait_for(run_workers(work, 2, stop=asyncio.Event()), 120)


async def test_stopping_is_called_before_workers_are_cancelled() -> None:
    """Workers that end within the grace period are not cancelled."""
    stop, called, ended = asyncio.Event(), asyncio.Event(), list[str]()
    stop.set()

    async def work() -> None:
        await called.wait()
        ended.append("by itself")

    await run_workers(work, 2, stop=stop, grace=60.0, stopping=lambda _: called.set())
    assert ended == ["by itself", "by itself"]


async def test_unless_stopped() -> None:
    """Finished work is returned or its error raised; endless work is cancelled by a stop."""
    stop, ended = asyncio.Event(), list[bool]()

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def soon() -> int:
        return 7

    async def refused() -> None:
        raise EngineRefused("no")

    assert await unless_stopped(soon(), stop) == 7
    with pytest.raises(EngineRefused):
        await unless_stopped(refused(), stop)
    asyncio.get_running_loop().call_later(0.01, stop.set)
    with pytest.raises(Stopped):
        await unless_stopped(for_ever(), stop)
    assert ended == [True]
