"""`rocketeval score`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rocketeval.cli.drive import INCOMPLETE
from rocketeval.cli.evaluator import tell_decided
from rocketeval.cli.options import with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.show import show_learned
from rocketeval.pipeline import Run


@click.command()
@with_run
@with_output
def command(run: Run, output: Output) -> int:
    """Turn the judgments of CONFIG's run into scores.

    Exit code 3: some responses have no score, or some answers are missing.
    """
    facts = run.score()
    output.give(facts, lambda: _show(facts))
    tell_decided(facts)
    return INCOMPLETE if facts["without_score"] or facts["missing_answers"] else 0


def _show(facts: Mapping[str, Any]) -> None:
    click.echo(
        f"{facts['scores']} scores, {facts['without_score']} responses without one, "
        f"{facts['missing_answers']} of {facts['answers']} answers missing"
    )
    show_learned(facts)
