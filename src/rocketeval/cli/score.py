"""`rocketeval score`

What a scorer learned, as the command line prints it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rocketeval.cli.options import tell_decided, with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.run_with_signals import INCOMPLETE
from rocketeval.cli.tables import make_console
from rocketeval.cli.text import printable
from rocketeval.pipeline import Run
from rocketeval.text import count_of


def show_learned(score: Mapping[str, Any]) -> None:
    """Print what the scorer learned from and what was kept from it; nothing if it did not learn."""
    learned = score.get("learned") or {}
    console = make_console()
    if "fitted" in learned:
        labels, votes = learned["labels"], learned["votes"]
        gold = count_of(labels, "label", "labels") if labels else count_of(votes, "vote", "votes")
        held_out = ", ".join(map(printable, learned["held_out"][:5]))
        more = f", and {len(learned['held_out']) - 5} more" if len(learned["held_out"]) > 5 else ""
        kept = f"; held out: {held_out}{more}" if held_out else ""
        names = count_of(len(learned["fitted"]), "candidate", "candidates")
        console.print(
            f"The scorer learned from {gold} on {names}{kept}.", markup=False, highlight=False
        )
    if learned.get("queries_by_mean_in_a_fold"):
        some = count_of(learned["queries_by_mean_in_a_fold"], "query has", "queries have")
        console.print(
            f"{some} enough gold for the whole fit, but not for every fold: some of the scores "
            "learned from are the mean's there.",
            markup=False,
            highlight=False,
        )
    if learned.get("queries_by_mean"):
        reasons = "; ".join(f"{n} x {printable(why)}" for why, n in learned["reasons"].items())
        by_mean = count_of(learned["queries_by_mean"], "query", "queries")
        console.print(
            f"Scored by the mean after all: {by_mean} ({reasons}).", markup=False, highlight=False
        )


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
