"""`rocketeval lint`"""

from __future__ import annotations

from pathlib import Path

import click

from rocketeval.cli.lint_fix import fix, fixable_config, own_config
from rocketeval.cli.options import DEFAULT_CONFIG
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.show_lint import show_lint
from rocketeval.errors import ConfigError
from rocketeval.lint.finding import KINDS
from rocketeval.lint.lint import Lint, narrow
from rocketeval.pipeline import Run
from rocketeval.stages.judged_runs import open_run
from rocketeval.stages.lint import lint_path, lint_run

FOUND_ERRORS = 3


@click.command()
@click.argument("what", type=click.Path(path_type=Path), default=DEFAULT_CONFIG)
@click.option("--name", help="Name of the run; overrides the config's.")
@click.option("--query", metavar="ID", help="Only the items of this query.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(list(KINDS)),
    metavar="KIND",
    help="Only findings of this kind; may be given several times.",
)
@click.option(
    "--most",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Items to show; --json has all.",
)
@click.option("--strict", is_flag=True, help="Exit with code 3 if any finding is an error.")
@click.option(
    "--fix",
    "proposal",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Let the author LLM rewrite flagged items; write all checklists to FILE (.yaml or .csv).",
)
@click.option("--force", is_flag=True, help="With --fix: replace an existing FILE.")
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MONEY",
    help="With --fix: stop before the author costs more; needs its price.",
)
@with_output
def command(
    what: Path,
    name: str | None,
    query: str | None,
    kinds: tuple[str, ...],
    most: int,
    strict: bool,
    proposal: Path | None,
    force: bool,
    max_cost: float | None,
    output: Output,
) -> int:
    """Say what is wrong with the checklist items of WHAT.

    WHAT is a config, a run directory, a benchmark folder or a file of checklists (JSON lines, or
    what --fix or `checklist --export` wrote). Words show items
    that are no yes/no question, ask two things, repeat another, speak of what the judge cannot see,
    or whose yes is the worse answer. Where a run has judgments, its answers show items that tell no
    two responses apart, say it twice, leave the judge unsure, or go against the others. Nothing is
    changed.

    With --fix, the config's `author.engine` proposes other items for those that are flagged: a file
    to look at, and to grade with by `author: {kind: file, options: {file: FILE}}`. The run itself
    is never changed. Exit code 3: some items stay as they were, each with the reason.
    """
    if proposal is not None:
        if strict:
            raise click.UsageError("--strict and --fix do not go together.")
        return fix(
            what,
            fixable_config(_existing(what), name),
            proposal,
            kinds=kinds,
            query_id=query,
            force=force,
            max_cost=max_cost,
            most=most,
            output=output,
        )
    if force or max_cost is not None:
        raise click.UsageError("--force and --max-cost belong to --fix.")
    found = _look(_existing(what), name)
    shown = narrow(found, query, kinds)
    output.give(shown, lambda: show_lint(shown, most))
    return FOUND_ERRORS if strict and shown.errors else 0


def _existing(what: Path) -> Path:
    if not what.exists() and what != DEFAULT_CONFIG:
        raise ConfigError(
            f"There is no {what}.",
            hint="Give a config, a run directory, a benchmark folder or a file of checklists.",
        )
    return what


def _look(what: Path, name: str | None) -> Lint:
    if what.is_dir() and (what / "run.yaml").exists():
        run = open_run(what)
        return lint_run(run.store, run.config)
    config = own_config(what, name)
    return lint_path(what) if config is None else Run(config).lint()
