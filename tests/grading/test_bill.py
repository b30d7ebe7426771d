"""Expectations from a plan: only for the grading it was made for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rocketeval.config import PriceConfig
from rocketeval.grading.schedule import identity
from rocketeval.grading.work import expected_use, make_bill
from rocketeval.records import Usage
from rocketeval.store.manifest import Plan

WANTED = [b"a", b"b", b"c", b"d"]
PRICE = PriceConfig(prompt=0.4, completion=0.0, currency="USD")


PLAN = Plan(
    made_for=identity(WANTED),
    judge="small",
    judge_digest=None,
    in_flight=None,
    queries=2,
    candidates=2,
    responses=4,
    checklists_to_write=0,
    without_checklist=0,
    responses_waiting=0,
    tasks=4,
    finished=0,
    from_cache=0,
    to_judge=4,
    items=4,
    requests=4,
    prompt_tokens=1000,
    computed_tokens=900,
    tokens_known="exact",
    prompts_counted=4,
    cost=0.4,
    cost_with_reuse=None,
    author_cost=None,
    currency="USD",
    price=PRICE,
    items_per_second=None,
    rate_from=None,
    seconds=None,
)
"""A plan for four judgments."""


def plan(**changes: Any) -> Plan:
    """Return a plan for four judgments, with changes."""
    return replace(PLAN, **changes)


def test_plan_for_this_grading_is_used() -> None:
    """Tokens and cost are as planned, and exact if they were counted."""
    found = expected_use(plan(), WANTED, 4, PRICE)
    assert found is not None
    assert (found.prompt_tokens, found.cost, found.exact) == (1000, 0.4, True)
    sampled = expected_use(plan(tokens_known="sampled"), WANTED, 4, PRICE)
    assert sampled is not None
    assert not sampled.exact


def test_resumed_run_expects_its_share() -> None:
    """A quarter of the judgments is about a quarter of the plan."""
    found = expected_use(plan(), WANTED, 1, PRICE)
    assert found is not None
    assert (found.prompt_tokens, found.cost, found.exact) == (250, 0.1, False)


def test_plan_for_other_work_is_not_used() -> None:
    """Other judgments, more of them, or none left: no expectation."""
    assert expected_use(None, WANTED, 4, PRICE) is None
    assert expected_use(plan(made_for="x"), WANTED, 4, PRICE) is None
    assert expected_use(plan(to_judge=3), WANTED, 4, PRICE) is None
    assert expected_use(plan(), WANTED, 0, PRICE) is None


@pytest.mark.parametrize(
    "price",
    [PRICE.model_copy(update={"currency": "EUR"}), PRICE.model_copy(update={"prompt": 4.0}), None],
    ids=["currency", "price", "none"],
)
def test_cost_at_another_price_is_left_out(price: PriceConfig | None) -> None:
    """Tokens are still expected, but no cost is shown at another price."""
    found = expected_use(plan(), WANTED, 4, price)
    assert found is not None
    assert (found.prompt_tokens, found.cost, found.repriced) == (1000, None, True)
    bill = make_bill(plan(), WANTED, 4, Usage(4, 1000), 1.0, price)
    assert bill is not None
    assert (bill.plan.cost, bill.repriced) == (None, True)
    same = make_bill(plan(), WANTED, 4, Usage(4, 1000), 1.0, PRICE)
    assert same is not None
    assert (same.plan.cost, same.repriced) == (0.4, False)
