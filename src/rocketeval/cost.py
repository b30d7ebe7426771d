"""What tokens cost."""

from __future__ import annotations

from typing import Any

from rocketeval.config import PriceConfig
from rocketeval.records import Usage


def money(usage: Usage, price: PriceConfig) -> float:
    """Return what `usage` costs at `price` (money per million tokens).

    >>> money(Usage(prompt_tokens=1_000_000), PriceConfig(prompt=0.15))
    0.15
    """
    cached_price = price.prompt if price.cached is None else price.cached
    fresh = usage.prompt_tokens - usage.cached_tokens
    return (
        fresh * price.prompt
        + usage.cached_tokens * cached_price
        + usage.completion_tokens * price.completion
    ) / 1e6


def usage_facts(usage: Usage, price: PriceConfig) -> dict[str, Any]:
    """Return `usage` and its cost, as the manifest records them."""
    return {
        "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": round(money(usage, price), 6),
    }
