"""`rocketeval score`"""

from __future__ import annotations

from pathlib import Path

import click

from rocketeval.cli.drive import INCOMPLETE
from rocketeval.cli.options import finished_run_options, open_run


@click.command()
@finished_run_options
def command(config: Path, name: str | None) -> int:
    """Turn the judgments of CONFIG's run into scores."""
    facts = open_run(config, name).score()
    click.echo(
        f"{facts['scores']} scores, {facts['without_score']} responses without one, "
        f"{facts['missing_answers']} of {facts['answers']} answers missing"
    )
    return INCOMPLETE if facts["without_score"] or facts["missing_answers"] else 0
