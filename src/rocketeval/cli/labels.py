"""The verb `labels`: choose responses to label, and estimate mean labels."""

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
    from rocketeval.compare.labeling import Advice, WantedLabel, WantedVote
    from rocketeval.compare.stage import Estimates, LabelScope
    from rocketeval.pipeline import Run
    from rocketeval.stats.prediction_powered import LabelTarget


STDOUT = "-"
AFTERWARDS = "After labeling: `rocketeval labels estimate`, with the same options."


VOTE_IN_VIEW = "To vote in a browser: `rocketeval view --label CONFIG`."

_CANDIDATE = "Candidate to estimate; repeatable, all on the same queries."
_TOP = "Estimate the top K candidates of the ranking."


def with_scope(strata: int) -> Callable[[Verb], Verb]:
    """Add the options that select candidates; `strata` is the default number of groups."""

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
            help="Number of query groups by score; use the same for next and estimate.",
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
    """Return the candidate, or the difference of two, for a terminal."""
    return printable(candidate if against is None else f"{candidate} - {against}")


def same_choice(choice: LabelScope, target: LabelTarget) -> list[str]:
    """Return the options that select the same target in another verb."""
    words = [word for name in target.candidates for word in ("--candidate", name)]
    if choice.against is not None:
        words += ["--against", choice.against]
    words += ["--strata", str(choice.strata)]
    return words + ["--by-category"] * choice.by_category


class InOrder(click.Group):
    """A group that lists its commands in definition order."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in definition order."""
        return list(self.commands)


@click.group(cls=InOrder, subcommand_metavar="VERB ...", options_metavar="")
def command() -> None:
    """Choose responses for people to label, and estimate each candidate's mean label.

    A label is the score that a person gives a response; a candidate's mean label is the mean over
    all queries. Labels are correct but few; the judge's scores are many but biased. Together they
    give an unbiased mean label per candidate with a narrower interval than the labels alone.
    """


@command.command(
    "next",
    cls=VerbCommand,
    examples=[
        ("rocketeval labels next --top 3 --out wanted.jsonl", "the top three"),
        ("rocketeval labels next --candidate NEW --against OLD", "for a difference"),
        ("rocketeval labels next --top 3 --pairs", "pairs to vote on"),
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
    help="Number of queries, or pairs, to choose.",
)
@option(
    "--out",
    metavar="FILE",
    help="Write the responses to label to FILE as JSON lines; `-` prints them.",
)
@option("--pairs", is_flag=True, help="Choose N pairs of responses to vote on instead.")
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
    pairs: bool,
    force: bool,
    seed: int,
    level: float,
    output: Output,
) -> None:
    """Choose which responses to label next.

    Draws queries of CONFIG's run at random within groups by score, more where scores missed the
    labels most, and forecasts the width of the interval after labeling.

    Label them in the given order, stop at any point, add the labels to the benchmark, run it again
    (finished judgments are reused), then `rocketeval labels estimate` with the same options.
    """
    from rocketeval.cli.run import Typed

    if out is not None and out != STDOUT:
        _refuse_to_overwrite(Path(out), force)
    if pairs:
        _choose_pairs(run, choice, queries, out, seed, output)
        return
    advice = run.advise(choice, more=queries, seed=seed, level=level)
    if out is not None and out != STDOUT:
        Path(out).write_bytes(_lines(advice.wanted))
    if out == STDOUT and not output.as_json:
        click.echo(_lines(advice.wanted), nl=False)
        return
    typed = Typed.now(run.config)
    output.give(advice, lambda: _show_advice(advice, choice, typed, out))


def _choose_pairs(
    run: Run, choice: LabelScope, more: int, out: str | None, seed: int, output: Output
) -> None:
    from rocketeval.compare.stage import advise_pairs

    wanted = advise_pairs(run.store, run.config, choice, more, seed)
    if out is not None and out != STDOUT:
        Path(out).write_bytes(_lines(wanted))
    if out == STDOUT and not output.as_json:
        click.echo(_lines(wanted), nl=False)
        return
    chosen = f"{count_of(len(wanted), 'pair', 'pairs')} to vote on"
    where = "" if out is None else f", written to {printable(near(Path(out)))}"
    output.give(wanted, lambda: click.echo(f"Chosen: {chosen}{where}. {VOTE_IN_VIEW}"))


def _refuse_to_overwrite(path: Path, force: bool) -> None:
    if path.exists() and not force:
        raise ConfigError(
            f"{path} already exists and may contain labels.",
            hint="Choose another file, or use --force to replace it.",
        )


def _lines(wanted: tuple[WantedLabel, ...] | tuple[WantedVote, ...]) -> bytes:
    import orjson

    return b"".join(orjson.dumps(asdict(row)) + b"\n" for row in wanted)


def _show_advice(advice: Advice, choice: LabelScope, typed: Typed, out: str | None) -> None:
    who = ", ".join(
        describe_target(name, advice.target.against) for name in advice.target.candidates
    )
    make_console().print(_forecast_conclusion(advice, who), highlight=False)
    click.echo(f"\n{'labeled':>8}   {'width with scores':>17}   {'labels alone':>12}")
    for forecast in advice.forecasts:
        widths = _known(forecast.with_scores, ".2f"), _known(forecast.labels_only, ".2f")
        click.echo(f"{forecast.labelled:>8}   {widths[0]:>17}   {widths[1]:>12}")
    if advice.assumed:
        click.echo("Too few labels: assumes that labels vary like scores, correlation 0.5.")
    click.echo(f"Expected widths of {advice.level:.0%} intervals.")
    queries = len({row.query_id for row in advice.wanted})
    labels = count_of(len(advice.wanted), "label", "labels")
    chosen = f"{labels} on {count_of(queries, 'query', 'queries')}"
    if not advice.wanted:
        click.echo("Every query is labeled.")
    elif out is None:
        click.echo(f"Chosen: {chosen}; write them with --out FILE.")
    else:
        click.echo(f"Wrote {chosen}: {printable(near(Path(out)))}")
        command = typed.of_run("labels estimate", *same_choice(choice, advice.target))
        # A name with control characters would break the command.
        click.echo("After labeling:" if command.isprintable() else AFTERWARDS)
        if command.isprintable():
            click.echo(command)


def _forecast_conclusion(advice: Advice, who: str) -> str:
    labeled = (
        f"{advice.labelled} of {advice.queries} queries are labeled for the mean label of {who}."
    )
    now, *later = advice.forecasts
    chosen = len({row.query_id for row in advice.wanted})
    near_steps = [step for step in later if step.labelled - now.labelled <= chosen]
    steps = [step for step in near_steps if not math.isnan(step.with_scores)]
    if not steps:
        return labeled
    more, after = steps[-1].labelled - now.labelled, f"{steps[-1].with_scores:.2f}"
    before = "" if math.isnan(now.with_scores) else f" from {now.with_scores:.2f}"
    width = f"brings the expected width of the {advice.level:.0%} interval{before} to {after}"
    return f"{labeled} Labeling {more} more {width}."


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
    """Estimate each candidate's mean label from labels and scores.

    The estimate, for queries like those of CONFIG's run, is free of the judge's bias
    (prediction-powered inference). The table also has the estimate from labels alone, and how many
    labels alone would be as precise.

    The labeled queries must be a random sample, or chosen by `rocketeval labels next`; then give
    the same --candidate, --against, --top, --strata and --by-category.
    """
    found = run.estimate(choice, level=level)
    output.give(found, lambda: _show_estimates(found, level))


def _show_estimates(found: Estimates, level: float) -> None:
    from rich.text import Text

    table = make_table("Mean label")
    table.add_column("candidate", overflow="fold", min_width=9)
    for title in ("labels", "with scores", "labels alone", "corr.", "width", "equals"):
        table.add_column(title, justify="right", no_wrap=True)
    for row in found.rows:
        table.add_row(
            Text(describe_target(row.candidate, row.against)),
            f"{row.labelled}/{row.queries}",
            figure(row.with_scores, ".2f"),
            figure(row.labels_only, ".2f"),
            _known(row.correlation, ".2f"),
            _known(row.width_ratio, ".0%"),
            _known(row.effective_labels, ".0f"),
        )
    console = make_console()
    console.print(printable(_estimate_conclusion(found, level)), highlight=False)
    console.print()
    console.print(table, highlight=False)
    for note in _notes(found):
        console.print(note, highlight=False, markup=False)
    console.print(
        "labels: labeled queries of all queries. with scores: labels and judge scores together. "
        "corr.: correlation of labels and scores. width: width of the interval with scores, "
        "relative to labels alone. equals: number of labels that alone would be as precise. "
        f"{level:.0%} intervals for the mean over queries like these. They are valid if the "
        "labeled queries are a random sample.",
        style="dim",
        highlight=False,
    )


def _estimate_conclusion(found: Estimates, level: float) -> str:
    best = max(found.rows, key=lambda row: row.with_scores.value)
    interval = f"{figure(best.with_scores, '.2f')}, {level:.0%} interval"
    if best.against is None:
        return f"{best.candidate} has the highest estimated mean label: {interval}."
    low, high = best.with_scores.low, best.with_scores.high
    verdict = "significantly better than" if low > 0.0 else "tied with"
    verdict = "significantly worse than" if high < 0.0 else verdict
    if math.isnan(low):
        return f"Too few labels to compare {best.candidate} with {best.against}."
    difference = f"the estimated difference in mean label is {interval}"
    return f"{best.candidate} is {verdict} {best.against}: {difference}."


def _known(value: float, digits: str) -> str:
    return "-" if math.isnan(value) else format(value, digits)


def _notes(found: Estimates) -> list[str]:
    from rocketeval.stats.prediction_powered import FEWEST_LABELS

    unlabelled = count_of(found.half_labelled, "query has", "queries have")
    unscored = count_of(found.without_score, "labeled response has", "labeled responses have")
    foreign = count_of(found.not_in_run, "labeled response is", "labeled responses are")
    notes = {
        "All queries are labeled, so scores add nothing.": all(
            row.labelled == row.queries for row in found.rows
        ),
        f"{unlabelled} a label for only one candidate: not used.": found.half_labelled,
        f"{unscored} no score: not used.": found.without_score,
        f"{foreign} not in the run: not used.": found.not_in_run,
        f"No interval with fewer than {FEWEST_LABELS} labels or identical labels.": any(
            math.isnan(row.with_scores.low) for row in found.rows
        ),
        "The scores do not help if `equals` is below the number of labels.": any(
            row.effective_labels < row.labelled for row in found.rows
        ),
        "The scorer was fitted on reference data. That is valid if it treats labeled and unlabeled "
        "queries alike; a scorer fitted per query does not.": found.learned,
    }
    return [note for note, applies in notes.items() if applies]
