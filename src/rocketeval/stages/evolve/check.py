"""What can be wrong with the settings of an evolution, before anything is paid for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocketeval.config import EvolveConfig, PriceConfig, RunConfig
from rocketeval.errors import ConfigError
from rocketeval.evolve.forms import forms_of
from rocketeval.evolve.seeding import seed_pool
from rocketeval.prices import load_prices


def evolve_settings(config: RunConfig) -> EvolveConfig:
    """Return the settings as they are used; ConfigError when they cannot be.

    Labels are of one response each, so that nothing is asked side by side. The optimizer's price
    comes from the table of prices where the section has none.
    """
    settings = config.evolve
    if config.evaluator is not None:
        raise ConfigError(
            "The config names an `evaluator` to judge with; `evolve` makes a new one.",
            hint="Leave `evaluator` out of the config for this command.",
        )
    if config.distributed.cluster is not None:
        raise ConfigError(
            "`evolve` asks its judge from this machine, not from a cluster.",
            hint="Leave `distributed.cluster` out of the config for this command.",
        )
    if settings.guidelines is not None and settings.optimizer is None:
        raise ConfigError(
            "`evolve.guidelines` are taken apart by an optimizer, and the config has none.",
            hint="Set `evolve.optimizer`, or write the questions into a file of `evolve.seeds`.",
        )
    seed_pool(settings.seeds, forms_of(settings.answers))
    used: dict[str, Any] = {"price": _price(config)}
    if settings.gold == "labels":
        used["asking"] = "each"
    settings = settings.model_copy(update=used)
    _check_money(config, settings)
    return settings


def check_evolvable(config: RunConfig, path: Path | None, *, own_engine: bool) -> None:
    """Raise ConfigError for what cannot work, before anything is written or paid for."""
    if own_engine:
        raise ConfigError(
            "Evolution asks with other labels on every sheet: one given engine cannot do it.",
            hint="Leave `judge` out of the run, and give `evolve` a `make_engine` if need be.",
        )
    evolve_settings(config)
    if path is not None and (path.is_dir() or path.suffix != ".npz"):
        raise ConfigError(
            f"The evaluator cannot be written to {path}: give the name of a file that ends in .npz."
        )


def _price(config: RunConfig) -> PriceConfig | None:
    section, price = config.evolve.optimizer, config.evolve.price
    if price is not None or section is None or config.prices is None:
        return price
    return load_prices(config.prices).price(section.model)


def _check_money(config: RunConfig, settings: EvolveConfig) -> None:
    """Refuse a limit on money that cannot be kept: what has no price, or another currency."""
    if config.max_cost is None:
        return
    payees = [("judge", config.judge.model, "judge.price", config.judge.price)]
    if settings.optimizer is not None:
        payees.append(("optimizer", settings.optimizer.model, "evolve.price", settings.price))
    for role, model, setting, price in payees:
        if price is None:
            raise ConfigError(
                f"`max_cost` limits the money, and the {role} {model!r} has no price.",
                hint=f"Set `{setting}`, or give it in the file that `prices` names.",
            )
    if len({price.currency for *_, price in payees if price}) > 1:
        raise ConfigError("`max_cost` cannot add up judge and optimizer: their currencies differ.")
