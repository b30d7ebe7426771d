"""`rocketeval report`"""

from __future__ import annotations

import click

from rocketeval.cli.options import with_run
from rocketeval.pipeline import Run


@click.command()
@with_run
def command(run: Run) -> None:
    """Write report.html for CONFIG's run: one file, no network, opens from disk."""
    click.echo(f"Report: {run.report()}")
