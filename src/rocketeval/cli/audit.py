"""`rocketeval audit`"""

from __future__ import annotations

from pathlib import Path

import click

from rocketeval.cli.options import finished_run_options, open_run
from rocketeval.cli.show import show_audit


@click.command()
@finished_run_options
def command(config: Path, name: str | None) -> None:
    """Compare the scores of CONFIG's run with votes, labels and reference ratings.

    Baselines that know nothing (longer response, random guess) stand beside the judge, and how
    often two voters agree stands as the ceiling.
    """
    show_audit(open_run(config, name).audit())
