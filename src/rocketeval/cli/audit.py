"""`rocketeval audit`"""

from __future__ import annotations

import click

from rocketeval.cli.options import with_run
from rocketeval.cli.show_audit import show_audit
from rocketeval.pipeline import Run


@click.command()
@with_run
def command(run: Run) -> None:
    """Compare the scores of CONFIG's run with votes, labels and reference ratings.

    Baselines that know nothing (longer response, random guess) stand beside the judge, and how
    often two voters agree stands as the ceiling.
    """
    show_audit(run.audit())
