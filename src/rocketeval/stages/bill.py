"""bill: what a grading used, beside what its plan said."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from rocketeval.config import PriceConfig
from rocketeval.cost import usage_facts
from rocketeval.observing import Expected
from rocketeval.records import Usage
from rocketeval.stages.work import identity

_ROWS = ("requests", "prompt_tokens", "computed_tokens", "completion_tokens", "cost", "seconds")


def same_price(planned: Mapping[str, Any] | None, price: PriceConfig | None) -> bool:
    """Whether a plan's money means the same now: also a currency of its own is another price."""
    return planned == (None if price is None else price.model_dump())


def expected_use(
    plan: Mapping[str, Any] | None,
    wanted: Collection[bytes],
    to_judge: int,
    price: PriceConfig | None,
) -> Expected | None:
    """Return what the plan says of the judgments that are left; None if it is about others.

    Of a plan for more judgments, some of which are there by now, the share that is left. Of a plan
    at another price, no money.
    """
    if plan is None or not 0 < to_judge <= plan["to_judge"]:
        return None
    if plan["made_for"] != identity(wanted):
        return None
    share = to_judge / plan["to_judge"]
    repriced = not same_price(plan.get("price"), price)

    def part(amount: float | None) -> float | None:
        return None if amount is None or repriced else share * amount

    return Expected(
        prompt_tokens=round(share * plan["prompt_tokens"]),
        cost=part(plan["cost"]),
        least_cost=part(plan["cost_with_reuse"]),
        exact=share == 1.0 and plan["tokens_known"] == "exact",
        repriced=repriced,
    )


def make_bill(
    plan: Mapping[str, Any] | None,
    wanted: Collection[bytes],
    to_judge: int,
    spent: Usage,
    seconds: float,
    price: PriceConfig | None,
) -> dict[str, Any] | None:
    """Return plan and bill, figure by figure; None unless the plan was made for this grading.

    A figure that nobody told is None, and so is the money of a plan at another price. Engines that
    do not tell cached tokens tell none.
    """
    if plan is None or not to_judge:
        return None
    if (plan["made_for"], plan["to_judge"]) != (identity(wanted), to_judge):
        return None
    computed = spent.prompt_tokens - spent.cached_tokens if spent.cached_tokens else None
    billed = {
        **usage_facts(spent, price),
        "prompt_tokens": spent.prompt_tokens or None,
        "computed_tokens": computed,
        "completion_tokens": spent.completion_tokens or None,
        "seconds": round(seconds, 1),
    }
    repriced = not same_price(plan.get("price"), price)
    cost = None if repriced else plan["cost"]
    planned = {**plan, "completion_tokens": plan["items"], "cost": cost}
    return {
        "plan": {name: planned[name] for name in _ROWS},
        "bill": {name: billed[name] for name in _ROWS},
        "tokens_known": plan["tokens_known"],
        "times_least": computed / plan["computed_tokens"] if computed else None,
        "currency": billed["currency"],
        "repriced": repriced,
    }
