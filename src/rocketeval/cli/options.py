"""Options that several verbs share, and the run they describe."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from rocketeval.config import RunConfig, load_config
from rocketeval.pipeline import Run

Command = TypeVar("Command", bound=Callable[..., Any])

DEFAULT_CONFIG = Path("rocketeval.yaml")


_CONFIG = click.argument(
    "config", type=click.Path(path_type=Path, dir_okay=False), default=DEFAULT_CONFIG
)
_NAME = click.option("--name", help="Name of the run; overrides the config's.")


def finished_run_options(function: Command) -> Command:
    """Add CONFIG and --name, for verbs that work on what a run already holds."""
    return _CONFIG(_NAME(function))


def open_run(config: Path, name: str | None) -> Run:
    """Return the run that CONFIG describes, under another name if one is given."""
    settings = load_config(config)
    return Run(settings.model_copy(update={"name": name}) if name else settings)


def run_options(function: Command) -> Command:
    """Add CONFIG and the options that override it."""
    options = [
        _CONFIG,
        _NAME,
        click.option("--limit", type=click.IntRange(min=1), help="Use only the first N queries."),
        click.option("--judge", help="Judge model; overrides the config's."),
        click.option("--base-url", help="The judge's endpoint; overrides the config's."),
        click.option("-q", "--quiet", is_flag=True, help="Print nothing but errors."),
    ]
    for option in reversed(options):
        function = option(function)
    return function


def read_config(
    path: Path, *, name: str | None, limit: int | None, judge: str | None, base_url: str | None
) -> RunConfig:
    """Return the config at `path`; what was given on the command line wins."""
    config = load_config(path)
    judge_settings = {"model": judge, "base_url": base_url}
    return config.model_copy(
        update={
            "name": name or config.name,
            "benchmark": config.benchmark.model_copy(
                update={} if limit is None else {"limit": limit}
            ),
            "judge": config.judge.model_copy(
                update={key: value for key, value in judge_settings.items() if value is not None}
            ),
        }
    )
