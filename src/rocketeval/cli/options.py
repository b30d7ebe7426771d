"""Options that several verbs share; the verb gets a config or a run made from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from rocketeval.config import RunConfig, load_config
from rocketeval.pipeline import Run
from rocketeval.prices import with_prices
from rocketeval.stages.evaluate.given import as_graded

Verb = Callable[..., Any]


class FiniteRange(click.FloatRange):
    """A range of numbers, of which `nan` and `inf` are none."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or refuse what is not one."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{number} is no finite number.", param, ctx)
        return number


DEFAULT_CONFIG = Path("rocketeval.yaml")
_CONFIG = click.argument(
    "config", type=click.Path(path_type=Path, dir_okay=False), default=DEFAULT_CONFIG
)
_NAME = click.option("--name", help="Name of the run; overrides the config's.")
LEVEL = click.option(
    "--level",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)
"""For verbs that say how sure something is."""
_OVERRIDES = (
    click.option(
        "--limit",
        type=click.IntRange(min=1),
        help="Use only the first N queries, in a run named NAME-first-N.",
    ),
    click.option("--judge", help="Judge model; overrides the config's."),
    click.option("--base-url", help="The judge's endpoint; overrides the config's."),
)
_ON = click.option(
    "--on",
    metavar="PLACE",
    help="Where to judge: local, ray (started here, or at $RAY_ADDRESS), ray://head:10001, "
    "head:6379; overrides the config's.",
)
_SPENDING = (
    click.option(
        "--max-cost",
        type=FiniteRange(min=0, min_open=True),
        metavar="MONEY",
        help="Stop before judge and author or optimizer together cost more; needs their prices.",
    ),
)


def with_run(verb: Verb) -> Verb:
    """Give the verb the run that CONFIG and --name describe."""

    @wraps(verb)
    def command(config: Path, name: str | None, **own: Any) -> Any:
        return verb(Run(as_graded(_override(load_config(config), name=name))), **own)

    return _CONFIG(_NAME(command))


def with_settings(verb: Verb) -> Verb:
    """Give a verb that spends money the config, with what the command line says in its place."""

    @wraps(verb)
    def command(settings: RunConfig, max_cost: float | None, **own: Any) -> Any:
        given = {} if max_cost is None else {"max_cost": max_cost}
        return verb(settings.model_copy(update=given), **own)

    wrapped: Verb = command
    for option in reversed(_SPENDING):
        wrapped = option(wrapped)
    return with_config(wrapped)


def with_place(verb: Verb) -> Verb:
    """Let the command line say where judging runs; the verb's settings hold it."""

    @wraps(verb)
    def command(settings: RunConfig, on: str | None, **own: Any) -> Any:
        if on is not None:
            given = {"cluster": None if on == "local" else on}
            place = settings.distributed.model_copy(update=given)
            settings = settings.model_copy(update={"distributed": place})
        return verb(settings, **own)

    return _ON(command)


def with_config(verb: Verb) -> Verb:
    """Give the verb the config, with what stands on the command line in its place."""

    @wraps(verb)
    def command(
        config: Path,
        name: str | None,
        limit: int | None,
        judge: str | None,
        base_url: str | None,
        **own: Any,
    ) -> Any:
        settings = _override(
            load_config(config), name=name, limit=limit, judge=judge, base_url=base_url
        )
        return verb(settings, **own)

    wrapped: Verb = command
    for option in reversed((_CONFIG, _NAME, *_OVERRIDES)):
        wrapped = option(wrapped)
    return wrapped


def _override(
    config: RunConfig,
    *,
    name: str | None,
    limit: int | None = None,
    judge: str | None = None,
    base_url: str | None = None,
) -> RunConfig:
    def given(**values: Any) -> dict[str, Any]:
        return {key: value for key, value in values.items() if value is not None}

    changed = config.model_copy(
        update={
            "benchmark": config.benchmark.model_copy(update=given(limit=limit)),
            "judge": config.judge.model_copy(update=given(model=judge, base_url=base_url)),
            # A trial on a few queries must not take the place of the whole run's files.
            "name": name or (config.name if limit is None else f"{config.name}-first-{limit}"),
        }
    )
    return with_prices(changed)
