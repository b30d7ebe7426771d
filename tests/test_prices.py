"""Prices: the config's own win, else the table's by exact name, else there is none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rocketeval.config import PriceConfig, RunConfig, load_config, parse_config
from rocketeval.errors import ConfigError
from rocketeval.prices import check_limit, load_prices, money, priced, shown_money, with_prices
from rocketeval.records import Usage

TABLE = """\
currency: USD
models:
  small: {prompt: 0.1, cached: 0.05, completion: 0.4}
  big: {prompt: 2, completion: 8, currency: EUR}
"""
OWN = {"prompt": 9, "completion": 9}


def config(tmp_path: Path, table: str | None = TABLE, **changes: Any) -> RunConfig:
    """A config whose judge is small and whose author is big, with the table beside it."""
    raw = {
        "benchmark": {"path": "x"},
        "judge": {"model": "small"},
        "author": {"kind": "instance", "engine": {"model": "big"}},
        **changes,
    }
    if table is not None:
        (tmp_path / "prices.yaml").write_text(table)
        raw["prices"] = str(tmp_path / "prices.yaml")
    return parse_config(raw)


def test_the_table_gives_prices_by_model_name(tmp_path: Path) -> None:
    """Judge and author get theirs; the table's currency is that of prices that name none."""
    found = with_prices(config(tmp_path))
    assert found.judge.price == PriceConfig(prompt=0.1, cached=0.05, completion=0.4, currency="USD")
    assert found.author.price == PriceConfig(prompt=2, completion=8, currency="EUR")


def test_the_configs_own_price_wins(tmp_path: Path) -> None:
    """What stands beside the judge is not looked up."""
    found = with_prices(config(tmp_path, judge={"model": "small", "price": OWN}))
    assert found.judge.price == PriceConfig(prompt=9, completion=9)


@pytest.mark.parametrize("model", ["Small", "small-2", "smal"])
def test_a_model_that_is_not_in_the_table_has_no_price(tmp_path: Path, model: str) -> None:
    """Only the exact name counts; a near one is not taken, and nothing becomes free."""
    assert with_prices(config(tmp_path, judge={"model": model})).judge.price is None


def test_without_a_price_there_is_no_cost() -> None:
    """No price is not a price of zero."""
    usage = Usage(prompt_tokens=10)
    assert priced(usage, None).cost is None
    assert priced(usage, PriceConfig(prompt=0, completion=0)).cost == 0


def test_cached_tokens_have_their_own_price() -> None:
    """The prompt price counts for the rest; without a cached price, for all."""
    usage = Usage(prompt_tokens=1_000_000, cached_tokens=400_000, completion_tokens=100_000)
    assert money(usage, PriceConfig(prompt=1, cached=0.5, completion=2)) == pytest.approx(1.0)
    assert money(usage, PriceConfig(prompt=1, completion=2)) == pytest.approx(1.2)


def test_a_path_starts_from_the_config_file(tmp_path: Path) -> None:
    """`prices: prices.yaml` is the file beside the config, wherever the command is run."""
    (tmp_path / "prices.yaml").write_text(TABLE)
    path = tmp_path / "rocketeval.yaml"
    path.write_text("benchmark: {path: x}\njudge: {model: small}\nprices: prices.yaml\n")
    assert with_prices(load_config(path)).judge.price is not None


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ("models: {small: {promt: 1, completion: 1}}", "Did you mean 'prompt'?"),
        ("models: {small: {prompt: 1}}", "models.small.completion: this setting is needed"),
        ("models: {prompt: {prompt: 1, completions: 1}}", "Did you mean 'completion'?"),
        ("small: {prompt: 1, completion: 1}", "models: this setting is needed"),
        ("models: {small: {prompt: -1, completion: 1}}", "models.small.prompt"),
        ("models: {small: {prompt: .nan, completion: 1}}", "models.small.prompt"),
        ("models: {a: {prompt: 1, completion: 1}, a: {}}", "'a' is set twice"),
        ("- small", "not a table of prices"),
        ("{", "not valid YAML"),
    ],
)
def test_a_mistake_in_the_table_is_named(tmp_path: Path, table: str, told: str) -> None:
    """Every mistake is told with the file and what was meant; a half-given price is one."""
    path = tmp_path / "prices.yaml"
    path.write_text(table)
    with pytest.raises(ConfigError) as refused:
        load_prices(path)
    assert told in str(refused.value)
    assert str(path) in str(refused.value)


def test_a_missing_table_is_a_message(tmp_path: Path) -> None:
    """A wrong path in `prices` says so."""
    with pytest.raises(ConfigError, match="Cannot read the table of prices"):
        load_prices(tmp_path / "nowhere.yaml")


def test_a_limit_needs_every_price(tmp_path: Path) -> None:
    """Money that cannot be counted cannot be limited; unused prices are not asked for."""
    priced = {"model": "m", "price": OWN}
    with pytest.raises(ConfigError, match="the judge 'small' has no price"):
        check_limit(config(tmp_path, None, max_cost=1))
    with pytest.raises(ConfigError, match="the author 'big' has no price"):
        check_limit(config(tmp_path, None, max_cost=1, judge=priced))
    check_limit(config(tmp_path, None))


@pytest.mark.parametrize(
    ("author", "asked"),
    [
        ({"kind": "imported"}, False),
        ({"kind": "file"}, False),
        ({"kind": "fixed"}, False),
        ({"kind": "dimension", "options": {"steps": []}}, False),
        ({"kind": "dimension"}, True),
        ({"kind": "a plugin's"}, True),
    ],
)
def test_a_limit_needs_no_price_of_an_unused_author(
    tmp_path: Path, author: dict[str, Any], asked: bool
) -> None:
    """An LLM may stand beside checklists that nobody writes, to mend them later."""
    given = config(
        tmp_path,
        None,
        max_cost=1,
        judge={"model": "m", "price": OWN},
        author={"engine": {"model": "big"}, **author},
    )
    if asked:
        with pytest.raises(ConfigError, match="the author 'big' has no price"):
            check_limit(given)
    else:
        check_limit(given)


def test_a_limit_needs_one_currency(tmp_path: Path) -> None:
    """Dollars and euros are not added up."""
    with pytest.raises(ConfigError, match="currencies differ"):
        check_limit(with_prices(config(tmp_path, max_cost=1)))


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0, "0.00 USD"), (1234.5, "1,234.50 USD"), (0.5, "0.5 USD"), (0.0012344, "0.001234 USD")],
)
def test_money_for_people(amount: float, shown: str) -> None:
    """Cents where there are any, four digits where there are not."""
    assert shown_money(amount, "USD") == shown
