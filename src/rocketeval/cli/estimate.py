"""`rocketeval estimate`"""

from __future__ import annotations

import math

import click
from rich.text import Text

from rocketeval.cli.options import LEVEL, describe_choice, with_choice, with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.tables import figure, make_console, make_table
from rocketeval.compare.stage import Estimates, LabelScope
from rocketeval.pipeline import Run
from rocketeval.stats.prediction_powered import FEWEST_LABELS
from rocketeval.text import count_of


@click.command()
@with_run
@with_choice(strata=1)
@LEVEL
@with_output
def command(run: Run, choice: LabelScope, level: float, output: Output) -> None:
    """Estimate mean labels in CONFIG's run from a few labels and all scores.

    Scores are biased, labels are few. Together they give the mean label over queries like these
    without the bias, and often more sharply than the labels alone (prediction-powered inference);
    both stand side by side, with the number of labels that would be as sharp alone.

    \b
      rocketeval estimate                      all candidates with labels
      rocketeval estimate --candidate NEW --against OLD
                                               a difference, on shared queries

    The labelled queries must be like the rest: drawn at random, or by `rocketeval advise`; then
    give the same --candidate, --against, --top, --strata and --by-category as there.
    """
    found = run.estimate(choice, level=level)
    output.give(found, lambda: _show(found, level))


def _show(found: Estimates, level: float) -> None:
    table = make_table("Mean label")
    table.add_column("candidate", overflow="fold")
    for title in ("labelled", "with scores", "labels alone", "correlation", "width", "worth"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(
            Text(describe_choice(row.candidate, row.against)),
            f"{row.labelled} of {row.queries}",
            figure(row.with_scores, ".2f"),
            figure(row.labels_only, ".2f"),
            _known(row.correlation, ".2f"),
            _known(row.width_ratio, ".0%"),
            _known(row.effective_labels, ".0f"),
        )
    console = make_console()
    console.print(table, highlight=False)
    for note in _notes(found):
        console.print(note, highlight=False, markup=False)
    console.print(
        "Width: of the interval with scores, against that of labels alone. Worth: how many labels "
        "alone would be as sharp. "
        f"{level:.0%} intervals for the mean over queries like these. They hold if the labelled "
        "queries are like the rest.",
        style="dim",
        highlight=False,
    )


def _known(value: float, digits: str) -> str:
    return "-" if math.isnan(value) else format(value, digits)


def _notes(found: Estimates) -> list[str]:
    unlabelled = count_of(found.half_labelled, "query has", "queries have")
    unscored = count_of(found.without_score, "labelled response has", "labelled responses have")
    foreign = count_of(found.not_in_run, "labelled response is", "labelled responses are")
    notes = {
        f"{unlabelled} a label of one side only: not used.": found.half_labelled,
        f"{unscored} no score: not used.": found.without_score,
        f"{foreign} not in the run: not used.": found.not_in_run,
        f"No interval below {FEWEST_LABELS} labels, or when all labels are the same.": any(
            math.isnan(row.with_scores.low) for row in found.rows
        ),
        "The scores do not help where the labels are worth fewer than there are.": any(
            row.effective_labels < row.labelled for row in found.rows
        ),
        "The scorer learned from gold. That is fine if it treats labelled and unlabelled queries "
        "alike; a scorer fitted query by query does not.": found.learned,
    }
    return [note for note, applies in notes.items() if applies]
