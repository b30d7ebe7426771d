"""`rocketeval run`"""

from __future__ import annotations

import click

from rocketeval.cli.bill import show_bill
from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.options import with_settings
from rocketeval.cli.plan import show_dry_run
from rocketeval.cli.progress import make_observer
from rocketeval.cli.show import show_gaps, show_learned, show_ranking
from rocketeval.cli.show_audit import show_audit
from rocketeval.config import RunConfig
from rocketeval.pipeline import Run


@click.command()
@with_settings
@click.option("--dry-run", is_flag=True, help="Say what would be done; contact and write nothing.")
def command(settings: RunConfig, quiet: bool, dry_run: bool) -> int:
    """Do everything CONFIG (default rocketeval.yaml) asks for, and show the ranking.

    What earlier runs finished is never paid for again. Ctrl-C stops cleanly; the same command
    goes on from there. Exit codes: 0 all done, 2 a mistake in the config or the files, 3 done but
    something is missing, 4 the judge or author cannot be used, 5 the run directory cannot be
    used, 6 --max-cost is reached, 130 interrupted.
    """
    if dry_run:
        show_dry_run(settings)
        return 0
    run = Run(settings, observer=make_observer(settings, quiet=quiet))
    outcome = drive(run, run.all)
    if not quiet:
        show_learned(outcome.stages["score"])
        show_ranking(outcome.ranking)
        show_audit(outcome.audit, brief=True)
        show_bill(outcome.stages["grade"]["bill"])
        click.echo(f"Report: {outcome.report}")
    return INCOMPLETE if show_gaps(outcome.stages) else 0
