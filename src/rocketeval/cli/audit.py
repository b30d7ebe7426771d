"""`rocketeval audit`"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from textwrap import fill

import click

from rocketeval.audit.audit import Audit
from rocketeval.audit.methods import MethodComparison
from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.options import with_settings
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.progress import make_observer
from rocketeval.cli.show_audit import show_audit
from rocketeval.cli.show_item_gold import show_item_gold
from rocketeval.cli.show_methods import show_methods
from rocketeval.cli.show_reliability import show_reliability
from rocketeval.cli.words import printable
from rocketeval.config import RunConfig
from rocketeval.grading.methods.table import KINDS
from rocketeval.names import counted
from rocketeval.pipeline import Run
from rocketeval.stages.evaluate.given import as_graded
from rocketeval.stages.item_gold import ItemGold
from rocketeval.stages.reliability import JudgeReliability

_KNOWN = "\n".join(
    fill(f"  {name:<11} {kind.told}", 76, subsequent_indent=" " * 14)
    for name, kind in KINDS.items()
)


@dataclass(frozen=True, slots=True)
class Found:
    """All that one command may find out; None for what was not asked."""

    audit: Audit | None = None
    """How far the scores agree with people."""
    methods: MethodComparison | None = None
    reliability: JudgeReliability | None = None
    item_gold: ItemGold | None = None


@click.command(
    epilog="\b\nMethods:\n"
    + _KNOWN
    + "\n\n\b\nEach is scored by the mean of its answers, or by a scorer after +:\n"
    "checklist+hard, checklist+extra_trees, checklist+extra_trees:weight=none.\n"
    "Options after a colon: rubric:criterion=fluency (see `rocketeval criteria`)."
)
@with_settings
@click.option(
    "--methods",
    metavar="A,B,...",
    help="Grade in these ways too, and compare all of them on the same gold.",
)
@click.option(
    "--beside",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    metavar="RUN",
    help="Compare this run's judge with another run's, by its folder or config; may be repeated.",
)
@click.option(
    "--item-gold",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Hold the judge's answers against gold answers: rows of query_id, candidate, answers.",
)
@with_output
def command(
    settings: RunConfig,
    methods: str | None,
    beside: tuple[Path, ...],
    item_gold: Path | None,
    output: Output,
) -> int:
    """Say how far the judge of CONFIG's run can be trusted: against votes, labels and ratings.

    Baselines that know nothing (longer response, random guess) stand beside the judge, and how
    often two voters agree stands as the ceiling. With --methods, other ways to ask the same judge
    are graded too, each in a run of its own inside this one, and stand in one table. --beside and
    --item-gold ask nothing: they read finished runs. Exit code 3: some responses could not be
    judged, run it again; 6: --max-cost is reached.
    """
    run = Run(as_graded(settings), observer=make_observer(settings, quiet=output.quiet))
    names = [name for name in (methods or "").split(",") if name.strip()]
    found = Found(
        reliability=run.compare_judges(beside) if beside else None,
        item_gold=None if item_gold is None else run.hold_against_item_gold(item_gold),
        methods=None if methods is None else drive(run, lambda: run.compare_methods(names)),
        audit=None if beside or item_gold or methods is not None else run.audit(),
    )
    output.give(found, lambda: _show(found))
    missing = found.methods is not None and _show_missing(found.methods, output)
    return INCOMPLETE if missing else 0


def _show(found: Found) -> None:
    if found.reliability is not None:
        show_reliability(found.reliability)
    if found.item_gold is not None:
        show_item_gold(found.item_gold)
    if found.methods is not None:
        show_methods(found.methods)
    if found.audit is not None:
        show_audit(found.audit)


def _show_missing(comparison: MethodComparison, output: Output) -> int:
    """Print what another run would try again; return how many methods that concerns."""
    refused = [each for each in comparison.apart if each.figures is None]
    if output.silent:
        for each in refused:
            click.echo(printable(f"{each.name} is not compared: {each.reason}"), err=True)
    apart = [each.figures for each in comparison.apart if each.figures is not None]
    gaps = [row for row in (*comparison.rows, *apart) if row.unfinished]
    for row in gaps:
        some = counted(row.unfinished, "response", "responses")
        click.echo(
            printable(f"{row.name}: {some} could not be judged; run it again to retry"), err=True
        )
    return len(refused) + len(gaps)
