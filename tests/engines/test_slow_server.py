"""Slow servers: what waits in their queue is waited for, what they forgot is asked again."""

from __future__ import annotations

import asyncio

import pytest

from rocketeval.cli.progress import LineObserver
from rocketeval.grading.loop import Grading, grade
from rocketeval.hashing import content_hash
from rocketeval.records import GradingTask, Judgment
from support.slow_server import SlowServer, engine_for, in_virtual_time

TASKS, ITEMS = 60, 3


def task(number: int) -> GradingTask:
    """A task of a few items."""
    items = tuple(f"Item {item}?" for item in range(ITEMS))
    return GradingTask(content_hash("slow", number), f"q{number}", "c", f"Text {number}. ", items)


class Samples(LineObserver):
    """Notes the time left that is told at every judgment, beside the time of day."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: asyncio.get_running_loop().time())
        self.told: list[tuple[float, float | None]] = []
        self.lines: list[str] = []

    def judged(self, judgment: Judgment) -> None:
        super().judged(judgment)
        self.told.append((self._clock(), self.tally.seconds_left))

    def say(self, text: str) -> None:
        self.lines.append(text)


async def run(
    server: SlowServer, samples: Samples | None = None, tasks: int = TASKS
) -> tuple[Grading, SlowServer, list[str]]:
    """Grade tasks with a judge of default settings; a line of progress is told every second."""
    engine = engine_for(server)
    await engine.identify()
    observer = samples or Samples()
    observer.stage_began("grade", tasks)

    async def tick() -> None:
        while True:
            await asyncio.sleep(1.0)
            observer.tick()

    ticking = asyncio.create_task(tick())
    try:
        grading = await grade(
            map(task, range(tasks)),
            engine,
            lambda _: None,
            concurrency=engine.in_flight,
            known={},
            observer=observer,
            stop=asyncio.Event(),
        )
    finally:
        ticking.cancel()
        await engine.aclose()
    return grading, server, observer.lines


@pytest.mark.parametrize("pace", [0.01, 1.0, 5.0, 38.0, 100.0])
def test_a_slow_server_finishes_everything_and_is_asked_once(
    pace: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One answer in 5, 38 or 100 seconds with a timeout of 120: no failure, nothing sent twice."""

    async def work() -> tuple[Grading, SlowServer, list[str]]:
        return await run(SlowServer(pace))

    grading, server, _ = in_virtual_time(work(), monkeypatch)
    assert (grading.judged, grading.failures) == (TASKS, [])
    assert len(server.served) == len(set(server.served)) == TASKS * ITEMS


@pytest.mark.parametrize("pace", [1.0, 5.0, 38.0])
def test_the_time_left_is_honest(pace: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the first tenth on, it is within a factor of two of what it takes."""

    async def work() -> tuple[float, Samples]:
        samples = Samples()
        await run(SlowServer(pace), samples)
        return asyncio.get_running_loop().time(), samples

    end, samples = in_virtual_time(work(), monkeypatch)
    checked = 0
    for at, told in samples.told[TASKS // 10 : -3]:
        assert told is not None
        assert (end - at) / 2 <= told <= 2 * (end - at)
        checked += 1
    assert checked > TASKS / 2


def test_a_server_slower_than_the_timeout_gets_a_longer_second_try(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 170 s an answer, the first try of 120 s is in vain and the next waits long enough."""

    async def work() -> tuple[Grading, SlowServer, list[str]]:
        return await run(SlowServer(170.0, drops=True), tasks=1)

    grading, _, _ = in_virtual_time(work(), monkeypatch)
    assert (grading.judged, grading.failures) == (1, [])


def test_a_lost_request_is_asked_again_while_others_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The one request that the server forgot is overtaken by the others, and sent again."""

    async def work() -> tuple[Grading, SlowServer, list[str]]:
        server = SlowServer(1.0)
        server.loses = {5}
        return await run(server)

    grading, server, lines = in_virtual_time(work(), monkeypatch)
    assert (grading.judged, grading.failures) == (TASKS, [])
    assert server.seen == TASKS * ITEMS + 1
    assert any("1 retry (timeout 1)" in line for line in lines)


def test_a_hung_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody gets an answer, patience ends; the progress says why, and how many wait."""

    async def work() -> tuple[float, Grading, list[str]]:
        server = SlowServer(1.0)
        server.loses = set(range(1_000))
        grading, _, lines = await run(server)
        return asyncio.get_running_loop().time(), grading, lines

    end, grading, lines = in_virtual_time(work(), monkeypatch)
    assert grading.gone
    assert "gave no answer" in grading.failures[0].reason
    assert end < 900
    assert any("(timeout " in line and "instead of 32" in line for line in lines)


def test_a_busy_server_that_answers_others_costs_no_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests turned away for longer than patience succeed, because the server is at work."""

    async def work() -> tuple[Grading, SlowServer, list[str]]:
        server = SlowServer(10.0)
        # Every second request is turned away, for much longer than the patience of 300 s.
        server.busy = set(range(0, 400, 2))
        return await run(server)

    grading, server, lines = in_virtual_time(work(), monkeypatch)
    assert (grading.judged, grading.failures) == (TASKS, [])
    assert len(server.served) == TASKS * ITEMS
    assert any("retries (HTTP 503 " in line for line in lines)
