"""`rocketeval score`"""

from __future__ import annotations

import click

from rocketeval.cli.drive import INCOMPLETE
from rocketeval.cli.options import with_run
from rocketeval.cli.show import show_learned
from rocketeval.pipeline import Run


@click.command()
@with_run
def command(run: Run) -> int:
    """Turn the judgments of CONFIG's run into scores."""
    facts = run.score()
    click.echo(
        f"{facts['scores']} scores, {facts['without_score']} responses without one, "
        f"{facts['missing_answers']} of {facts['answers']} answers missing"
    )
    show_learned(facts)
    return INCOMPLETE if facts["without_score"] or facts["missing_answers"] else 0
