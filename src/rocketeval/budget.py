"""A hard limit on the money that one command spends.

Before each request, its maximum cost is reserved. The request is sent only if the amounts spent and
reserved stay within the limit, so the limit holds whatever the answers cost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from rocketeval.config import PriceConfig
from rocketeval.errors import BudgetSpent
from rocketeval.prices import money, shown_money
from rocketeval.records import Usage

TEMPLATE_TOKENS = 512
"""Maximum tokens that a chat template, with its system prompt, adds to a prompt."""


class Budget:
    """The limit, the amount spent, and the amount reserved for requests in flight."""

    def __init__(self, limit: float, currency: str = "") -> None:
        self.limit = limit
        self.spent = 0.0
        """Reported costs, plus the maximum of costs that engines did not report."""
        self.refused = 0.0
        """Maximum cost of the first request that did not fit; 0 while all fit."""
        self._currency = currency
        self._reserved = 0.0
        self._kept_back = 0.0
        self._in_flight = 0
        self._changed = asyncio.Event()

    async def reserve(self, most: float) -> bool:
        """Reserve `most`, waiting for requests in flight if necessary; return False if it cannot
        fit."""
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
        """Release a reservation and count what was spent."""
        self._reserved -= reserved
        self._in_flight -= 1
        if not self._in_flight:
            self._reserved = 0.0
        self.spent += spent
        self._changed.set()

    def has_room(self, most: float) -> bool:
        """Return whether `most` fits within the limit now."""
        return self.spent + self._kept_back + self._reserved + most <= self.limit

    def keep_back(self, most: float) -> None:
        """Reserve an amount permanently, for usage that an engine does not report."""
        self._kept_back += most

    def settle_kept_back(self, most: float, spent: float) -> None:
        """Release an amount of `keep_back` and count what was spent instead."""
        self._kept_back = max(0.0, self._kept_back - most)
        self.spent += spent
        self._changed.set()

    def spent_out(self, left: str, currency: str | None = None) -> BudgetSpent:
        """Return the error that states what was spent, what is `left`, and how to continue.

        `currency` overrides the budget's currency.
        """

        def shown(amount: float) -> str:
            return shown_money(amount, self._currency if currency is None else currency)

        kept = (
            f", {shown(self._kept_back)} reserved for probing the judge" if self._kept_back else ""
        )
        return BudgetSpent(
            f"The limit of {shown(self.limit)} is reached: {shown(self.spent)} spent{kept}; "
            f"{left}. The next request could have cost up to {shown(self.refused)}.",
            hint="Finished work is saved. Raise --max-cost (`max_cost` in the config) and run "
            "the same command again to continue.",
        )


@dataclass(frozen=True, slots=True)
class Reservation:
    """Money reserved for one request."""

    amount: float = 0.0
    excess: float = 1.0
    """Factor by which its bound was raised."""


class PricedBudget:
    """A budget in tokens, at the price of one engine."""

    def __init__(self, budget: Budget, price: PriceConfig) -> None:
        self._budget = budget
        # If cached tokens cost more, the worst case is that all tokens are cached.
        dearest = max(price.prompt, price.cached or 0.0)
        self._worst = price.model_copy(update={"prompt": dearest, "cached": dearest})
        self._price = price
        self._excess = 1.0
        """Largest factor by which a request exceeded its bound."""

    async def reserve(self, most: Usage) -> Reservation | None:
        """Return the money reserved for `most`; None if it does not fit."""
        reserved = Reservation(self._bound(most), self._excess)
        return reserved if await self._budget.reserve(reserved.amount) else None

    def settle(self, reserved: Reservation, usage: Usage, *, untold: float = 0.0) -> None:
        """Count the reported usage, plus a share `untold` of `reserved` for unreported usage."""
        spent = money(usage, self._price)
        if reserved.amount:
            self._excess = max(self._excess, reserved.excess * spent / reserved.amount)
        self._budget.settle(reserved.amount, spent + untold * reserved.amount)

    def has_room(self, most: Usage) -> bool:
        """Return whether `most` fits within the limit now."""
        return self._budget.has_room(self._bound(most))

    def keep_back(self, most: Usage) -> None:
        """Reserve an amount permanently, for usage that an engine does not report."""
        self._budget.keep_back(money(most, self._worst))

    def settle_kept_back(self, most: Usage, usage: Usage, *, untold: float = 0.0) -> None:
        """Release an amount of `keep_back`; count the usage, plus a share `untold` of `most`."""
        reserved = money(most, self._worst)
        self._budget.settle_kept_back(reserved, money(usage, self._price) + untold * reserved)

    def _bound(self, most: Usage) -> float:
        return money(most, self._worst) * self._excess


def most_tokens(prompt: str, template: int = TEMPLATE_TOKENS) -> int:
    """Return the maximum prompt tokens of `prompt`; a token is at least one byte."""
    return len(prompt.encode()) + template


def most_written(asked_for: int, extra_body: Mapping[str, object]) -> int:
    """Return the maximum output tokens, including what the user's settings allow."""
    own = (extra_body.get(name) for name in ("max_tokens", "max_completion_tokens"))
    return max([asked_for, *(value for value in own if isinstance(value, int))])
