"""`rocketeval rank`"""

from __future__ import annotations

import click

from rocketeval.cli.options import with_run
from rocketeval.cli.show import show_ranking
from rocketeval.pipeline import Run


@click.command()
@with_run
def command(run: Run) -> None:
    """Turn the scores of CONFIG's run into ratings and ranks, with intervals."""
    show_ranking(run.rank())
