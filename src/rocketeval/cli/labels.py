"""`rocketeval labels`: choose responses to label, and estimate mean labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.help import VerbCommand, codes, option
from rocketeval.cli.options import LEVEL, Verb, with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import make_console, make_table, near, printable
from rocketeval.errors import ConfigError
from rocketeval.text import count_of, figure

if TYPE_CHECKING:
    from rocketeval.cli.run import Typed
    from rocketeval.compare.labeling import Advice, WantedLabel
    from rocketeval.compare.stage import Estimates, LabelScope
    from rocketeval.pipeline import Run
    from rocketeval.stats.prediction_powered import LabelTarget


STDOUT = "-"
AFTERWARDS = "After labeling: `rocketeval labels estimate`, with the same options."


_CANDIDATE = "Candidate to estimate; repeatable, all on the same queries."
_TOP = "Use the K best candidates of the ranking, instead of --candidate."


def with_scope(strata: int) -> Callable[[Verb], Verb]:
    """Add the options of a LabelScope, passed as `choice`; `strata` is the default."""

    options = (
        option("--candidate", "candidates", multiple=True, metavar="NAME", help=_CANDIDATE),
        option("--against", metavar="NAME", help="Estimate the difference to this candidate."),
        option("--top", type=click.IntRange(min=1), metavar="K", help=_TOP),
        option(
            "--strata",
            type=click.IntRange(min=1),
            default=strata,
            show_default=True,
            metavar="N",
            help="Number of groups of queries by score; the same for next and estimate.",
        ),
        option("--by-category", is_flag=True, help="Also group queries by category."),
    )

    def decorate(verb: Verb) -> Verb:
        @wraps(verb)
        def command(
            run: Run,
            candidates: tuple[str, ...],
            against: str | None,
            top: int | None,
            strata: int,
            by_category: bool,
            **own: Any,
        ) -> Any:
            from rocketeval.compare.stage import LabelScope

            return verb(run, LabelScope(candidates, top, against, strata, by_category), **own)

        wrapped: Verb = command
        for add in reversed(options):
            wrapped = add(wrapped)
        return wrapped

    return decorate


def describe_target(candidate: str, against: str | None) -> str:
    """Return a candidate, or a difference of two, to print."""
    return printable(candidate if against is None else f"{candidate} - {against}")


def target_options(choice: LabelScope, target: LabelTarget) -> list[str]:
    """Return the options that select the same target in another command."""
    words = [word for name in target.candidates for word in ("--candidate", name)]
    if choice.against is not None:
        words += ["--against", choice.against]
    words += ["--strata", str(choice.strata)]
    return words + ["--by-category"] * choice.by_category


class InOrder(click.Group):
    """A command group listed in the order of definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of definition."""
        return list(self.commands)


@click.group(cls=InOrder, subcommand_metavar="VERB ...", options_metavar="")
def command() -> None:
    """Choose responses for people to label, and estimate mean labels from a few of them.

    Labels are unbiased but few; the judge's scores are many but biased. Together they give an
    unbiased mean label of each candidate, with a narrower interval than the labels alone.
    """


@command.command(
    "next",
    cls=VerbCommand,
    examples=[
        ("rocketeval labels next --top 3 --out wanted.jsonl", "label the three best"),
        ("rocketeval labels next --candidate NEW --against OLD", "label two to compare"),
    ],
    exit_codes=codes(2, 5),
    renamed={"--more": "--queries"},
)
@with_run
@with_scope(strata=3)
@option(
    "--queries",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of queries to choose.",
)
@option(
    "--out",
    metavar="FILE",
    help="Write the labels to collect to FILE, as JSON lines; `-` prints them.",
)
@option("--force", is_flag=True, help="Replace an existing FILE.")
@option(
    "--seed", type=int, default=0, show_default=True, metavar="N", help="Seed of the random draw."
)
@LEVEL
@with_output
def choose_next(
    run: Run,
    choice: LabelScope,
    queries: int,
    out: str | None,
    force: bool,
    seed: int,
    level: float,
    output: Output,
) -> None:
    """Choose which responses to label next.

    Queries of CONFIG's run are drawn at random within groups by score, with more from groups where
    scores and labels differ most. The width of the interval after labeling is predicted.

    Label them in the given order, stop at any point, add the labels to the benchmark, run it again
    (finished judgments are reused), then use `rocketeval labels estimate` with the same options.
    """
    from rocketeval.cli.run import Typed

    if out is not None and out != STDOUT:
        _refuse_to_overwrite(Path(out), force)
    advice = run.advise(choice, more=queries, seed=seed, level=level)
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
            f"{path} already exists and may contain labels.",
            hint="Give another file, or --force to replace it.",
        )


def _lines(wanted: tuple[WantedLabel, ...]) -> bytes:
    import orjson

    return b"".join(orjson.dumps(asdict(row)) + b"\n" for row in wanted)


def _show_advice(advice: Advice, choice: LabelScope, typed: Typed, out: str | None) -> None:
    who = ", ".join(
        describe_target(name, advice.target.against) for name in advice.target.candidates
    )
    click.echo(f"Mean label of {who}: {advice.labelled} of {advice.queries} queries are labeled")
    click.echo(f"{'labeled':>8}   {'width with scores':>17}   {'labels alone':>12}")
    for forecast in advice.forecasts:
        widths = _known(forecast.with_scores, ".2f"), _known(forecast.labels_only, ".2f")
        click.echo(f"{forecast.labelled:>8}   {widths[0]:>17}   {widths[1]:>12}")
    if advice.assumed:
        click.echo("Too few labels to estimate: assumes labels vary like scores, correlation 0.5.")
    click.echo(f"Expected widths of {advice.level:.0%} intervals.")
    queries = len({row.query_id for row in advice.wanted})
    labels = count_of(len(advice.wanted), "label", "labels")
    chosen = f"{labels} on {count_of(queries, 'query', 'queries')}"
    if not advice.wanted:
        click.echo("Every query is labeled.")
    elif out is None:
        click.echo(f"Chosen: {chosen}. Write the list with --out FILE.")
    else:
        click.echo(f"Wrote {chosen}: {printable(near(Path(out)))}")
        command = typed.of_run("labels estimate", *target_options(choice, advice.target))
        # A command with control characters would change when it is copied.
        click.echo("After labeling:" if command.isprintable() else AFTERWARDS)
        if command.isprintable():
            click.echo(command)


@command.command(
    "estimate",
    cls=VerbCommand,
    examples=[
        ("rocketeval labels estimate", "all candidates with labels"),
        ("rocketeval labels estimate --candidate NEW --against OLD", "a difference"),
    ],
    exit_codes=codes(2, 5),
)
@with_run
@with_scope(strata=1)
@LEVEL
@with_output
def estimate(run: Run, choice: LabelScope, level: float, output: Output) -> None:
    """Estimate mean labels from a few labels and all scores.

    The estimate, for queries like those of CONFIG's run, is free of the judge's bias
    (prediction-powered inference). It is shown next to the estimate from labels alone, with the
    number of labels that would give the same precision alone.

    The labeled queries must be representative: drawn at random, or by `rocketeval labels next`. In
    the second case, give the same --candidate, --against, --top, --strata and --by-category.
    """
    found = run.estimate(choice, level=level)
    output.give(found, lambda: _show_estimates(found, level))


def _show_estimates(found: Estimates, level: float) -> None:
    from rich.text import Text

    table = make_table("Mean label")
    table.add_column("candidate", overflow="fold")
    for title in ("labeled", "with scores", "labels alone", "correlation", "width", "equals"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(
            Text(describe_target(row.candidate, row.against)),
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
        "width: of the interval with scores, relative to labels alone. equals: number of labels "
        "that would give the same precision without scores. "
        f"{level:.0%} intervals for the mean over queries like these, valid if the labeled "
        "queries are representative.",
        style="dim",
        highlight=False,
    )


def _known(value: float, digits: str) -> str:
    return "-" if math.isnan(value) else format(value, digits)


def _notes(found: Estimates) -> list[str]:
    from rocketeval.stats.prediction_powered import FEWEST_LABELS

    one_sided = count_of(found.half_labelled, "query has", "queries have")
    unscored = count_of(found.without_score, "labeled response has", "labeled responses have")
    foreign = count_of(found.not_in_run, "labeled response is", "labeled responses are")
    notes = {
        f"{one_sided} a label for only one candidate: not used.": found.half_labelled,
        f"{unscored} no score: not used.": found.without_score,
        f"{foreign} not in the run: not used.": found.not_in_run,
        f"No interval with fewer than {FEWEST_LABELS} labels, or if all labels are equal.": any(
            math.isnan(row.with_scores.low) for row in found.rows
        ),
        "The scores do not help if `equals` is less than the number of labels.": any(
            row.effective_labels < row.labelled for row in found.rows
        ),
        "The scorer learned from reference data. That is fine if it treats labeled and unlabeled "
        "queries alike; a scorer fitted per query does not.": found.learned,
    }
    return [note for note, applies in notes.items() if applies]
