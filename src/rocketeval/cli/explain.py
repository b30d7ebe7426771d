"""`rocketeval explain`"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import TypeVar

import click
import orjson

from rocketeval.cli.options import with_run
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
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(run: Run, candidate: str | None, query: str | None, most: int, as_json: bool) -> None:
    """Say why candidates of CONFIG's run stand where they stand.

    A candidate is compared, item by item, with its nearest neighbours in the ranking: which items
    cost it points that they get. A query shows what each of its items adds, and which tell nobody
    apart. Without --candidate and --query, all candidates are explained in explain.json, which the
    report shows.
    """
    if candidate is not None and query is not None:
        raise click.UsageError("Give --candidate or --query, not both.")
    if candidate is not None:
        _show(run.explain_candidate(candidate, most), show_candidate, as_json)
    elif query is not None:
        _show(run.explain_query(query), show_query, as_json)
    else:
        _show(run.explain(), show_overview, as_json)


def _show(record: Record, show: Callable[[Record], None], as_json: bool) -> None:
    if as_json:
        click.echo(orjson.dumps(asdict(record), option=orjson.OPT_INDENT_2))
    else:
        show(record)
