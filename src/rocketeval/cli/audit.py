"""The verb `audit`: agreement of the scores with reference data, laid out for 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.help import LISTS, codes, option, verb
from rocketeval.cli.labels import name_run, note_absent_file
from rocketeval.cli.options import Verb, with_settings
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.run_with_signals import INCOMPLETE, run_with_signals
from rocketeval.cli.text import make_console, make_table, show_advice
from rocketeval.text import NO_INTERVAL, chance, count_of, figure, printable, share

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rocketeval.audit.audit import Audit
    from rocketeval.audit.bias import Bias
    from rocketeval.audit.compare_scorers import ScorerComparison
    from rocketeval.audit.figures import Agreement
    from rocketeval.audit.item_gold import ItemGold
    from rocketeval.audit.labels import LabelCorrelation
    from rocketeval.audit.methods import MethodComparison
    from rocketeval.audit.votes import CategoryAgreement, MarginAgreement
    from rocketeval.cli.run import Typed
    from rocketeval.config import RunConfig
    from rocketeval.judges.reliability import JudgeReliability
    from rocketeval.scoring.split import RefusedGold
    from rocketeval.stats.correlation import Coefficient, Correlation


def show_audit(
    audit: Audit, scale: tuple[float, float] | None = None, typed: Typed | None = None
) -> None:
    """Print the conclusion, then the figures, then the details and advice.

    `scale` is that of scores and labels, if known; `typed` is the current command.
    """
    from rocketeval.audit.conclusion import conclusion

    console = make_console()
    console.print(printable(conclusion(audit)), highlight=False)
    console.print()
    if audit.agreement:
        _show_votes(console, audit)
    for part, methods in audit.labels.items():
        _show_labels(console, part, methods, scale)
    if audit.bias:
        _show_bias(console, audit.bias)
    _show_refused(audit.refused)
    if audit.ratings:
        console.print(f"Reference ratings: {_correlation(audit.ratings)}", highlight=False)
    advice = [text if typed is None else name_run(text, typed) for text in audit.advice]
    show_advice(console, "How far to trust this judge", advice)


def _show_votes(console: Console, audit: Audit) -> None:
    from rocketeval.audit.votes import JUDGE
    from rocketeval.audit.wording import DECIDED_NOTE, HARD_NOTE, pooled_note

    votes = audit.agreement[JUDGE]
    console.print(_vote_table(audit, votes))
    _note(console, DECIDED_NOTE)
    if any(HARD_NOTE.startswith(f"{method}:") for method in audit.agreement):
        _note(console, HARD_NOTE)
    if votes.unusable:
        unusable = count_of(votes.unusable, "vote", "votes")
        console.print(f"{unusable} could not be used: a score is missing, or a name is unknown.")
    if len(audit.categories) > 1:
        console.print(_category_table(audit.categories))
        _note(console, pooled_note(audit))
    if votes.used:
        console.print(_margin_table(audit.margins, audit.tie_margin))


def _vote_table(audit: Audit, votes: Agreement) -> Table:
    from rocketeval.audit.wording import ANOTHER_VOTER, UPPER_BOUND, method_name

    whole = f" of {votes.votes}" if votes.unusable else ""
    word = "vote" if votes.votes == 1 else "votes"
    table = make_table(f"Agreement with {votes.used}{whole} {word}")
    table.add_column("method")
    table.add_column("all votes, %", justify="right")
    table.add_column("decided votes, %", justify="right")
    for method, found in audit.agreement.items():
        fewer = f" ({count_of(found.used, 'vote', 'votes')})" if found.used < votes.used else ""
        shown = share(found.with_ties), share(found.without_ties)
        table.add_row(f"{method_name(method)}{fewer}", *shown)
    if audit.voters:
        shown = share(audit.voters.with_ties), share(audit.voters.without_ties)
        table.add_row(ANOTHER_VOTER, *shown)
        best = share(audit.voters.best_with_ties), share(audit.voters.best_without_ties)
        table.add_row(UPPER_BOUND, *best)
    return table


def _category_table(categories: Sequence[CategoryAgreement]) -> Table:
    from rich.text import Text

    table = make_table("By category, with human-human agreement")
    table.add_column("category", overflow="fold")
    for column in ("votes", "all, %", "humans, %", "decided, %", "humans, %"):
        table.add_column(column, justify="right", no_wrap=True)
    for part in categories:
        judge, voters = part.agreement, part.voters
        one, other = (voters.with_ties, voters.without_ties) if voters else (None, None)
        # A category has few votes: whole percent, and often no interval.
        figures = (share(f, ".0f") for f in (judge.with_ties, one, judge.without_ties, other))
        shown = (each.removesuffix(f" ({NO_INTERVAL})") for each in figures)
        table.add_row(Text(printable(part.category)), f"{judge.used:,}", *shown)
    return table


def _margin_table(margins: Sequence[MarginAgreement], used: float) -> Table:
    table = make_table("By tie margin (ranking.tie_margin)")
    for column in ("margin", "agreement, %", "tied by score, %", ""):
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    for row in margins:
        called = "-" if row.ties is None else f"{100 * row.ties:.1f}"
        table.add_row(f"{row.margin:g}", share(row.with_ties), called, row.mark(used))
    return table


def _show_bias(console: Console, bias: Bias) -> None:
    from rocketeval.audit.wording import bias_figures, bias_notes, bias_title

    table = make_table(bias_title(bias))
    for column in ("", "figure", "based on"):
        table.add_column(column, justify="right" if column == "figure" else "left", no_wrap=True)
    for found in bias_figures(bias):
        if found.unit == "share":
            table.add_row(f"{found.measure}, %", share(found.value), found.rests_on)
        else:
            table.add_row(found.measure, figure(found.value, ".2f"), found.rests_on)
    if table.row_count:
        console.print(table)
        for note in bias_notes(bias):
            _note(console, note)


def _show_labels(
    console: Console,
    part: str,
    methods: Mapping[str, LabelCorrelation],
    scale: tuple[float, float] | None,
) -> None:
    from rocketeval.audit.labels import LEVELS
    from rocketeval.audit.votes import JUDGE
    from rocketeval.audit.wording import LEVEL_NAMES, labels_of, level_note

    judge = methods[JUDGE]
    title = f"Correlation with {labels_of(part, judge.responses)}"
    console.print(_label_table(title, judge, {JUDGE: judge}))
    others = {method: found for method, found in methods.items() if method != JUDGE}
    if others:
        console.print(_label_table("Spearman of simpler scores", judge, others))
    distances = [
        f"{method} {figure(found.rmse, '.2f')}" for method, found in methods.items() if found.rmse
    ]
    if distances:
        labels = "label scale" if scale is None else f"label scale {scale[0]:g} to {scale[1]:g}"
        _note(console, f"RMSE on the {labels}: {', '.join(distances)}.")
    _note(console, level_note(judge))
    reasons = {judge.levels[level].reason: level for level in LEVELS}
    for reason, level in reasons.items():
        if reason is not None:
            _note(console, f"No coefficient ({LEVEL_NAMES[level]}): {reason}.")


def _label_table(
    title: str, judge: LabelCorrelation, methods: Mapping[str, LabelCorrelation]
) -> Table:
    """Return one row per coefficient of the judge, or per simpler score."""
    from rocketeval.audit.labels import LEVELS, RESPONSES
    from rocketeval.audit.votes import JUDGE
    from rocketeval.audit.wording import LEVEL_NAMES, level_rows

    table = make_table(title)
    table.add_column("")
    for level in LEVELS:
        size = "" if level == RESPONSES else f" ({judge.levels[level].n})"
        table.add_column(LEVEL_NAMES[level] + size, no_wrap=True)
    for method, name, cells in level_rows(methods):
        shown = (figure(cell, ".2f") for cell in cells)
        table.add_row(f"{method}, {name}" if method == JUDGE else method, *shown)
    return table


def _show_refused(refused: RefusedGold) -> None:
    """Print, in red, which reference data was refused."""
    for count, what in refused.counts:
        make_console(stderr=True).print(
            f"Refused: the scorer was fitted on {count} {what}, so comparing its scores with them "
            f"would overstate agreement. Audit it on other {what}, or fit a scorer in this run: "
            "its training data is then scored out-of-fold.",
            style="red",
            highlight=False,
        )


def _note(console: Console, sentence: str) -> None:
    if sentence:
        console.print(printable(sentence), style="dim", markup=False, highlight=False)


def _correlation(found: Correlation) -> str:
    if found.spearman is None or found.kendall is None:
        return f"no coefficient ({found.reason})"
    return (
        f"Spearman {_coefficient(found.spearman)}, Kendall {_coefficient(found.kendall)}, "
        f"{found.n} candidates"
    )


def _coefficient(found: Coefficient) -> str:
    bounds = found.interval
    reach = "" if bounds is None else f"{figure(bounds, '.2f').split('(')[-1].rstrip(')')}, "
    return f"{found.value:.2f} ({reach}{chance(found.p_value)})"


METHODS = {
    "checklist": "each item of the author's checklist, asked independently",
    "fixed": "six general questions, the same for every query",
    "sequential": "the checklist in order; the judge sees its earlier answers",
    "all_yes": "like sequential, but the prompt shows every earlier answer as Yes",
    "all_no": "like sequential, but the prompt shows every earlier answer as No",
    "direct": "a digit from 0 to 9: the expected value over the judge's probabilities",
    "reference": "like direct, but the prompt shows the query's reference response",
    "cot": "a written analysis, then a score from 1 to 10",
    "analysis": "like direct, but the prompt shows the analysis of a cot run, often another "
    "judge's; name the run with analysis:run=FOLDER",
    "multi_item": "the whole checklist in one prompt, the answers written out",
    "generic": "a grade from 1 to 5 for the quality in general",
    "criterion": "a grade from 1 to 5 for one criterion, given by name only",
    "rubric": "a grade from 1 to 5 for one criterion, with the meaning of each grade",
    "perplexity": "no question is asked: the judge's probability per token of the response, as a "
    "geometric mean",
}
"""Description of each grading method; kept here so that `--help` imports none of them."""
SCORERS = {
    "mean": "the mean of the judge's probabilities of yes (default)",
    "hard": "the share of items answered yes, without probabilities",
    "points": "weighted points over those that can be earned",
    "isotonic": "the mean, mapped to the level of the labels",
    "pooled_ridge": "one regression for all queries, fitted on labels",
    "extra_trees": "one forest per query, fitted on labels and blended with the mean; weight=none: "
    "not blended",
    "random_forest": "the same with another kind of tree",
    "pooled_logistic": "a model of which of two responses people prefer, fitted on votes",
    "select": "from a list of scorers, the first one nearly as good as the best (config only)",
}
"""Description of each scorer; kept here for the same reason."""


def _listed(described: Mapping[str, str]) -> str:
    """Return names and descriptions in two columns, for the help page."""
    width = max(map(len, described))
    return "\n".join(
        fill(f"  {name:<{width}}  {does}", 76, subsequent_indent=" " * (width + 4))
        for name, does in described.items()
    )


@dataclass(frozen=True, slots=True)
class AuditResults:
    """Results of one `audit` command; None for parts that were not requested."""

    audit: Audit | None = None
    """Agreement of the scores with reference data."""
    methods: MethodComparison | None = None
    reliability: JudgeReliability | None = None
    reference_answers: ItemGold | None = None
    scorers: ScorerComparison | None = None


def with_criteria(verb: Verb) -> Verb:
    """Add `--criteria`, which lists the criteria and needs no config."""

    @wraps(verb)
    def command(criteria: bool, grades: bool, **own: Any) -> Any:
        from rocketeval.cli.audit_tables import list_criteria

        if criteria:
            list_criteria(grades, Output(own["quiet"], own["as_json"]))
            return 0
        if grades:
            raise click.UsageError("--grades goes with --criteria.")
        return verb(**own)

    listing = option(
        "--criteria",
        is_flag=True,
        section=LISTS,
        help="List the criteria that the methods `criterion` and `rubric` accept.",
    )
    meaning = option(
        "--grades",
        is_flag=True,
        section=LISTS,
        help="With --criteria: also list the meaning of each grade.",
    )
    return listing(meaning(command))


@verb(
    epilog="\b\nMethods:\n"
    + _listed(METHODS)
    + "\n\n\b\nScorers:\n"
    + _listed(SCORERS)
    + "\n\n\b\n--methods takes METHOD or METHOD+SCORER, such as checklist+hard.\n"
    "Options follow a colon: rubric:criterion=fluency (see --criteria),\n"
    "checklist+extra_trees:weight=none.\n\n\b\n"
    "If `scorer.learn_from` is labels, --scorers all compares mean, isotonic,\n"
    "pooled_ridge and extra_trees; if it is votes, mean and pooled_logistic. The\n"
    "run's own scorer is added if it is fitted on data. If that scorer is select,\n"
    "the scorers it chooses from are added.",
    examples=[
        ("rocketeval audit", "how far to trust this judge"),
        ("rocketeval audit --methods checklist,direct,cot", "compare grading methods"),
        ("rocketeval audit --scorers all", "compare scorers"),
        ("rocketeval audit --against runs/large-judge", "compare two judges"),
    ],
    exit_codes=codes(2, 3, 4, 5, 6, 130),
    renamed={
        "--beside": "--against",
        "--among": "--scorers",
        "--item-gold": "--reference-answers",
    },
)
@with_criteria
@partial(
    with_settings,
    limit="Audit the run NAME-first-N, which `rocketeval run --limit N` made. With --methods, the "
    "first N queries are graded if they have not been graded yet.",
)
@option(
    "--methods",
    metavar="A,B,...",
    help="Also grade with these methods (see below), and compare them on the same reference data.",
)
@option(
    "--scorers",
    metavar="A,B,...",
    help="Compare these scorers, or `all` (see below), by cross-validation. Name simpler ones "
    "first: the first within one standard error of the best is recommended.",
)
@option(
    "--against",
    type=click.Path(path_type=Path, exists=True),
    multiple=True,
    metavar="RUN",
    help="Compare this run's judge with that of RUN, a run directory or config; repeatable.",
)
@option(
    "--reference-answers",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Compare the judge's answers with those in FILE: JSON lines of query_id, candidate and "
    "answers, a list of true, false or null (no reference), one per item.",
)
@with_output
def command(
    settings: RunConfig,
    methods: str | None,
    scorers: str | None,
    against: tuple[Path, ...],
    reference_answers: Path | None,
    output: Output,
) -> int:
    """Measure how far to trust the judge, against votes, labels and reference ratings.

    Compares the scores of CONFIG's run with reference data: votes (which of two responses is
    better), labels (a score per response) and reference ratings (one per candidate, such as arena
    Elo). Also shows trivial baselines (longer response, random guess) and human-human agreement.
    Sends no requests, except with --methods, which grades the benchmark once per method, each in
    its own subfolder of the run.
    """
    from rocketeval.cli.progress import make_observer
    from rocketeval.cli.run import Typed
    from rocketeval.evolve.apply_setup import as_graded
    from rocketeval.pipeline import Run

    run = Run(as_graded(settings), observer=make_observer(settings, quiet=output.quiet))
    run.store.command = Typed.now(settings).of_work("run")
    names = [name for name in (methods or "").split(",") if name.strip()]
    plain = not against and reference_answers is None and methods is None and scorers is None
    found = AuditResults(
        reliability=run.compare_judges(against) if against else None,
        reference_answers=None
        if reference_answers is None
        else run.hold_against_item_gold(reference_answers),
        methods=None
        if methods is None
        else run_with_signals(run, lambda: run.compare_methods(names)),
        scorers=None if scorers is None else run.compare_scorers(_kinds(scorers)),
        audit=run.audit() if plain else None,
    )
    output.give(found, lambda: _show(found, run.config))
    note_absent_file(run.config, output)
    missing = found.methods is not None and _show_missing(found.methods, output)
    return INCOMPLETE if missing else 0


def _kinds(scorers: str) -> list[str] | None:
    """Return the kinds that `--scorers` names; None for all."""
    kinds = [kind.strip() for kind in scorers.split(",") if kind.strip()]
    return None if kinds in ([], ["all"]) else kinds


def _show(found: AuditResults, config: RunConfig) -> None:
    from rocketeval.cli.audit_tables import (
        show_methods,
        show_reference_answers,
        show_reliability,
        show_scorers,
    )
    from rocketeval.cli.run import Typed

    if found.reliability is not None:
        show_reliability(found.reliability)
    if found.reference_answers is not None:
        show_reference_answers(found.reference_answers)
    if found.methods is not None:
        show_methods(found.methods)
    if found.scorers is not None:
        show_scorers(found.scorers)
    if found.audit is not None:
        show_audit(found.audit, config.scorer.scale, Typed.now(config))


def _show_missing(comparison: MethodComparison, output: Output) -> int:
    """Print methods with missing judgments to stderr; return how many there are."""
    refused = [each for each in comparison.apart if each.figures is None]
    if output.silent:
        for each in refused:
            click.echo(printable(f"{each.name} was not compared: {each.reason}"), err=True)
    apart = [each.figures for each in comparison.apart if each.figures is not None]
    gaps = [row for row in (*comparison.rows, *apart) if row.unfinished]
    for row in gaps:
        some = count_of(row.unfinished, "response", "responses")
        click.echo(
            printable(f"{row.name}: {some} could not be judged; run again to retry"), err=True
        )
    return len(refused) + len(gaps)
