"""What tokens cost."""

from __future__ import annotations

from typing import Any

from rocketeval.config import PriceConfig
from rocketeval.records import Usage


def money(usage: Usage, price: PriceConfig) -> float:
    """Return what `usage` costs at `price` (money per million tokens).

    >>> money(Usage(prompt_tokens=1_000_000), PriceConfig(prompt=0.15, completion=0.6))
    0.15
    """
    cached_price = price.prompt if price.cached is None else price.cached
    fresh = usage.prompt_tokens - usage.cached_tokens
    return (
        fresh * price.prompt
        + usage.cached_tokens * cached_price
        + usage.completion_tokens * price.completion
    ) / 1e6


def shown_money(amount: float, currency: str) -> str:
    """Return an amount of money for people: cents, and four digits of what is less.

    >>> shown_money(12.3456, "USD"), shown_money(0.00123456, "")
    ('12.35 USD', '0.001235')
    """
    digits = f"{amount:,.2f}" if amount >= 1 or not amount else f"{amount:.4g}"
    return f"{digits} {currency}".strip()


def usage_facts(usage: Usage, price: PriceConfig | None) -> dict[str, Any]:
    """Return `usage` and its cost, None without a price, as the manifest records them."""
    return {
        "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": None if price is None else round(money(usage, price), 6),
        "currency": "" if price is None else price.currency,
    }
