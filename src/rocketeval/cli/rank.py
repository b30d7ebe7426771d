"""`rocketeval rank`"""

from __future__ import annotations

from pathlib import Path

import click

from rocketeval.cli.options import finished_run_options, open_run
from rocketeval.cli.show import show_ranking


@click.command()
@finished_run_options
def command(config: Path, name: str | None) -> None:
    """Turn the scores of CONFIG's run into ratings and ranks, with intervals."""
    show_ranking(open_run(config, name).rank())
