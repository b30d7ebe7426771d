"""A hard limit for the money one command spends.

Before anything is asked, the most it can cost is set aside; it is asked only if that fits beside
what was spent and what is set aside for others. So the limit holds whatever the answers cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from rocketeval.config import PriceConfig
from rocketeval.errors import BudgetSpent
from rocketeval.prices import money, shown_money
from rocketeval.records import Usage

TEMPLATE_TOKENS = 512
"""Tokens that a chat template may add to a prompt, with a system prompt of its own."""


class Budget:
    """How much may be spent, was spent, and is set aside for what is in flight."""

    def __init__(self, limit: float, currency: str = "") -> None:
        self.limit = limit
        self.spent = 0.0
        """What engines told, and the most of what they did not tell."""
        self.refused = 0.0
        """The most that the first thing could have cost that did not fit; 0 while all fits."""
        self._currency = currency
        self._reserved = 0.0
        self._kept_back = 0.0
        self._in_flight = 0
        self._changed = asyncio.Event()

    async def reserve(self, most: float) -> bool:
        """Set `most` aside, waiting for what is in flight if need be; False when it cannot fit."""
        while not self.refused:
            if self.has_room(most):
                self._reserved += most
                self._in_flight += 1
                return True
            if not self._in_flight:
                self.refused = most
                self._changed.set()
                break
            self._changed.clear()
            await self._changed.wait()
        return False

    def settle(self, reserved: float, spent: float) -> None:
        """Give back what was set aside and count what was spent."""
        self._reserved -= reserved
        self._in_flight -= 1
        if not self._in_flight:
            self._reserved = 0.0
        self.spent += spent
        self._changed.set()

    def has_room(self, most: float) -> bool:
        """Whether `most` fits beside what was spent and is set aside."""
        return self.spent + self._kept_back + self._reserved + most <= self.limit

    def keep_back(self, most: float) -> None:
        """Leave room for good, for what an engine uses without telling."""
        self._kept_back += most

    def spent_out(self, left: str, currency: str | None = None) -> BudgetSpent:
        """Return the error that says what was spent, what is `left`, and how to go on.

        `currency` is given where something else than usual was paid for alone.
        """

        def shown(amount: float) -> str:
            return shown_money(amount, self._currency if currency is None else currency)

        kept = (
            f", {shown(self._kept_back)} kept for finding out how to ask" if self._kept_back else ""
        )
        return BudgetSpent(
            f"The limit of {shown(self.limit)} is reached: {shown(self.spent)} spent{kept}; "
            f"{left}. The next could have cost up to {shown(self.refused)}.",
            hint="What was paid for is kept. Raise --max-cost (`max_cost` in the config) and run "
            "the same command again to go on.",
        )


class PricedBudget:
    """A budget seen by one payer, at its price."""

    def __init__(self, budget: Budget, price: PriceConfig) -> None:
        self._budget = budget
        # A dearer cache would make the worst case one where everything is found in it.
        dearest = max(price.prompt, price.cached or 0.0)
        self._worst = price.model_copy(update={"prompt": dearest, "cached": dearest})
        self._price = price
        self._excess = 1.0

    async def reserve(self, most: Usage) -> float | None:
        """Return the money set aside for `most`; None when it does not fit."""
        amount = money(most, self._worst) * self._excess
        return amount if await self._budget.reserve(amount) else None

    def settle(self, reserved: float, told: Usage, *, untold: float = 0.0) -> None:
        """Count what an engine told it used, and the share of `reserved` that it did not tell."""
        spent = money(told, self._price)
        if reserved and spent > reserved:
            # A bound that was broken once is not trusted again.
            self._excess *= spent / reserved
        self._budget.settle(reserved, spent + untold * reserved)

    def has_room(self, most: Usage) -> bool:
        """Whether `most` fits beside what was spent and is set aside."""
        return self._budget.has_room(money(most, self._worst))

    def keep_back(self, most: Usage) -> None:
        """Leave room for good, for what an engine uses without telling."""
        self._budget.keep_back(money(most, self._worst))


def most_tokens(prompt: str, template: int = TEMPLATE_TOKENS) -> int:
    """Return the most tokens a judge or author reads for `prompt`: a token is a byte or more."""
    return len(prompt.encode()) + template


def most_written(asked_for: int, extra_body: Mapping[str, object]) -> int:
    """Return the most tokens that are written, also when the user's own settings allow more."""
    own = (extra_body.get(name) for name in ("max_tokens", "max_completion_tokens"))
    return max([asked_for, *(value for value in own if isinstance(value, int))])
