"""What the sheets of an evaluator took together, in the shape of one grading's facts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Facts = Mapping[str, Any]
COUNTED = ("tasks", "finished_earlier", "from_cache", "judged", "failed", "unfinished")
_USED = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
_BILLED = ("requests", "prompt_tokens", "computed_tokens", "completion_tokens", "cost", "seconds")
KNOWN = ("exact", "sampled", "estimated")
"""How well a plan knows its tokens, the best first."""


def counts_of(sheets: Iterable[Facts]) -> dict[str, int]:
    """Return how many judgments there were, are and lack, over all sheets."""
    told = list(sheets)
    return {name: sum(facts[name] for facts in told) for name in COUNTED}


def usage_of(usages: Sequence[Facts]) -> dict[str, Any]:
    """Return what all sheets used; no cost unless each has one."""
    return {
        **{name: sum(usage[name] for usage in usages) for name in _USED},
        "cost": total([usage["cost"] for usage in usages]),
        "currency": usages[0]["currency"],
    }


def bill_of(sheets: Iterable[Facts]) -> dict[str, Any] | None:
    """Return plan and bill of all that was asked; None unless a plan was made for all of it."""
    bills = [facts["bill"] for facts in sheets if facts["judged"] or facts["failed"]]
    if not bills or not all(bills):
        return None
    plan, bill = (
        {name: total([one[side][name] for one in bills]) for name in _BILLED}
        for side in ("plan", "bill")
    )
    computed, least = bill["computed_tokens"], plan["computed_tokens"]
    return {
        "plan": plan,
        "bill": bill,
        "tokens_known": max((one["tokens_known"] for one in bills), key=KNOWN.index),
        "times_least": computed / least if computed and least else None,
        "currency": bills[0]["currency"],
        "repriced": any(one["repriced"] for one in bills),
    }


def total(amounts: Sequence[float | None]) -> float | None:
    """Return the sum; None where one of them is not told."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None
