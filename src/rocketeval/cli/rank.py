"""`rocketeval rank`"""

from __future__ import annotations

import click

from rocketeval.cli.options import with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.show_ranking import show_ranking
from rocketeval.pipeline import Run


@click.command()
@with_run
@with_output
def command(run: Run, output: Output) -> None:
    """Turn the scores of CONFIG's run into ratings and ranks, with intervals."""
    ranking = run.rank()
    output.give(ranking, lambda: show_ranking(ranking))
