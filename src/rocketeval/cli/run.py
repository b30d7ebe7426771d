"""`rocketeval run`"""

from __future__ import annotations

from dataclasses import replace

import click

from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.evaluator import tell_decided, tell_unused, with_evaluator
from rocketeval.cli.missing import missing_in_words
from rocketeval.cli.next_step import Typed
from rocketeval.cli.options import with_place, with_settings
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.plan import show_dry_run
from rocketeval.cli.progress import make_observer
from rocketeval.cli.summary import show_summary, summarise
from rocketeval.config import RunConfig
from rocketeval.pipeline import Run


@click.command()
@with_settings
@with_place
@with_evaluator
@click.option("--dry-run", is_flag=True, help="Say what would be done; contact and write nothing.")
@with_output
def command(settings: RunConfig, dry_run: bool, output: Output) -> int:
    """Do everything CONFIG (default rocketeval.yaml) asks for, and show the ranking.

    What earlier runs finished is never paid for again. Ctrl-C stops cleanly; the same command
    goes on from there.

    Exit codes: 0 all done, 2 a mistake in the config or the files, 3 done but something is
    missing, 4 the judge or author cannot be used, 5 the run directory cannot be used, 6
    --max-cost is reached, 130 interrupted.
    """
    if dry_run:
        show_dry_run(settings, output)
        return 0
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    summary = summarise(drive(run, run.all), Typed.now(settings))
    output.give(summary, lambda: show_summary(summary))
    tell_unused(summary.stages["checklist"])
    tell_decided(summary.stages["score"])
    if output.silent:
        gaps = replace(summary.missing, responses_empty=0, responses_absent=0)
        for line in missing_in_words(gaps, summary.stages):
            click.echo(line, err=True)
    return INCOMPLETE if summary.missing.gaps else 0
