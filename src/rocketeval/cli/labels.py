"""The verb `labels`: choose responses to label, and estimate mean labels."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.help import VerbCommand, codes, option
from rocketeval.cli.options import DEFAULT_CONFIG, LEVEL, SEEDS, Verb, with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import make_console, make_table, near, shown_path
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.text import LABELS_NEXT, count_of, figure, percentage, printable

if TYPE_CHECKING:
    from rocketeval.cli.run import Typed
    from rocketeval.compare.labeling import Advice, RowToLabel, RowToVote
    from rocketeval.compare.stage import Estimates, LabelScope
    from rocketeval.config import RunConfig
    from rocketeval.pipeline import Run
    from rocketeval.stats.prediction_powered import Estimate, LabelTarget


STDOUT = "-"
_PLAIN = re.compile(r"[\w./][\w./-]*")
"""A file name that needs no quotes in YAML."""
AFTERWARDS = "After labeling: `rocketeval labels estimate`, with the same options."

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


def note_absent_file(config: RunConfig, output: Output) -> None:
    """Print a note to stderr if the file of collected labels does not exist."""
    from rocketeval.benchmarks.collected import absent_file

    for note in () if output.quiet else absent_file(config.benchmark.collected):
        click.echo(printable(f"Note: {note}"), err=True)


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
    "--seed", type=SEEDS, default=0, show_default=True, metavar="N", help="Seed of the random draw."
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

    Label them in the given order and stop at any point: fill in `value` in FILE, name FILE as
    `benchmark.collected` in the config, run it again (finished judgments are reused), then
    `rocketeval labels estimate` with the same options.
    """
    from rocketeval.cli.run import Typed
    from rocketeval.compare.labeling import rows_to_label

    refuse_to_overwrite(out, force)
    if pairs:
        _choose_pairs(run, choice, queries, out, seed, output)
        return
    advice = run.advise(choice, more=queries, seed=seed, level=level)
    if out is not None and _is_printed(
        as_lines(rows_to_label(run.store.inputs, advice.wanted)), out, output
    ):
        return
    typed = Typed.now(run.config)
    made = None if out is None else FileToFill.of_labels(Path(out), run.config, typed)
    output.give(advice, lambda: _show_advice(advice, choice, typed, made))
    note_absent_file(run.config, output)


def _choose_pairs(
    run: Run, choice: LabelScope, more: int, out: str | None, seed: int, output: Output
) -> None:
    from rocketeval.cli.run import Typed
    from rocketeval.compare.labeling import rows_to_vote
    from rocketeval.compare.stage import advise_pairs

    wanted = advise_pairs(run.store, run.config, choice, more, seed)
    if out is not None and _is_printed(
        as_lines(rows_to_vote(run.store.inputs, wanted)), out, output
    ):
        return
    typed = Typed.now(run.config)
    made = None if out is None else FileToFill.of_votes(Path(out), run.config, typed)
    chosen = f"{count_of(len(wanted), 'pair', 'pairs')} to vote on"
    output.give(wanted, lambda: _show_chosen(chosen if wanted else "", made))
    note_absent_file(run.config, output)


def _is_printed(lines: bytes, out: str, output: Output) -> bool:
    """Write or print the lines; return whether they are the output."""
    if out != STDOUT:
        Path(out).write_bytes(lines)
        return False
    if not output.as_json:
        click.echo(lines, nl=False)
    return not output.as_json


def _show_chosen(chosen: str, made: FileToFill | None) -> None:
    if not chosen:
        click.echo("Nothing is left to label.")
    elif made is None:
        click.echo(f"Chosen: {chosen}; write them with --out FILE.")
    else:
        made.show(chosen)


def _show_advice(advice: Advice, choice: LabelScope, typed: Typed, made: FileToFill | None) -> None:
    who = ", ".join(
        describe_target(name, advice.target.against) for name in advice.target.candidates
    )
    make_console().print(_forecast_conclusion(advice, who), highlight=False)
    click.echo(f"\n{'labeled queries':>15}   {'width with scores':>17}   {'labels alone':>12}")
    for forecast in advice.forecasts:
        widths = _known(forecast.with_scores, ".2f"), _known(forecast.labels_only, ".2f")
        click.echo(f"{forecast.labelled:>15}   {widths[0]:>17}   {widths[1]:>12}")
    if advice.assumed:
        click.echo("Too few labels: assumes that labels vary like scores, correlation 0.5.")
    click.echo(f"Expected widths of {percentage(advice.level)} intervals.")
    queries = len({row.query_id for row in advice.wanted})
    responses = count_of(len(advice.wanted), "response", "responses")
    chosen = f"{responses} to label on {count_of(queries, 'query', 'queries')}"
    _show_chosen(chosen if advice.wanted else "", made)
    if made is not None and advice.wanted:
        command = typed.of_run("labels estimate", *same_choice(choice, advice.target))
        # A name with control characters would break the command.
        click.echo("After labeling:" if command.isprintable() else AFTERWARDS)
        if command.isprintable():
            click.echo(command)


def _forecast_conclusion(advice: Advice, who: str) -> str:
    from rocketeval.stats.prediction_powered import FEWEST_LABELS

    labeled = (
        f"{advice.labelled} of {advice.queries} queries are labeled for the mean label of {who}."
    )
    now, *later = advice.forecasts
    chosen = len({row.query_id for row in advice.wanted})
    if chosen and advice.labelled + chosen < FEWEST_LABELS:
        needed = f"{labeled} An interval needs {FEWEST_LABELS} labeled queries"
        if advice.queries < FEWEST_LABELS:
            return f"{needed}: too few have scores."
        missing = FEWEST_LABELS - advice.labelled
        return f"{needed}, and these make {advice.labelled + chosen}: use --queries {missing}."
    near_steps = [step for step in later if step.labelled - now.labelled <= chosen]
    steps = [step for step in near_steps if not math.isnan(step.with_scores)]
    if not steps:
        return labeled
    more, after = steps[-1].labelled - now.labelled, f"{steps[-1].with_scores:.2f}"
    before = "" if math.isnan(now.with_scores) else f" from {now.with_scores:.2f}"
    wide = f"the expected width of the {percentage(advice.level)} interval"
    width = f"brings {wide}{before} to {after}"
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
    from rocketeval.cli.run import Typed

    try:
        found = run.estimate(choice, level=level)
    except BenchmarkError as error:
        hint = name_run(error.hint, Typed.now(run.config))
        raise type(error)(error.message, hint=hint) from None
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
    console.print(printable(estimate_conclusion(found, level)), highlight=False)
    console.print()
    console.print(table, highlight=False)
    for note in _notes(found):
        console.print(note, highlight=False, markup=False)
    console.print(
        "labels: labeled queries of all queries. with scores: labels and judge scores together. "
        "corr.: correlation of labels and scores. width: width of the interval with scores, "
        "relative to labels alone. equals: number of labels that alone would be as precise. "
        f"{percentage(level)} intervals for the mean over queries like these. They are valid if "
        "the labeled queries are a random sample.",
        style="dim",
        highlight=False,
    )


def estimate_conclusion(found: Estimates, level: float) -> str:
    """Return the estimate with its interval, or why there is none, in a sentence."""
    best = max(found.rows, key=lambda row: row.with_scores.value)
    known = not math.isnan(best.with_scores.low)
    interval = figure(best.with_scores, ".2f")
    interval += f", {percentage(level)} interval" if known else f", {_why_no_interval(best)}"
    if best.against is None:
        return f"{best.candidate} has the highest estimated mean label: {interval}."
    low, high = best.with_scores.low, best.with_scores.high
    verdict = "significantly better than" if low > 0.0 else "tied with"
    verdict = "significantly worse than" if high < 0.0 else verdict
    difference = f"the estimated difference in mean label is {interval}"
    if not known:
        return f"No verdict on {best.candidate} and {best.against}: {difference}."
    return f"{best.candidate} is {verdict} {best.against}: {difference}."


def _why_no_interval(row: Estimate) -> str:
    from rocketeval.stats.prediction_powered import FEWEST_LABELS

    if row.labelled < FEWEST_LABELS:
        labels = count_of(row.labelled, "label", "labels")
        return f"because there are {labels} and an interval needs {FEWEST_LABELS}"
    if row.against is None:
        return f"because all {row.labelled:,} labels are identical or of one cluster"
    same = f"the labels differ by the same amount on all {row.labelled:,} queries"
    return f"because {same}, or the queries are of one cluster"


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
        f"No interval with fewer than {FEWEST_LABELS} labels, identical ones or one cluster.": any(
            math.isnan(row.with_scores.low) for row in found.rows
        ),
        "The scores do not help if `equals` is below the number of labels.": any(
            row.effective_labels < row.labelled for row in found.rows
        ),
        "The scorer was fitted on reference data. That is valid if it treats labeled and unlabeled "
        "queries alike; a scorer fitted per query does not.": found.learned,
    }
    return [note for note, applies in notes.items() if applies]


def refuse_to_overwrite(out: str | None, force: bool) -> None:
    """Raise ConfigError if the file exists, unless it may be replaced."""
    if out not in (None, STDOUT) and Path(str(out)).exists() and not force:
        raise ConfigError(
            f"{out} already exists and may contain labels.",
            hint="Choose another file, or use --force to replace it.",
        )


def as_lines(rows: Iterable[RowToLabel | RowToVote]) -> bytes:
    """Return the rows as JSON lines; an empty conversation history is left out."""
    import orjson

    values = map(asdict, rows)
    kept = ({k: v for k, v in row.items() if k != "history" or v} for row in values)
    return b"".join(orjson.dumps(row) + b"\n" for row in kept)


def name_run(text: str, typed: Typed) -> str:
    """Replace the bare `labels next` of a library message by the command for the same run."""
    from rocketeval.cli.run import WANTED

    command = typed.of_run("labels next", "--top", "2", "--out", WANTED)
    return text.replace(LABELS_NEXT, f"`{command}`") if command.isprintable() else text


@dataclass(frozen=True, slots=True)
class FileToFill:
    """A written file, and how its labels get into the run."""

    path: Path
    field: str
    """The field to fill in."""
    values: str
    """The values that the field can have, in words."""
    collected: Path | None
    """The file that the config reads labels from."""
    typed: Typed
    """The current command."""

    @classmethod
    def of_labels(cls, path: Path, config: RunConfig, typed: Typed) -> FileToFill:
        """Return a file of responses to label."""
        low, high = config.scorer.scale
        return cls(path, "value", f"{low:g} to {high:g}", config.benchmark.collected, typed)

    @classmethod
    def of_votes(cls, path: Path, config: RunConfig, typed: Typed) -> FileToFill:
        """Return a file of pairs to vote on."""
        return cls(path, "winner", "a, b or tie", config.benchmark.collected, typed)

    def show(self, written: str) -> None:
        """Print what was `written`, and the steps until the labels are used."""
        click.echo(f"Wrote {written}: {shown_path(self.path)}")
        for number, step in enumerate(self._steps(), 1):
            click.echo(f"{number}. {step}")

    def _steps(self) -> Iterator[str]:
        config = Path(self.typed.config or DEFAULT_CONFIG)
        config = config / "run.yaml" if config.is_dir() else config
        path, folder = self.path.absolute(), config.absolute().parent
        yield f"Fill in `{self.field}` ({self.values}) in the file; what stays null is not used."
        if self.collected is None:
            name = str(path.relative_to(folder) if path.is_relative_to(folder) else path)
            text = name if _PLAIN.fullmatch(name) else json.dumps(name, ensure_ascii=False)
            line = f"`collected: {printable(text)}`"
            yield f"In {shown_path(config)}, add the line {line} under `benchmark:`."
        elif path != self.collected.absolute():
            read = printable(near(self.collected))
            yield f"Add its lines to {read}, which {shown_path(config)} names as `collected`."
        command = self.typed.of_work("run")
        again = "Run again; finished judgments are reused"
        yield f"{again}: {command}" if command.isprintable() else f"{again}."
