"""`rocketeval audit`"""

from __future__ import annotations

from pathlib import Path

import click

from rocketeval.audit.methods import MethodComparison
from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.options import with_settings
from rocketeval.cli.progress import make_observer
from rocketeval.cli.show_audit import show_audit
from rocketeval.cli.show_item_gold import show_item_gold
from rocketeval.cli.show_methods import show_methods
from rocketeval.cli.show_reliability import show_reliability
from rocketeval.cli.words import counted, printable
from rocketeval.config import RunConfig
from rocketeval.grading.methods.table import KINDS
from rocketeval.pipeline import Run

_KNOWN = "\n".join(f"  {name:<11} {kind.told}" for name, kind in KINDS.items())


@click.command(
    epilog="\b\nMethods:\n"
    + _KNOWN
    + "\n\n\b\nEach is scored by the mean of its answers; a scorer after + learns or simplifies:\n"
    "checklist+hard, checklist+extra_trees, checklist+extra_trees:weight=none.\n"
    "Options after a colon: rubric:criterion=fluency (`rocketeval criteria` lists them)."
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
def command(
    settings: RunConfig,
    quiet: bool,
    methods: str | None,
    beside: tuple[Path, ...],
    item_gold: Path | None,
) -> int:
    """Say how far the judge of CONFIG's run can be trusted: against votes, labels and ratings.

    Baselines that know nothing (longer response, random guess) stand beside the judge, and how
    often two voters agree stands as the ceiling. With --methods, other ways to ask the same judge
    are graded too, each in a run of its own inside this one, and stand in one table. --beside and
    --item-gold ask nothing: they read finished runs. Exit code 3: some responses could not be
    judged, run it again; 6: --max-cost is reached.
    """
    run = Run(settings, observer=make_observer(settings, quiet=quiet))
    if beside:
        agreement = run.compare_judges(beside)
        if not quiet:
            show_reliability(agreement)
    if item_gold is not None:
        answers = run.hold_against_item_gold(item_gold)
        if not quiet:
            show_item_gold(answers)
    if methods is None:
        if not beside and item_gold is None:
            found = run.audit()
            if not quiet:
                show_audit(found)
        return 0
    names = [name for name in methods.split(",") if name.strip()]
    comparison = drive(run, lambda: run.compare_methods(names))
    if not quiet:
        show_methods(comparison)
    return INCOMPLETE if _show_missing(comparison, quiet=quiet) else 0


def _show_missing(comparison: MethodComparison, *, quiet: bool) -> int:
    """Print what another run would try again; return how many methods that concerns."""
    refused = [each for each in comparison.apart if each.figures is None]
    if quiet:
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
