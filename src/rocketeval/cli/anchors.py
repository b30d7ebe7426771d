"""`rocketeval anchors`: the command and its output."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import make_console, make_table, printable, shown_path
from rocketeval.text import count_of

if TYPE_CHECKING:
    from rocketeval.compare.anchors import AnchorChoice, Placement
    from rocketeval.stats.anchors import PredictionError


@dataclass(frozen=True, slots=True)
class AnchorOutput:
    """The JSON document of `rocketeval anchors`."""

    anchors: AnchorChoice
    placed: tuple[Placement, ...]
    """Empty without --look."""


@verb(
    examples=[
        ("rocketeval anchors runs/all --out anchors.txt", "choose 20 queries"),
        ("rocketeval run new.yaml --queries anchors.txt", "grade a new candidate on these"),
        ("rocketeval anchors runs/all --look runs/new-anchors", "place the new candidate"),
    ],
    exit_codes=codes(2, 5),
)
@click.argument("run", type=click.Path(path_type=Path))
@option(
    "--count",
    type=click.IntRange(min=2),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of queries to choose.",
)
@option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File for the query ids, one per line, for `run --queries`.",
)
@option(
    "--look",
    type=click.Path(path_type=Path),
    metavar="RUN",
    help="Run of a new candidate on the anchors; place it among those of the first run.",
)
@option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the choice.")
@with_output
def command(
    run: Path, count: int, out: Path | None, look: Path | None, seed: int, output: Output
) -> None:
    """Choose the queries of a run that best predict a candidate's mean score.

    RUN is a run directory (or its config) with at least five fully graded candidates. Grade a new
    candidate on the chosen queries only, then see with --look where it would rank. This is a first
    look: it gives an order without intervals. Grade all queries before you decide.
    """
    from rocketeval.compare.anchors import choose_queries, place_candidates, save_queries
    from rocketeval.judges.runs import open_run

    known = open_run(run).store
    found = choose_queries(known, count, seed)
    if out is not None:
        save_queries(found, out)
    placed = place_candidates(known, open_run(look).store, found) if look is not None else ()
    output.give(AnchorOutput(found, placed), lambda: _show(found, placed, out))


def _show(found: AnchorChoice, placed: Sequence[Placement], out: Path | None) -> None:
    chosen = count_of(len(found.queries), "anchor", "anchors")
    names = count_of(len(found.candidates), "candidate", "candidates")
    click.echo(f"{chosen} of {found.of_queries:,} queries, chosen by the scores of {names}.")
    click.echo(f"A candidate left out is predicted within {_shown(found.anchors)};")
    click.echo(f"from as many random queries, within {_shown(found.random)}.")
    if placed:
        _show_order(placed)
    elif out is None:
        click.echo(printable(", ".join(found.queries)))
    if out is not None:
        click.echo(f"Written: {shown_path(out)}")


def _shown(error: PredictionError) -> str:
    rho = "unknown" if math.isnan(error.spearman) else f"{error.spearman:.2f}"
    return f"{error.mean_error:.2f} points on average (rank correlation {rho})"


def _show_order(placed: Sequence[Placement]) -> None:
    from rich.text import Text

    table = make_table("Order by anchor scores")
    for title in ("place", "candidate", ""):
        table.add_column(title, overflow="fold")
    for place, row in enumerate(placed, 1):
        table.add_row(str(place), Text(printable(row.candidate)), "new" if row.new else "")
    make_console().print(table)
    click.echo(
        "A first look: anchors give an order without intervals. Grade all queries before you "
        "decide between neighbors."
    )
