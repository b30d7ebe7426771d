"""`rocketeval advise`"""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path

import click
import orjson

from rocketeval.cli.options import LEVEL, describe_choice, same_choice, with_choice, with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.run import Typed
from rocketeval.cli.text import near, printable
from rocketeval.compare.labeling import Advice, WantedLabel
from rocketeval.compare.stage import LabelScope
from rocketeval.errors import ConfigError
from rocketeval.pipeline import Run
from rocketeval.text import count_of

STDOUT = "-"
AFTERWARDS = "Once they are labelled: `rocketeval estimate`, with the same options."


@click.command()
@with_run
@with_choice(strata=3)
@click.option(
    "--more",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Queries to choose.",
)
@click.option("--out", metavar="FILE", help="Write the wanted labels there, as JSON lines; - here.")
@click.option("--force", is_flag=True, help="Replace the file of --out.")
@click.option("--seed", type=int, default=0, show_default=True, help="Seed of the draw.")
@LEVEL
@with_output
def command(
    run: Run,
    choice: LabelScope,
    more: int,
    out: str | None,
    force: bool,
    seed: int,
    level: float,
    output: Output,
) -> None:
    """Choose which responses of CONFIG's run to label next, and say what that buys.

    \b
      rocketeval advise --candidate NEW --out wanted.jsonl
      rocketeval advise --candidate NEW --against OLD --more 50 --out wanted.jsonl
      rocketeval advise --top 3 --out wanted.jsonl

    Queries are drawn at random within groups by score, more of them where scores have missed the
    labels by most. Label in the given order and stop where you like, add the labels to the
    benchmark's labels, run it again (nothing is judged twice), then `rocketeval estimate` with the
    same options.
    """
    if out is not None and out != STDOUT:
        _refuse_to_overwrite(Path(out), force)
    advice = run.advise(choice, more=more, seed=seed, level=level)
    if out is not None and out != STDOUT:
        Path(out).write_bytes(_lines(advice.wanted))
    if out == STDOUT and not output.as_json:
        click.echo(_lines(advice.wanted), nl=False)
        return
    typed = Typed.now(run.config)
    output.give(advice, lambda: _show(advice, choice, typed, out))


def _refuse_to_overwrite(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise ConfigError(
            f"{path} exists already, and may hold labels that somebody wrote into it.",
            hint="Give another file, or --force to replace it.",
        )


def _lines(wanted: tuple[WantedLabel, ...]) -> bytes:
    return b"".join(orjson.dumps(asdict(row)) + b"\n" for row in wanted)


def _show(advice: Advice, choice: LabelScope, typed: Typed, out: str | None) -> None:
    who = ", ".join(
        describe_choice(name, advice.target.against) for name in advice.target.candidates
    )
    click.echo(f"Mean label of {who}: {advice.labelled} of {advice.queries} queries are labelled")
    click.echo(f"{'labelled':>8}   {'width with scores':>17}   {'labels alone':>12}")
    for forecast in advice.forecasts:
        click.echo(
            f"{forecast.labelled:>8}   {_width(forecast.with_scores):>17}   "
            f"{_width(forecast.labels_only):>12}"
        )
    if advice.assumed:
        click.echo("Too few labels to know: assumes labels spread like scores, correlation 0.5.")
    click.echo(f"Expected widths of {advice.level:.0%} intervals.")
    queries = len({row.query_id for row in advice.wanted})
    labels = count_of(len(advice.wanted), "label", "labels")
    chosen = f"{labels} on {count_of(queries, 'query', 'queries')}"
    if not advice.wanted:
        click.echo("Every query is labelled.")
    elif out is None:
        click.echo(f"Chosen: {chosen}; --out FILE writes which.")
    else:
        click.echo(f"Wrote {chosen}: {printable(near(Path(out)))}")
        command = typed.of_run("estimate", *same_choice(choice, advice.target))
        # A name that a terminal cannot show would make it another command.
        click.echo("Once they are labelled:" if command.isprintable() else AFTERWARDS)
        if command.isprintable():
            click.echo(command)


def _width(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
