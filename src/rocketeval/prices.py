"""Token prices, from the config or from a price file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from rocketeval.config import AuthorConfig, PriceConfig, RunConfig, Section, parse_options
from rocketeval.errors import ConfigError
from rocketeval.records import Usage
from rocketeval.resources import read_yaml

SHAPE = "`models:` maps each name to {prompt: ..., completion: ..., cached: ...} per million tokens"


WITHOUT_LLM = ("imported", "file", "fixed")
"""Kinds of authors that call no LLM. A plugin's may, so it needs a price."""


class PriceTable(Section):
    """A price file."""

    currency: str = ""
    """Currency of prices that name none."""
    models: dict[str, PriceConfig]
    """Price by model name, exactly as the config names the model."""

    def price(self, model: str) -> PriceConfig | None:
        """Return the price of `model`; None if the table does not have it."""
        found = self.models.get(model)
        if found is None or found.currency:
            return found
        return found.model_copy(update={"currency": self.currency})


def load_prices(path: Path) -> PriceTable:
    """Return the table of prices in the YAML file at `path`."""
    raw = read_yaml(path, "table of prices", hint=f"Check `prices` in the config: {SHAPE}.")
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} is not a table of prices.", hint=f"In it, {SHAPE}.")
    return parse_options(raw, PriceTable, f"The table of prices {path}")


def with_prices(config: RunConfig) -> RunConfig:
    """Return the config with missing prices filled in from its price file."""
    if config.prices is None:
        return config
    table = load_prices(config.prices)
    judge, author = config.judge, config.author
    written_by = author.engine.model if author.engine else None
    return config.model_copy(
        update={
            "judge": judge.model_copy(update={"price": judge.price or table.price(judge.model)}),
            "author": author.model_copy(
                update={"price": author.price or (written_by and table.price(written_by)) or None}
            ),
        }
    )


def currency(config: RunConfig) -> str:
    """Return the config's currency; empty if it names none."""
    price = config.judge.price or config.author.price
    return price.currency if price else ""


def _asks_author(author: AuthorConfig) -> bool:
    """Return whether an LLM writes the checklists; `author.engine` may be set but unused."""
    if author.engine is None or author.kind in WITHOUT_LLM:
        return False
    # A dimension author does all steps unless the config selects some.
    return author.kind != "dimension" or bool(author.options.get("steps", True))


def check_limit(config: RunConfig) -> None:
    """Raise ConfigError if `max_cost` is set but a price is missing."""
    if config.max_cost is None:
        return
    prices = {"judge": config.judge.price}
    if _asks_author(config.author):
        prices["author"] = config.author.price
    for role, price in prices.items():
        if price is None:
            section = config.judge if role == "judge" else config.author.engine
            model = section.model if section else ""
            raise ConfigError(
                f"`max_cost` is set, but the {role} {model!r} has no price.",
                hint=f"Set `{role}.price`, or add it to the file that `prices` names.",
            )
    if len({price.currency for price in prices.values() if price}) > 1:
        raise ConfigError("`max_cost` needs one currency, but those of judge and author differ.")


def money(usage: Usage, price: PriceConfig) -> float:
    """Return the cost of `usage` at `price` (per million tokens).

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
    """Format an amount of money: with cents, or with four digits below one.

    >>> shown_money(12.3456, "USD"), shown_money(0.00123456, "")
    ('12.35 USD', '0.001235')
    """
    digits = f"{amount:,.2f}" if amount >= 1 or not amount else f"{amount:.4g}"
    return f"{digits} {currency}".strip()


@dataclass(frozen=True, slots=True)
class PricedUsage:
    """Usage with its cost."""

    requests: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: float | None = None
    """None without a price."""
    currency: str = ""

    @property
    def usage(self) -> Usage:
        """The usage without its cost."""
        return Usage(self.requests, self.prompt_tokens, self.cached_tokens, self.completion_tokens)

    def __add__(self, other: PricedUsage) -> PricedUsage:
        """Return the sum; without a cost if one of two with requests has none.

        >>> (PricedUsage(cost=0.0, currency="USD") + PricedUsage()).cost
        0.0
        """
        if not other.requests:
            return self
        if not self.requests:
            return other
        costs = self.cost, other.cost
        return PricedUsage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.cached_tokens + other.cached_tokens,
            self.completion_tokens + other.completion_tokens,
            None if costs[0] is None or costs[1] is None else round(costs[0] + costs[1], 6),
            self.currency or other.currency,
        )


def priced(usage: Usage, price: PriceConfig | None) -> PricedUsage:
    """Return `usage` with its cost."""
    return PricedUsage(
        usage.requests,
        usage.prompt_tokens,
        usage.cached_tokens,
        usage.completion_tokens,
        None if price is None else round(money(usage, price), 6),
        "" if price is None else price.currency,
    )


def priced_if_used(usage: Usage, price: PriceConfig | None) -> PricedUsage:
    """Return `usage` with its cost; empty without a request."""
    return priced(usage, price) if usage.requests else PricedUsage()
