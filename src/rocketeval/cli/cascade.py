"""`rocketeval cascade`: the command and its output."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import MAX_COST, FiniteRange, loaded
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.run_with_signals import INCOMPLETE, run_with_signals
from rocketeval.cli.text import make_console, make_table, printable, shown_path
from rocketeval.text import count_of, figure

if TYPE_CHECKING:
    from rocketeval.config import RunConfig
    from rocketeval.judges.cascade import Cascade, CascadeRow
    from rocketeval.prices import PricedUsage


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
@click.argument("cheap", type=click.Path(path_type=Path))
@click.argument("strong", type=click.Path(path_type=Path))
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
@option("--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the draw.")
@MAX_COST
@with_output
def command(
    cheap: Path,
    strong: Path,
    share: float,
    out: Path,
    seed: int,
    max_cost: float | None,
    output: Output,
) -> int:
    """Estimate a strong judge's ranking from a cheap judge's run and a part graded anew.

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
    output.give(found, lambda: _show(found, out))
    return INCOMPLETE if found.failed else 0


def _settings(strong: Path, max_cost: float | None) -> RunConfig:
    settings = loaded(strong / "run.yaml" if strong.is_dir() else strong)
    return settings if max_cost is None else settings.model_copy(update={"max_cost": max_cost})


def _show(found: Cascade, out: Path) -> None:
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
            _rank(row),
            Text(printable(row.candidate)),
            figure(row.mean, ".2f"),
            "-" if row.minus_next is None else figure(row.minus_next, ".2f"),
            f"{row.cheap_mean:.2f}",
            f"{row.scored:,} of {row.responses:,}",
        )
    console = make_console()
    console.print(table)
    for sentence in (*_ties(found), *gains_in_words(found), *_costs(found)):
        console.print(printable(sentence), markup=False, highlight=False)
    click.echo(f"Written: {shown_path(out)}")


def _rank(row: CascadeRow) -> str:
    sure = row.rank_low == row.rank_high
    return str(row.rank) if sure else f"{row.rank} ({row.rank_low}-{row.rank_high})"


def _ties(found: Cascade) -> Iterator[str]:
    from rocketeval.ranking.summary import separation_in_words

    yield from separation_in_words(found.rows)
    yield f"Ranges are {found.level:.0%} intervals; ties are corrected for all pairs."


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
