"""Prices: from the config, else from the price file by exact name, else none."""

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
    """Return a config with the judge `small` and the author `big`, and write the price file."""
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


def test_price_file_gives_prices_by_model_name(tmp_path: Path) -> None:
    """Judge and author get prices; the file's currency applies to prices without one."""
    found = with_prices(config(tmp_path))
    assert found.judge.price == PriceConfig(prompt=0.1, cached=0.05, completion=0.4, currency="USD")
    assert found.author.price == PriceConfig(prompt=2, completion=8, currency="EUR")


def test_price_in_the_config_overrides_the_file(tmp_path: Path) -> None:
    """The judge's own price is not looked up."""
    found = with_prices(config(tmp_path, judge={"model": "small", "price": OWN}))
    assert found.judge.price == PriceConfig(prompt=9, completion=9)


@pytest.mark.parametrize("model", ["Small", "small-2", "smal"])
def test_unlisted_model_has_no_price(tmp_path: Path, model: str) -> None:
    """Only the exact name matches, and a missing price is not zero."""
    assert with_prices(config(tmp_path, judge={"model": model})).judge.price is None


def test_without_a_price_there_is_no_cost() -> None:
    """A missing price gives an unknown cost, not zero."""
    usage = Usage(prompt_tokens=10)
    assert priced(usage, None).cost is None
    assert priced(usage, PriceConfig(prompt=0, completion=0)).cost == 0


def test_cached_tokens_have_their_own_price() -> None:
    """Other tokens have the prompt price; without a cached price, all do."""
    usage = Usage(prompt_tokens=1_000_000, cached_tokens=400_000, completion_tokens=100_000)
    assert money(usage, PriceConfig(prompt=1, cached=0.5, completion=2)) == pytest.approx(1.0)
    assert money(usage, PriceConfig(prompt=1, completion=2)) == pytest.approx(1.2)


def test_path_is_relative_to_the_config_file(tmp_path: Path) -> None:
    """`prices: prices.yaml` is the file next to the config."""
    (tmp_path / "prices.yaml").write_text(TABLE)
    path = tmp_path / "rocketeval.yaml"
    path.write_text("benchmark: {path: x}\njudge: {model: small}\nprices: prices.yaml\n")
    assert with_prices(load_config(path)).judge.price is not None


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("models: {small: {promt: 1, completion: 1}}", "Did you mean 'prompt'?"),
        ("models: {small: {prompt: 1}}", "models.small.completion: this setting is required"),
        ("models: {prompt: {prompt: 1, completions: 1}}", "Did you mean 'completion'?"),
        ("small: {prompt: 1, completion: 1}", "models: this setting is required"),
        ("models: {small: {prompt: -1, completion: 1}}", "models.small.prompt"),
        ("models: {small: {prompt: .nan, completion: 1}}", "models.small.prompt"),
        ("models: {a: {prompt: 1, completion: 1}, a: {}}", "'a' is set twice"),
        ("- small", "not a table of prices"),
        ("{", "not valid YAML"),
    ],
)
def test_mistake_in_the_price_file_is_named(tmp_path: Path, table: str, message: str) -> None:
    """Every mistake, including an incomplete price, is reported with the file."""
    path = tmp_path / "prices.yaml"
    path.write_text(table)
    with pytest.raises(ConfigError) as refused:
        load_prices(path)
    assert message in str(refused.value)
    assert str(path) in str(refused.value)


def test_missing_price_file_is_refused(tmp_path: Path) -> None:
    """A wrong path in `prices` is an error."""
    with pytest.raises(ConfigError, match="Cannot read the table of prices"):
        load_prices(tmp_path / "nowhere.yaml")


def test_max_cost_needs_every_price(tmp_path: Path) -> None:
    """A limit needs the prices of judge and author; without a limit they are optional."""
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
def test_max_cost_needs_no_price_of_an_unused_author(
    tmp_path: Path, author: dict[str, Any], asked: bool
) -> None:
    """An author LLM may be configured only to fix checklists later."""
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


def test_max_cost_needs_one_currency(tmp_path: Path) -> None:
    """Different currencies are refused."""
    with pytest.raises(ConfigError, match="one currency"):
        check_limit(with_prices(config(tmp_path, max_cost=1)))


@pytest.mark.parametrize(
    ("amount", "shown"),
    [(0, "0.00 USD"), (1234.5, "1,234.50 USD"), (0.5, "0.5 USD"), (0.0012344, "0.001234 USD")],
)
def test_shown_money(amount: float, shown: str) -> None:
    """Amounts have cents, or four digits below one."""
    assert shown_money(amount, "USD") == shown
