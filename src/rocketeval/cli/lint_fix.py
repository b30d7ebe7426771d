"""`rocketeval lint --fix`: the author proposes other items for those that are flagged."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from rocketeval.checklists.sheet import is_sheet
from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.output import Output
from rocketeval.cli.progress import make_observer
from rocketeval.cli.show_fixes import show_fixes
from rocketeval.cli.words import printable
from rocketeval.config import RunConfig, load_config
from rocketeval.errors import ConfigError
from rocketeval.pipeline import Run
from rocketeval.prices import with_prices
from rocketeval.stages.checklist_sheet import without_about
from rocketeval.stages.judged_runs import open_run
from rocketeval.stages.lint_fix import check_fixable

NO_CONFIG = (".jsonl", ".json", ".gz")
"""Endings of files that hold checklists."""


def fix(
    what: Path,
    settings: RunConfig | None,
    path: Path,
    *,
    kinds: Sequence[str],
    query_id: str | None,
    force: bool,
    max_cost: float | None,
    most: int,
    output: Output,
) -> int:
    """Write a proposal to `path`, and show it; exit code 3 when some items stay flagged."""
    if settings is None:
        raise ConfigError(
            f"--fix needs a config: {what} names no author LLM to ask.",
            hint="Give the config of a run, such as rocketeval.yaml, with `author.engine` in it.",
        )
    limit = {} if max_cost is None else {"max_cost": max_cost}
    config = with_prices(settings.model_copy(update=limit))
    # What is wrong is said before a run directory is made, or held.
    run = Run(config, observer=make_observer(config, quiet=output.quiet))
    config_file = what / "run.yaml" if what.is_dir() else what
    check_fixable(run.store, config, path, force=force, config_file=config_file)
    fixes = drive(run, lambda: run.propose_fixes(path, kinds=kinds, query_id=query_id, force=force))
    file = "" if fixes.path is None else from_config(fixes.path, what)
    output.give(fixes, lambda: show_fixes(fixes, file, config.method.kind, most))
    lost = fixes.path and without_about(fixes.path, fixes.checklists)
    if lost:
        click.echo(printable(lost), err=True)
    return INCOMPLETE if fixes.left else 0


def fixable_config(what: Path, name: str | None) -> RunConfig | None:
    """Return the config that WHAT is, or that its run directory keeps; None if it has none."""
    if what.is_dir() and (what / "run.yaml").exists():
        config = open_run(what).config
        if config.run_path.resolve() != what.resolve():
            raise ConfigError(
                f"{what} was made at {config.run_path}: its own config leads elsewhere.",
                hint="Give the config of the run instead.",
            )
        return config
    return own_config(what, name)


def own_config(what: Path, name: str | None) -> RunConfig | None:
    """Return the config that WHAT is; None for a benchmark folder or a file of checklists."""
    if what.is_dir() or what.suffix in NO_CONFIG or is_sheet(what):
        return None
    config = load_config(what)
    return config.model_copy(update={"name": name}) if name else config


def from_config(path: Path, config: Path) -> str:
    """Return a path as the config has to name it: from the config's own folder."""
    if config.is_dir():
        return str(path.resolve())
    try:
        return Path(os.path.relpath(path.resolve(), config.parent.resolve())).as_posix()
    except ValueError:
        # Another drive, on Windows.
        return str(path.resolve())
