"""`rocketeval advise` and `rocketeval estimate`: which responses to label, and what labels say."""

from __future__ import annotations

import math
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.options import LEVEL, describe_choice, same_choice, with_choice, with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import make_console, make_table, near, printable
from rocketeval.errors import ConfigError
from rocketeval.text import count_of, figure

if TYPE_CHECKING:
    from rocketeval.cli.run import Typed
    from rocketeval.compare.labeling import Advice, WantedLabel
    from rocketeval.compare.stage import Estimates, LabelScope
    from rocketeval.pipeline import Run


STDOUT = "-"
AFTERWARDS = "Once they are labelled: `rocketeval estimate`, with the same options."


@click.command("advise")
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
def advise(
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
    from rocketeval.cli.run import Typed

    if out is not None and out != STDOUT:
        _refuse_to_overwrite(Path(out), force)
    advice = run.advise(choice, more=more, seed=seed, level=level)
    if out is not None and out != STDOUT:
        Path(out).write_bytes(_lines(advice.wanted))
    if out == STDOUT and not output.as_json:
        click.echo(_lines(advice.wanted), nl=False)
        return
    typed = Typed.now(run.config)
    output.give(advice, lambda: _show_advice(advice, choice, typed, out))


def _refuse_to_overwrite(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise ConfigError(
            f"{path} exists already, and may hold labels that somebody wrote into it.",
            hint="Give another file, or --force to replace it.",
        )


def _lines(wanted: tuple[WantedLabel, ...]) -> bytes:
    import orjson

    return b"".join(orjson.dumps(asdict(row)) + b"\n" for row in wanted)


def _show_advice(advice: Advice, choice: LabelScope, typed: Typed, out: str | None) -> None:
    who = ", ".join(
        describe_choice(name, advice.target.against) for name in advice.target.candidates
    )
    click.echo(f"Mean label of {who}: {advice.labelled} of {advice.queries} queries are labelled")
    click.echo(f"{'labelled':>8}   {'width with scores':>17}   {'labels alone':>12}")
    for forecast in advice.forecasts:
        widths = _known(forecast.with_scores, ".2f"), _known(forecast.labels_only, ".2f")
        click.echo(f"{forecast.labelled:>8}   {widths[0]:>17}   {widths[1]:>12}")
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


@click.command("estimate")
@with_run
@with_choice(strata=1)
@LEVEL
@with_output
def estimate(run: Run, choice: LabelScope, level: float, output: Output) -> None:
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
    output.give(found, lambda: _show_estimates(found, level))


def _show_estimates(found: Estimates, level: float) -> None:
    from rich.text import Text

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
    from rocketeval.stats.prediction_powered import FEWEST_LABELS

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
