"""The budget: what is in flight never goes over the limit, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import random

import pytest

from rocketeval.budget import Budget, PricedBudget, most_tokens, most_written
from rocketeval.config import PriceConfig
from rocketeval.records import Usage

PRICE = PriceConfig(prompt=1e6, cached=0.5e6, completion=2e6)
"""One for a prompt token, so that tokens are money."""


@pytest.mark.parametrize("workers", [1, 3, 16])
@pytest.mark.parametrize("seed", range(5))
async def test_it_never_spends_more_and_stops_only_when_it_must(workers: int, seed: int) -> None:
    """Tasks of random size and cost: the limit holds at every moment, and is used up."""
    rng = random.Random(seed)
    budget = Budget(100.0)
    sizes = iter([rng.uniform(0.5, 10) for _ in range(200)])
    flying = 0.0

    async def work() -> None:
        nonlocal flying
        for most in sizes:
            if not await budget.reserve(most):
                return
            flying += most
            assert budget.spent + flying <= budget.limit + 1e-9
            await asyncio.sleep(rng.uniform(0, 0.001))
            flying -= most
            budget.settle(most, most * rng.uniform(0.1, 1))

    async with asyncio.timeout(120):
        await asyncio.gather(*(work() for _ in range(workers)))
    assert budget.spent <= budget.limit
    assert budget.spent + budget.refused > budget.limit


async def test_what_does_not_fit_now_waits_for_what_is_in_flight() -> None:
    """Room that is given back is used; only when none can come, the answer is no."""
    budget = Budget(10.0)
    assert await budget.reserve(8)
    waiting = asyncio.create_task(budget.reserve(5))
    await asyncio.sleep(0)
    assert not waiting.done()
    budget.settle(8, 1)
    assert await waiting
    refused = asyncio.create_task(budget.reserve(9))
    await asyncio.sleep(0)
    budget.settle(5, 5)
    assert not await refused
    assert budget.refused == 9
    assert not await budget.reserve(0.1)


async def test_the_message_says_what_was_spent_and_how_to_go_on() -> None:
    """People read the limit, the money spent, what is left and what to do."""
    budget = Budget(1.0, "USD")
    await budget.reserve(0.75)
    budget.settle(0.75, 0.5)
    await budget.reserve(0.6)
    error = budget.spent_out("3 checklists are not written")
    for text in ("limit of 1.00 USD", "0.5 USD spent", "3 checklists", "up to 0.6 USD"):
        assert text in error.message
    assert "--max-cost" in error.hint
    assert error.exit_code == 6


async def test_a_purse_sets_aside_the_worst_and_counts_what_was_told() -> None:
    """No cache hit is hoped for before, and every one counts after."""
    budget = Budget(100.0)
    purse = PricedBudget(budget, PRICE)
    reserved = await purse.reserve(Usage(prompt_tokens=10, completion_tokens=1))
    assert reserved == 12
    purse.settle(reserved, Usage(1, 10, 8, 1))
    assert budget.spent == 2 + 4 + 2
    purse.settle(await purse.reserve(Usage(prompt_tokens=4)) or 0, Usage(), untold=1.5)
    assert budget.spent == 8 + 6


async def test_a_bound_that_was_broken_is_not_trusted_again() -> None:
    """An engine that reads twice what was thought possible makes later reservations double."""
    budget = Budget(100.0)
    purse = PricedBudget(budget, PRICE)
    purse.settle(await purse.reserve(Usage(prompt_tokens=10)) or 0, Usage(1, 20))
    assert await purse.reserve(Usage(prompt_tokens=10)) == 20


def test_bytes_bound_tokens() -> None:
    """Every character counts as many tokens as it has bytes, and the template is added."""
    assert most_tokens("añ", 7) == 3 + 7
    assert most_tokens("") > 0


def test_the_users_own_settings_can_make_it_write_more() -> None:
    """`max_tokens` in extra_body wins over ours, so it is what is set aside."""
    assert most_written(1, {}) == 1
    assert most_written(1, {"max_tokens": 50, "top_k": 99}) == 50
    assert most_written(10, {"max_completion_tokens": 3}) == 10
