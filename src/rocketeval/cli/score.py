"""`rocketeval score`

What a scorer learned, as the command line prints it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocketeval.cli.options import tell_decided, with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.run_with_signals import INCOMPLETE
from rocketeval.cli.text import make_console, printable
from rocketeval.text import count_of

if TYPE_CHECKING:
    from rocketeval.pipeline import Run
    from rocketeval.store.manifest import LearnedFacts, ScoreFacts


def show_learned(learned: LearnedFacts) -> None:
    """Print what the scorer learned from and what was kept from it; nothing if it did not learn."""
    console = make_console()
    if learned.fitted is not None:
        labels, votes, held_out = learned.labels, learned.votes or 0, learned.held_out or ()
        gold = count_of(labels, "label", "labels") if labels else count_of(votes, "vote", "votes")
        shown = ", ".join(map(printable, held_out[:5]))
        more = f", and {len(held_out) - 5} more" if len(held_out) > 5 else ""
        kept = f"; held out: {shown}{more}" if shown else ""
        names = count_of(len(learned.fitted), "candidate", "candidates")
        console.print(
            f"The scorer learned from {gold} on {names}{kept}.", markup=False, highlight=False
        )
    if learned.queries_by_mean_in_a_fold:
        some = count_of(learned.queries_by_mean_in_a_fold, "query has", "queries have")
        console.print(
            f"{some} enough gold for the whole fit, but not for every fold: some of the scores "
            "learned from are the mean's there.",
            markup=False,
            highlight=False,
        )
    if learned.queries_by_mean:
        whys = (learned.reasons or {}).items()
        reasons = "; ".join(f"{count} x {printable(why)}" for why, count in whys)
        by_mean = count_of(learned.queries_by_mean, "query", "queries")
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
    return INCOMPLETE if facts.without_score or facts.missing_answers else 0


def _show(facts: ScoreFacts) -> None:
    click.echo(
        f"{facts.scores} scores, {facts.without_score} responses without one, "
        f"{facts.missing_answers} of {facts.answers} answers missing"
    )
    show_learned(facts.learned)
