"""Slow servers: queued requests are waited for, lost ones are resent."""

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
    """Return a task with a few items."""
    items = tuple(f"Item {item}?" for item in range(ITEMS))
    return GradingTask(content_hash("slow", number), f"q{number}", "c", f"Text {number}. ", items)


class Samples(LineObserver):
    """Records the shown time left at every judgment."""

    def __init__(self) -> None:
        super().__init__(clock=lambda: asyncio.get_running_loop().time())
        self.estimates: list[tuple[float, float | None]] = []
        self.lines: list[str] = []

    def judged(self, judgment: Judgment) -> None:
        super().judged(judgment)
        self.estimates.append((self._clock(), self.tally.seconds_left))

    def say(self, text: str) -> None:
        self.lines.append(text)


async def run(
    server: SlowServer, samples: Samples | None = None, tasks: int = TASKS
) -> tuple[Grading, SlowServer, list[str]]:
    """Grade tasks with default settings, with a progress line every second."""
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
def test_slow_server_gets_every_request_once(pace: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """One answer in 5, 38 or 100 s with a timeout of 120 s: no failure, nothing resent."""

    async def work() -> tuple[Grading, SlowServer, list[str]]:
        return await run(SlowServer(pace))

    grading, server, _ = in_virtual_time(work(), monkeypatch)
    assert (grading.judged, grading.failures) == (TASKS, [])
    assert len(server.served) == len(set(server.served)) == TASKS * ITEMS


@pytest.mark.parametrize("pace", [1.0, 5.0, 38.0])
def test_time_left_is_accurate(pace: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the first tenth it is within a factor of two."""

    async def work() -> tuple[float, Samples]:
        samples = Samples()
        await run(SlowServer(pace), samples)
        return asyncio.get_running_loop().time(), samples

    end, samples = in_virtual_time(work(), monkeypatch)
    checked = 0
    for at, estimate in samples.estimates[TASKS // 10 : -3]:
        assert estimate is not None
        assert (end - at) / 2 <= estimate <= 2 * (end - at)
        checked += 1
    assert checked > TASKS / 2


def test_second_attempt_waits_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With 170 s per answer, the first attempt of 120 s fails and the next succeeds."""

    async def work() -> tuple[Grading, SlowServer, list[str]]:
        return await run(SlowServer(170.0, drops=True), tasks=1)

    grading, _, _ = in_virtual_time(work(), monkeypatch)
    assert (grading.judged, grading.failures) == (1, [])


def test_lost_request_is_resent_while_others_are_answered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A request that the server forgot is overtaken by others and resent."""

    async def work() -> tuple[Grading, SlowServer, list[str]]:
        server = SlowServer(1.0)
        server.loses = {5}
        return await run(server)

    grading, server, lines = in_virtual_time(work(), monkeypatch)
    assert (grading.judged, grading.failures) == (TASKS, [])
    assert server.seen == TASKS * ITEMS + 1
    assert any("1 retry (timeout 1)" in line for line in lines)


def test_hung_server_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any answer, patience ends; the progress line shows the reason."""

    async def work() -> tuple[float, Grading, list[str]]:
        server = SlowServer(1.0)
        server.loses = set(range(1_000))
        grading, _, lines = await run(server)
        return asyncio.get_running_loop().time(), grading, lines

    end, grading, lines = in_virtual_time(work(), monkeypatch)
    assert grading.unreachable
    assert "gave no answer" in grading.failures[0].reason
    assert end < 900
    assert any("(timeout " in line and "instead of 32" in line for line in lines)


def test_busy_server_that_answers_others_costs_no_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests turned away for longer than patience succeed while others are answered."""

    async def work() -> tuple[Grading, SlowServer, list[str]]:
        server = SlowServer(10.0)
        # Every second request is rejected, for much longer than the patience of 300 s.
        server.busy = set(range(0, 400, 2))
        return await run(server)

    grading, server, lines = in_virtual_time(work(), monkeypatch)
    assert (grading.judged, grading.failures) == (TASKS, [])
    assert len(server.served) == TASKS * ITEMS
    assert any("retries (HTTP 503 " in line for line in lines)
