"""`rocketeval ensemble` and `rocketeval cascade`: several judges, and their output."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import MAX_COST, RUN_PATH, SEEDS, FiniteRange, loaded
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.run_with_signals import INCOMPLETE, run_with_signals
from rocketeval.cli.text import as_argument, make_console, make_table, rank_text, say, shown_path
from rocketeval.text import count_of, figure, join_words, percentage, printable, share

if TYPE_CHECKING:
    from rocketeval.config import RunConfig
    from rocketeval.judges.cascade import Cascade, CascadeRow
    from rocketeval.judges.ensemble import Ensemble
    from rocketeval.judges.runs import JudgedRun, Missing
    from rocketeval.prices import PricedUsage
    from rocketeval.stats.correlation import Coefficient


@verb(
    examples=[("rocketeval ensemble runs/a runs/b --out both", "combine two judges")],
    exit_codes=codes(2, 5),
)
@click.argument("runs", metavar="RUN RUN...", nargs=-1, required=True, type=RUN_PATH)
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
    from rocketeval.cli.ranking import show_ranking

    settings = opened[0].config.ranking
    labels = {run.store.path: len(run.store.inputs.labels()) for run in opened}
    path, most = max(labels.items(), key=lambda pair: pair[1])
    caution = "" if found.agreement or found.ratings else _unchecked(most)
    show_ranking(found.mean, f"Mean of {len(opened)} judges", doubt=caution)
    show_ranking(found.pooled, f"Pooled matches of {len(opened)} judges", doubt=caution)
    _show_gold(found)
    _show_left_out(found)
    others = [run for run in opened if run.config.ranking != settings]
    if others:
        names = join_words((shown_path(run.store.path) for run in others), most=5)
        first = shown_path(opened[0].store.path)
        click.echo(f"Used the ranking settings of {first}; these runs have others: {names}")
    if most:
        command = shlex.join(["rocketeval", "audit", as_argument(path / "run.yaml")])
        given = count_of(most, "label was", "labels were")
        click.echo(f"{given} not used. To compare one judge with them: {printable(command)}")
    click.echo(f"Written: {shown_path(out)}")


def _unchecked(labels: int) -> str:
    """Return why the ensemble is unchecked: without reference data, or with labels only."""
    from rocketeval.audit.conclusion import UNCHECKED

    return _NOT_WITH_LABELS if labels else UNCHECKED


_NOT_WITH_LABELS = (
    "Ranked by unchecked judges: there are no human votes or reference ratings, and an ensemble is "
    "not compared with labels."
)


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


@verb(
    examples=[
        (
            "rocketeval cascade runs/small big.yaml --out both",
            "grade 30% with the judge of big.yaml",
        ),
        ("rocketeval cascade small.yaml big.yaml --share 0.1 --out both", "grade 10%"),
    ],
    exit_codes=codes(2, 3, 4, 5, 6, 130),
)
@click.argument("cheap", type=RUN_PATH)
@click.argument("strong", type=RUN_PATH)
@option(
    "--share",
    type=FiniteRange(min=0, max=1, min_open=True),
    default=0.3,
    show_default=True,
    metavar="SHARE",
    help="Share of the responses that the strong judge grades.",
)
@option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    metavar="FOLDER",
    help="Folder for the draw and the ranking.",
)
@option("--seed", type=SEEDS, default=0, show_default=True, metavar="N", help="Seed of the draw.")
@MAX_COST
@with_output
def cascade(
    cheap: Path,
    strong: Path,
    share: float,
    out: Path,
    seed: int,
    max_cost: float | None,
    output: Output,
) -> int:
    """Estimate a strong judge's ranking from a cheap judge's run and a graded part.

    CHEAP is a finished run (or its config). STRONG is a config (or run) with the same benchmark and
    checklists, and another judge. STRONG grades a drawn share of the responses, mostly where CHEAP
    is uncertain. The result is an estimate of STRONG's mean scores over all responses, with
    intervals that account for the draw. The same command continues an interrupted one and asks for
    nothing twice; a larger --share adds to what was drawn.
    """
    from rocketeval.cli.progress import make_observer
    from rocketeval.pipeline import Run

    settings = _settings(strong, max_cost)
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    found = run_with_signals(run, lambda: run.cascade(cheap, out, share, seed))
    output.give(found, lambda: _show_cascade(found, out))
    return INCOMPLETE if found.failed else 0


def _settings(strong: Path, max_cost: float | None) -> RunConfig:
    settings = loaded(strong / "run.yaml" if strong.is_dir() else strong)
    return settings if max_cost is None else settings.model_copy(update={"max_cost": max_cost})


def _show_cascade(found: Cascade, out: Path) -> None:
    from rich.text import Text

    from rocketeval.judges.cascade import gains_in_words

    over = count_of(found.queries, "query", "queries")
    table = make_table(f"Estimated ranking by {printable(found.strong)} over {over}")
    table.add_column("rank", no_wrap=True)
    table.add_column("candidate", overflow="fold")
    for title in ("mean score", "minus next", f"{printable(found.cheap)} alone", "graded"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(
            rank_text(row),
            Text(printable(row.candidate)),
            figure(row.mean, ".2f"),
            "-" if row.minus_next is None else figure(row.minus_next, ".2f"),
            f"{row.cheap_mean:.2f}",
            f"{row.scored:,} of {row.responses:,}",
        )
    console = make_console()
    console.print(table)
    for sentence in (
        *ties_in_words(found.rows, found.level),
        *gains_in_words(found),
        *_costs(found),
    ):
        say(console, sentence)
    click.echo(f"Written: {shown_path(out)}")


def ties_in_words(rows: Sequence[CascadeRow], level: float) -> Iterator[str]:
    """Yield which candidates are tied; the estimate is not audited, so it is about scores."""
    from rocketeval.audit.conclusion import UNCHECKED
    from rocketeval.ranking.summary import separation_in_words

    yield from separation_in_words(rows, UNCHECKED)
    yield f"Ranges are {percentage(level)} intervals; ties are corrected for all pairs."


def _costs(found: Cascade) -> Iterator[str]:
    asked = count_of(found.asked, "judgment", "judgments")
    yield f"Asked {found.strong} for {asked} now, {found.drawn:,} drawn in total."
    for judge, usage in ((found.cheap, found.cheap_usage), (found.strong, found.strong_usage)):
        yield f"{judge}: {_used(usage)}"


def _used(usage: PricedUsage) -> str:
    from rocketeval.prices import shown_money

    parts = [count_of(usage.requests, "request", "requests")]
    if usage.prompt_tokens:
        parts.append(f"{usage.prompt_tokens:,} prompt tokens")
    cost = usage.cost
    parts.append("no price set" if cost is None else shown_money(cost, usage.currency))
    return ", ".join(parts)
