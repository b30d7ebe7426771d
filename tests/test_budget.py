"""The budget: the limit holds with requests in flight, and no request waits forever."""

from __future__ import annotations

import asyncio
import random

import pytest

from rocketeval.budget import Budget, PricedBudget, Reservation, most_tokens, most_written
from rocketeval.config import PriceConfig
from rocketeval.records import Usage

PRICE = PriceConfig(prompt=1e6, cached=0.5e6, completion=2e6)
"""A price of one per prompt token."""


@pytest.mark.parametrize("workers", [1, 3, 16])
@pytest.mark.parametrize("seed", range(5))
async def test_limit_holds_and_is_used_up(workers: int, seed: int) -> None:
    """With tasks of random size and cost, the limit holds at every moment and is used up."""
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


async def test_reservation_waits_for_requests_in_flight() -> None:
    """A released amount is reused; a reservation is refused only if it can never fit."""
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


async def test_message_has_amounts_and_the_next_step() -> None:
    """The message has the limit, the amount spent, what is left and what to do."""
    budget = Budget(1.0, "USD")
    await budget.reserve(0.75)
    budget.settle(0.75, 0.5)
    await budget.reserve(0.6)
    error = budget.spent_out("3 checklists are not written")
    for text in ("limit of 1.00 USD", "0.5 USD spent", "3 checklists", "up to 0.6 USD"):
        assert text in error.message
    assert "--max-cost" in error.hint
    assert error.exit_code == 6


async def test_priced_budget_reserves_the_maximum_and_counts_reported_usage() -> None:
    """Reservations assume no cache hits; the settlement counts them."""
    budget = Budget(100.0)
    priced = PricedBudget(budget, PRICE)
    reserved = await priced.reserve(Usage(prompt_tokens=10, completion_tokens=1))
    assert reserved == Reservation(12)
    priced.settle(reserved, Usage(1, 10, 8, 1))
    assert budget.spent == 2 + 4 + 2
    priced.settle(
        await priced.reserve(Usage(prompt_tokens=4)) or Reservation(), Usage(), untold=1.5
    )
    assert budget.spent == 8 + 6


async def test_exceeded_bound_raises_later_reservations() -> None:
    """If usage was twice the maximum, later reservations are doubled."""
    budget = Budget(100.0)
    priced = PricedBudget(budget, PRICE)
    priced.settle(await priced.reserve(Usage(prompt_tokens=10)) or Reservation(), Usage(1, 20))
    assert await priced.reserve(Usage(prompt_tokens=10)) == Reservation(20, excess=2)


async def test_requests_in_flight_exceed_their_bound_once() -> None:
    """Requests that are in flight together and all exceed their bound raise it by one factor."""
    priced = PricedBudget(Budget(1000.0), PRICE)
    most = Usage(prompt_tokens=10)
    for reserved in [await priced.reserve(most) for _ in range(32)]:
        priced.settle(reserved or Reservation(), Usage(1, 15))
    raised = await priced.reserve(most)
    assert raised == Reservation(15, excess=1.5)
    priced.settle(raised, Usage(1, 30))
    assert await priced.reserve(most) == Reservation(30, excess=3)


async def test_room_is_that_of_a_reservation() -> None:
    """Room is measured with the raised bound, as a reservation is."""
    priced = PricedBudget(Budget(35.0), PRICE)
    priced.settle(await priced.reserve(Usage(prompt_tokens=10)) or Reservation(), Usage(1, 20))
    assert not priced.has_room(Usage(prompt_tokens=10))


def test_bytes_bound_tokens() -> None:
    """The maximum is one token per byte, plus the template."""
    assert most_tokens("añ", 7) == 3 + 7
    assert most_tokens("") > 0


def test_max_tokens_of_the_user_counts() -> None:
    """`max_tokens` in extra_body raises the maximum output."""
    assert most_written(1, {}) == 1
    assert most_written(1, {"max_tokens": 50, "top_k": 99}) == 50
    assert most_written(10, {"max_completion_tokens": 3}) == 10
