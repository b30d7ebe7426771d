"""`rocketeval lint`"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import click

from rocketeval.cli.options import DEFAULT_CONFIG
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.show_lint import show_lint
from rocketeval.config import load_config
from rocketeval.errors import ConfigError
from rocketeval.lint.finding import KINDS
from rocketeval.lint.lint import Lint
from rocketeval.names import did_you_mean
from rocketeval.pipeline import Run
from rocketeval.stages.judged_runs import open_run
from rocketeval.stages.lint import lint_path, lint_run

FOUND_ERRORS = 3
_NO_CONFIG = (".jsonl", ".json", ".gz")


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
@with_output
def command(
    what: Path,
    name: str | None,
    query: str | None,
    kinds: tuple[str, ...],
    most: int,
    strict: bool,
    output: Output,
) -> int:
    """Say what is wrong with the checklist items of WHAT.

    WHAT is a config, a run directory, a benchmark folder or a file of checklists. Words show items
    that are no yes/no question, ask two things, repeat another, speak of what the judge cannot see,
    or whose yes is the worse answer. Where a run has judgments, its answers show items that tell no
    two responses apart, say it twice, leave the judge unsure, or go against the others. Nothing is
    changed.
    """
    found = _look(what, name)
    shown = narrowed(found, query, kinds)
    output.give(shown, lambda: show_lint(shown, most))
    return FOUND_ERRORS if strict and shown.errors else 0


def narrowed(found: Lint, query: str | None, kinds: tuple[str, ...]) -> Lint:
    """Return the findings of one query, or of some kinds; the table of kinds stays as it is."""
    if query is not None and query not in found.query_ids:
        raise ConfigError(
            f"There is no checklist for query {query!r} in {found.source}.",
            hint=did_you_mean(query, list(found.query_ids)),
        )
    findings = tuple(
        each
        for each in found.findings
        if (query is None or each.query_id == query) and (not kinds or each.kind in kinds)
    )
    errors = {(each.query_id, each.item) for each in findings if each.severity == "error"}
    return replace(found, findings=findings, errors=len(errors))


def _look(what: Path, name: str | None) -> Lint:
    if not what.exists() and what != DEFAULT_CONFIG:
        raise ConfigError(
            f"There is no {what}.",
            hint="Give a config, a run directory, a benchmark folder or a file of checklists.",
        )
    if what.is_dir() and (what / "run.yaml").exists():
        run = open_run(what)
        return lint_run(run.store, run.config)
    if what.is_dir() or what.suffix in _NO_CONFIG:
        return lint_path(what)
    config = load_config(what)
    return Run(config.model_copy(update={"name": name}) if name else config).lint()
