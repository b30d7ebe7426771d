"""`rocketeval explain`"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import click

from rocketeval.cli.options import with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.show_explanation import show_candidate, show_overview, show_query
from rocketeval.explain.candidate import CandidateExplanation
from rocketeval.pipeline import Run
from rocketeval.stages.explain import Explanation, QueryExplanation

Record = TypeVar("Record", CandidateExplanation, QueryExplanation, Explanation)


@click.command()
@with_run
@click.option("--candidate", metavar="NAME", help="Where this candidate loses and gains.")
@click.option("--query", metavar="ID", help="What each item of this query's checklist adds.")
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Losses and strengths of a candidate to show.",
)
@with_output
def command(run: Run, candidate: str | None, query: str | None, most: int, output: Output) -> None:
    """Say why candidates of CONFIG's run stand where they stand.

    A candidate is compared, item by item, with its nearest neighbours in the ranking: which items
    cost it points that they get. A query shows what each of its items adds, and which tell nobody
    apart. Without --candidate and --query, all candidates are explained in explain.json, which the
    report shows; where checklists have groups, such as dimensions, with every candidate's mean in
    each group.
    """
    if candidate is not None and query is not None:
        raise click.UsageError("Give --candidate or --query, not both.")
    if candidate is not None:
        _show(run.explain_candidate(candidate, most), show_candidate, output)
    elif query is not None:
        _show(run.explain_query(query), show_query, output)
    else:
        _show(run.explain(), show_overview, output)


def _show(record: Record, show: Callable[[Record], None], output: Output) -> None:
    output.give(record, lambda: show(record))
