"""`rocketeval scorers`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocketeval.cli.options import with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import make_console, make_table
from rocketeval.text import count_of, figure, share

if TYPE_CHECKING:
    from rocketeval.audit.compare_scorers import ScorerComparison
    from rocketeval.pipeline import Run


@click.command()
@with_run
@click.option(
    "--among",
    metavar="KINDS",
    help="Kinds to compare, simpler ones first, such as mean,isotonic,pooled_ridge.",
)
@with_output
def command(run: Run, among: str | None, output: Output) -> None:
    """Compare kinds of scorers on the labels or votes of CONFIG's run, by cross-validation.

    What is learned from is what `scorer.learn_from` says. Every figure is about gold that the
    scorer had not seen; the row `select` is what choosing one of them is worth. Writes nothing.
    """
    kinds = [kind.strip() for kind in among.split(",") if kind.strip()] if among else None
    found = run.compare_scorers(kinds or None)
    output.give(found, lambda: _show(found))


def _show(found: ScorerComparison) -> None:
    from rocketeval.audit.compare_scorers import LabelFigures

    one = found.learn_from.removesuffix("s")
    about = count_of(found.queries, "query", "queries")
    table = make_table(f"Scorers on {count_of(found.gold, one, found.learn_from)}, {about}")
    table.add_column("kind")
    headings = ("Pearson", "Spearman", "RMSE")
    for heading in headings if one == "label" else ("with ties", "without ties"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("chosen", justify="right")
    for row in found.rows:
        figures = (
            [figure(row.pearson, ".2f"), figure(row.spearman, ".2f"), figure(row.rmse, ".2f")]
            if isinstance(row, LabelFigures)
            else [share(row.with_ties), share(row.without_ties)]
        )
        times = "-" if row.chosen is None else f"{row.chosen} of {found.folds}"
        table.add_row(row.kind, *figures, times)
    console = make_console()
    console.print(table)
    console.print(_advice(found), highlight=False)
    console.print(
        f"{found.folds}-fold cross-validation; 95% intervals from resamples of the queries.",
        style="dim",
        highlight=False,
    )


def _advice(found: ScorerComparison) -> str:
    first = found.rows[0].kind
    if found.take == first:
        return f"Take {first}: no other is better by more than one standard error."
    return (
        f"Take {found.take}: the simplest of those within one standard error of the best, "
        f"and better than {first} by more."
    )
