"""Workers on one stream of work: all of it, errors as themselves, dropped on demand."""

from __future__ import annotations

import asyncio

import pytest

from rocketeval.errors import EngineRefused, Stopped
from rocketeval.workers import run_workers, unless_stopped


async def test_every_piece_is_done_once() -> None:
    """Three workers share one stream."""
    stream, done = iter(range(10)), []

    async def work() -> None:
        for piece in stream:
            await asyncio.sleep(0)
            done.append(piece)

    await run_workers(work, 3)
    assert sorted(done) == list(range(10))


@pytest.mark.parametrize("droppable", [True, False])
async def test_our_error_surfaces_as_itself(droppable: bool) -> None:
    """One worker's error ends the others, and no task of ours stays behind."""
    before = asyncio.all_tasks()

    async def work() -> None:
        await asyncio.sleep(0)
        raise EngineRefused("no")

    with pytest.raises(EngineRefused):
        await run_workers(work, 2, stop=asyncio.Event() if droppable else None)
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == before


async def test_waiting_workers_are_dropped() -> None:
    """Setting the event ends workers that would wait for ever."""
    drop, reached = asyncio.Event(), []

    async def work() -> None:
        reached.append(True)
        await asyncio.Event().wait()

    async def soon() -> None:
        await asyncio.sleep(0.01)
        drop.set()

    await asyncio.wait_for(asyncio.gather(run_workers(work, 2, stop=drop, grace=0.0), soon()), 120)
    assert len(reached) == 2


async def test_finished_workers_do_not_wait_for_the_event() -> None:
    """When the stream ends, nobody waits for a drop that never comes."""

    async def work() -> None:
        await asyncio.sleep(0)

    await asyncio.wait_for(run_workers(work, 2, stop=asyncio.Event()), 120)


async def test_workers_are_told_before_they_are_dropped() -> None:
    """Those that can end by themselves have their time to do it, and are not cancelled."""
    stop, told, ended = asyncio.Event(), asyncio.Event(), list[str]()
    stop.set()

    async def work() -> None:
        await told.wait()
        ended.append("by itself")

    await run_workers(work, 2, stop=stop, grace=60.0, stopping=lambda _: told.set())
    assert ended == ["by itself", "by itself"]


async def test_a_stop_ends_whatever_is_awaited() -> None:
    """Work that would never end is cancelled; work that ends is returned, or its error raised."""
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
