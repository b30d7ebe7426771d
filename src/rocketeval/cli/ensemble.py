"""`rocketeval ensemble`: the command and its output."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import make_console, make_table, printable, shown_path
from rocketeval.text import count_of, figure, join_words, share

if TYPE_CHECKING:
    from rocketeval.judges.ensemble import Ensemble
    from rocketeval.judges.runs import JudgedRun, Missing
    from rocketeval.stats.correlation import Coefficient


@verb(
    examples=[("rocketeval ensemble runs/a runs/b --out both", "combine two judges")],
    exit_codes=codes(2, 5),
)
@click.argument(
    "runs", metavar="RUN RUN...", nargs=-1, required=True, type=click.Path(path_type=Path)
)
@option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Folder for the rankings.",
)
@option(
    "--missing",
    type=click.Choice(["drop", "skip"]),
    default="drop",
    show_default=True,
    help="When some judges did not score a response: drop the response or skip those judges.",
)
@with_output
def command(runs: tuple[Path, ...], out: Path, missing: Missing, output: Output) -> None:
    """Combine the runs of several judges on one benchmark into one ranking.

    Each RUN is a run directory or its config. The command writes two rankings: by the mean of the
    judges' scores, and by a fit to the pooled comparisons of all judges. It uses the ranking
    settings of the first RUN and sends no requests.
    """
    from rocketeval.judges.ensemble import make_ensemble, save_ensemble
    from rocketeval.judges.runs import open_run

    opened = [open_run(path) for path in runs]
    found = make_ensemble(opened, opened[0].config.ranking, missing)
    save_ensemble(found, out)
    output.give(found, lambda: _show(found, opened, out))


def _show(found: Ensemble, opened: Sequence[JudgedRun], out: Path) -> None:
    from rocketeval.audit.conclusion import UNCHECKED
    from rocketeval.cli.ranking import show_ranking

    settings = opened[0].config.ranking
    caution = "" if found.agreement or found.ratings else UNCHECKED
    show_ranking(found.mean, f"Mean of {len(opened)} judges", doubt=caution)
    show_ranking(found.pooled, f"Pooled matches of {len(opened)} judges", doubt=caution)
    _show_gold(found)
    _show_left_out(found)
    others = [run for run in opened if run.config.ranking != settings]
    if others:
        names = join_words((shown_path(run.store.path) for run in others), most=5)
        first = shown_path(opened[0].store.path)
        click.echo(f"Used the ranking settings of {first}; these runs have others: {names}")
    click.echo(f"Written: {shown_path(out)}")


def _show_gold(found: Ensemble) -> None:
    """Compare each judge and both ensembles with votes and reference ratings."""
    from rich.text import Text

    methods = list(found.agreement or found.ratings)
    if not methods:
        return
    table = make_table("Agreement with human votes and reference ratings")
    table.add_column("method", overflow="fold")
    if found.agreement:
        for name in ("votes", "all votes, %", "decided votes, %"):
            table.add_column(name, justify="right", no_wrap=True)
    if found.ratings:
        table.add_column("Spearman", justify="right", no_wrap=True)
        table.add_column("Kendall", justify="right", no_wrap=True)
    for method in methods:
        table.add_row(
            Text(printable(method)), *_vote_cells(found, method), *_rating_cells(found, method)
        )
    make_console().print(table)


def _vote_cells(found: Ensemble, method: str) -> list[str]:
    if not found.agreement:
        return []
    votes = found.agreement[method]
    return [str(votes.used), share(votes.with_ties), share(votes.without_ties)]


def _rating_cells(found: Ensemble, method: str) -> list[str]:
    if not found.ratings:
        return []
    ratings = found.ratings[method]
    return [_coefficient(ratings.spearman), _coefficient(ratings.kendall)]


def _coefficient(found: Coefficient | None) -> str:
    if found is None:
        return "-"
    return f"{found.value:.2f}" if found.interval is None else figure(found.interval, ".2f")


def _show_left_out(found: Ensemble) -> None:
    """Print which queries, candidates, responses and votes were left out."""
    if found.queries_left_out:
        queries = count_of(found.queries_left_out, "query", "queries")
        click.echo(f"{queries} left out: not in every run")
    if found.candidates_left_out:
        names = printable(join_words(found.candidates_left_out, most=10))
        click.echo(f"Candidates left out, not in every run: {names}")
    if found.partly_scored:
        responses = count_of(found.partly_scored, "response", "responses")
        click.echo(f"{responses} scored by only some judges: {_MISSING[found.missing]}")
    if found.refused.votes:
        votes = count_of(found.refused.votes, "vote", "votes")
        click.echo(f"{votes} not counted: a run's scorer was fitted to them")


_MISSING = {
    "drop": "left out of the mean (--missing drop)",
    "skip": "the mean uses the judges that scored them (--missing skip)",
}
