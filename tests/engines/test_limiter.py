"""The adaptive limiter: never above the limit, halved after push-back, no lost waiter."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rocketeval import workers as module
from rocketeval.workers import MOST_OVERTAKEN, AdaptiveLimiter, Overdue


async def use(limiter: AdaptiveLimiter, peak: list[int], seconds: float = 0.001) -> None:
    """Hold one slot for a moment, and record how many are held."""
    async with limiter:
        peak.append(limiter.in_flight)
        await asyncio.sleep(seconds)


async def settle() -> None:
    """Let every task run as far as it can without time passing."""
    for _ in range(10):
        await asyncio.sleep(0)


@asynccontextmanager
async def crowded(limiter: AdaptiveLimiter) -> AsyncIterator[None]:
    """Take all slots, with one more waiter."""
    limiter.in_flight += limiter.ceiling
    waiting = asyncio.create_task(use(limiter, []))
    await settle()
    yield
    limiter.in_flight -= limiter.ceiling
    waiting.cancel()


async def test_limit_is_never_exceeded() -> None:
    """Of a hundred requests, at most and up to the limit are in flight."""
    limiter, peak = AdaptiveLimiter(7), list[int]()
    await asyncio.gather(*(use(limiter, peak) for _ in range(100)))
    assert len(peak) == 100
    assert max(peak) == 7
    assert limiter.in_flight == 0


async def test_push_back_halves_once_per_burst(monkeypatch: pytest.MonkeyPatch) -> None:
    """A burst of refusals counts once; the next burst halves again, down to one."""
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    limiter = AdaptiveLimiter(16)
    for _ in range(5):
        limiter.pushed_back(0.0)
    assert limiter.allowed == 8
    for expected in (4, 2, 1, 1):
        clock[0] += 1.5
        limiter.pushed_back(0.0)
        assert limiter.allowed == expected


async def test_answers_raise_the_limit_again() -> None:
    """About `allowed` answers add one slot, up to the limit, if a request waits."""
    limiter = AdaptiveLimiter(8)
    limiter.pushed_back(0.0)
    limiter.succeeded()
    assert limiter.allowed == 4
    async with crowded(limiter):
        for _ in range(5):
            limiter.succeeded()
        assert 5 <= limiter.allowed < 6
        for _ in range(100):
            limiter.succeeded()
        assert limiter.allowed == 8


async def test_a_slow_start_doubles_until_the_first_push_back() -> None:
    """Every answer adds a slot up to the limit; after push-back growth is slower."""
    limiter, peak = AdaptiveLimiter(16, start=2), list[int]()
    await asyncio.gather(*(use(limiter, peak) for _ in range(2)))
    assert max(peak) == 2
    await asyncio.gather(*(use(limiter, peak) for _ in range(100)))
    assert max(peak) <= 16
    async with crowded(limiter):
        for _ in range(16):
            limiter.succeeded()
        assert (limiter.allowed, limiter.shrunk) == (16, False)
        limiter.pushed_back(0.0)
        limiter.succeeded()
    assert 8 < limiter.allowed < 9
    assert limiter.shrunk


async def test_requests_of_one_overload_halve_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Requests of one overload that time out at different moments halve only once."""
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    limiter = AdaptiveLimiter(16)
    for clock[0] in (220.0, 225.0, 230.0):
        limiter.pushed_back(0.0, sent=clock[0] - 120.0)
    assert limiter.allowed == 8
    clock[0] = 350.0
    limiter.pushed_back(0.0, sent=229.0)
    assert limiter.allowed == 4


async def answers_passed(limiter: AdaptiveLimiter, workers: int, requests: int) -> int:
    """Send requests as the client does; return the most that passed one that waited for a slot."""
    started = answered = most = 0

    async def worker() -> None:
        nonlocal started, answered, most
        while started < requests:
            started += 1
            before = answered
            async with limiter:
                most = max(most, answered - before)
                await asyncio.sleep(0)
            answered += 1
            limiter.succeeded()

    await asyncio.gather(*(worker() for _ in range(workers)))
    return most


async def test_the_limit_grows_for_the_last_waiting_worker() -> None:
    """It reaches the number of workers, and none of them waits for long."""
    limiter = AdaptiveLimiter(8, start=4)
    assert await answers_passed(limiter, 8, 400) <= 2 * MOST_OVERTAKEN
    assert limiter.allowed == 8


async def test_no_request_waits_for_all_others() -> None:
    """With more workers than slots, each request starts after a few others."""
    assert await answers_passed(AdaptiveLimiter(6), 8, 400) <= 4 * MOST_OVERTAKEN
    assert await answers_passed(AdaptiveLimiter(1), 3, 100) <= 4 * MOST_OVERTAKEN


async def test_fewer_in_flight_after_push_back() -> None:
    """With half allowed, half are in flight."""
    limiter, peak = AdaptiveLimiter(8), list[int]()
    limiter.pushed_back(0.0)
    await asyncio.gather(*(use(limiter, peak) for _ in range(40)))
    assert max(peak) == 4


async def test_nothing_starts_during_a_pause() -> None:
    """A pause holds all requests, also later ones; then only `allowed` start."""
    limiter, peak = AdaptiveLimiter(4), list[int]()
    started = time.monotonic()
    limiter.pushed_back(0.2)
    users = [asyncio.create_task(use(limiter, peak)) for _ in range(8)]
    await asyncio.sleep(0.02)
    assert limiter.in_flight == 0
    await asyncio.gather(*users)
    assert time.monotonic() - started >= 0.2
    assert max(peak) == 2


async def test_longer_pause_extends_current_waits() -> None:
    """A second push-back during a pause extends the wait of all."""
    limiter = AdaptiveLimiter(2)
    started = time.monotonic()
    limiter.pushed_back(0.02)
    waiting = asyncio.create_task(use(limiter, []))
    await settle()
    limiter.pushed_back(0.08)
    await waiting
    assert time.monotonic() - started >= 0.08


@pytest.mark.parametrize("pause", [0.0, 0.03], ids=["in the queue", "in a pause"])
async def test_cancelled_waiter_leaks_no_slot(pause: float) -> None:
    """Cancelling waiters at any moment leaves every slot to the others."""
    limiter = AdaptiveLimiter(2)
    limiter.pushed_back(pause)
    for _ in range(5):
        holder = asyncio.create_task(use(limiter, []))
        waiting = [asyncio.create_task(use(limiter, [])) for _ in range(6)]
        await settle()
        for task in waiting[::2]:
            task.cancel()
        await asyncio.wait_for(asyncio.gather(holder, *waiting[1::2]), timeout=60)
    assert limiter.in_flight == 0


async def test_waiter_cancelled_when_woken_passes_its_slot_on() -> None:
    """The slot of a waiter that is cancelled before it runs goes to the next."""
    limiter = AdaptiveLimiter(1)
    await limiter.__aenter__()
    first, second = (asyncio.create_task(use(limiter, [])) for _ in range(2))
    await settle()
    await limiter.__aexit__()
    first.cancel()
    await asyncio.wait_for(second, timeout=60)
    assert first.cancelled()


async def test_error_releases_the_slot() -> None:
    """A request that raises releases its slot."""
    limiter = AdaptiveLimiter(1)
    for _ in range(3):
        with pytest.raises(KeyError):
            async with limiter:
                raise KeyError
    assert limiter.in_flight == 0


async def test_silence_counts_while_an_answer_is_awaited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Silence lasts from the first waiting request to any sign of life."""
    clock = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    limiter = AdaptiveLimiter(4)
    async with limiter:
        clock[0] = 900.0
        with Overdue(limiter, math.inf):
            assert limiter.silence == 0.0
        with Overdue(limiter, 60.0):
            clock[0] = 920.0
            with Overdue(limiter, 60.0):
                clock[0] = 950.0
                assert limiter.silence == 50.0
                limiter.heard(answer=True)
    assert (limiter.silence, limiter.answers, limiter.answered_at) == (0.0, 1, 950.0)
