"""Tables of `rocketeval audit` with options, laid out for 80 columns.

Comparisons of grading methods, scorers and judges, the judge's answers against reference answers,
and the list of criteria.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocketeval.cli.output import Output
from rocketeval.cli.text import make_console, make_table, say, show_advice
from rocketeval.text import count_of, figure, printable, share

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from rocketeval.audit.calibration import Calibration
    from rocketeval.audit.compare_scorers import ScorerComparison
    from rocketeval.audit.item_gold import ItemGold
    from rocketeval.audit.labels import LabelCorrelation
    from rocketeval.audit.methods import MethodComparison, MethodFigures
    from rocketeval.criteria import Criterion
    from rocketeval.judges.reliability import JudgeReliability
    from rocketeval.records import Interval
    from rocketeval.stats.agreement import Reliability, Statistic


def show_methods(comparison: MethodComparison) -> None:
    """Print which method to prefer, then the figures and the cost of each method."""
    console = make_console()
    rows = comparison.rows
    if comparison.advice is None:
        say(console, "No method can be preferred: there are no votes, labels or ratings.")
    else:
        say(console, comparison.advice.told)
    console.print()
    if any(row.agreement for row in rows):
        _show_votes(console, comparison)
    if any(row.labels for row in rows):
        _show_labels(console, rows)
    if any(row.ratings for row in rows):
        _show_ratings(console, rows)
    console.print(_costs(comparison))
    say(console, _about(comparison))
    for row in rows:
        if row.note:
            say(console, f"{row.name}: {row.note}.")
    for each in comparison.apart:
        say(console, f"{each.name} was not compared: {each.reason.rstrip('.')}.")


def _about(comparison: MethodComparison) -> str:
    some = count_of(comparison.responses, "response", "responses")
    text = f"All figures are for the {some} that every compared method scored."
    if comparison.left_out:
        text += f" {comparison.left_out:,} that some method did not score are left out."
    return text


def _show_votes(console: Console, comparison: MethodComparison) -> None:
    from rocketeval.audit.wording import ANOTHER_VOTER

    rows = [row for row in comparison.rows if row.agreement]
    agreement = rows[0].agreement
    assert agreement is not None
    if not agreement.used:
        votes = count_of(agreement.votes, "vote", "votes")
        say(
            console,
            f"No agreement with votes: none of {votes} compares two responses that every method "
            "scored.",
        )
        return
    table = make_table(
        f"Agreement with {count_of(agreement.used, 'vote', 'votes')} "
        f"(tie margin {comparison.tie_margin:g})"
    )
    _columns(table, "all votes, %", "decided votes, %", "minus the first")
    for row in rows:
        assert row.agreement is not None
        shown = (row.agreement.with_ties, row.agreement.without_ties, row.gain)
        table.add_row(_name(row.name), *map(share, shown))
    if comparison.voters:
        voters = comparison.voters
        table.add_row(ANOTHER_VOTER, share(voters.with_ties), share(voters.without_ties), "-")
    console.print(table)
    if agreement.unusable:
        more = count_of(agreement.unusable, "more vote is", "more votes are")
        say(console, f"{more} on other responses.")


def _show_labels(console: Console, rows: Sequence[MethodFigures]) -> None:
    from rocketeval.audit.labels import LEVELS
    from rocketeval.audit.wording import LEVEL_NAMES

    labelled = [(row.name, row.labels) for row in rows if row.labels]
    first = labelled[0][1]
    if not first.responses:
        say(console, "No figure for labels: no labeled response was scored by every method.")
        return
    size = count_of(first.responses, "labeled response", "labeled responses")
    levels = make_table(f"Spearman with {size}")
    _columns(levels, *(_level_name(first, level) for level in LEVELS))
    others = make_table("On the same responses")
    _columns(others, "Pearson", "Kendall", "RMSE")
    for name, found in labelled:
        levels.add_row(_name(name), *(_short(found.levels[each].spearman) for each in LEVELS))
        over = (found.pearson, found.kendall, found.rmse)
        others.add_row(_name(name), *map(_short, over))
    console.print(levels)
    console.print(others)
    # Print a reason once if several methods share it.
    reasons = {
        (level, found.levels[level].reason): name
        for name, found in reversed(labelled)
        for level in LEVELS
    }
    for (level, reason), name in reasons.items():
        if reason is not None:
            say(console, f"No coefficient ({name}, {LEVEL_NAMES[level]}): {reason}.")


def _level_name(found: LabelCorrelation, level: str) -> str:
    from rocketeval.audit.labels import RESPONSES
    from rocketeval.audit.wording import LEVEL_NAMES

    name = LEVEL_NAMES[level]
    return name if level == RESPONSES else f"{name} ({found.levels[level].n})"


def _short(found: Interval | None) -> str:
    return figure(found, ".2f")


def _show_ratings(console: Console, rows: Sequence[MethodFigures]) -> None:
    rated = [(row.name, row.ratings) for row in rows if row.ratings]
    if all(found.reason for _, found in rated):
        say(console, f"No correlation with reference ratings: {rated[0][1].reason}.")
        return
    table = make_table("Correlation of the ranking with reference ratings")
    _columns(table, "Spearman", "Kendall", "candidates")
    for name, found in rated:
        coefficients = (found.spearman, found.kendall)
        shown = ["-" if each is None else f"{each.value:.2f}" for each in coefficients]
        table.add_row(_name(name), *shown, str(found.n))
    console.print(table)


def _costs(comparison: MethodComparison) -> Table:
    table = make_table("Cost")
    _columns(table, "requests", "prompt tokens", "output", "unanswered", "no score")
    apart = (each.figures for each in comparison.apart)
    for row in (*comparison.rows, *apart):
        if row is not None and row.usage:
            usage = row.usage
            numbers = (usage.requests, usage.prompt_tokens, usage.completion_tokens)
            counts = (*numbers, row.unanswered, row.unscored)
            table.add_row(_name(row.name), *(f"{number:,}" for number in counts))
    return table


def _columns(table: Table, *names: str) -> None:
    table.add_column("method", overflow="fold")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)


def _name(name: str) -> Text:
    from rich.text import Text

    return Text(printable(name))


def show_reliability(found: JudgeReliability) -> None:
    """Print the conclusion, then the rankings, the agreement and the differences of judges."""
    console = make_console()
    some = count_of(len(found.orders.candidates), "candidate", "candidates")
    _show_first(console, found.advice)
    console.print(f"Judges, and Spearman between their rankings of {some}", style="italic")
    console.print(_judges(found))
    console.print(_agreement(found))
    console.print(_pairs(found))
    _show_counts(console, found)
    show_advice(console, "How far one judge can replace another", found.advice[1:])


def _judges(found: JudgeReliability) -> Table:
    from rich.text import Text

    table = make_table("")
    table.add_column("")
    table.add_column("judge", overflow="fold")
    numbers = range(1, len(found.judges) + 1)
    for number in numbers:
        table.add_column(str(number), justify="right", no_wrap=True)
    for number, name, row in zip(numbers, found.judges, found.orders.cells, strict=True):
        known = (cell.spearman for cell in row)
        shown = ["-" if each is None else f"{each.value:.2f}" for each in known]
        shown[number - 1] = ""
        table.add_row(str(number), Text(printable(name)), *shown)
    return table


def _agreement(found: JudgeReliability) -> Table:
    table = make_table("Agreement between the judges")
    for column in ("", "Krippendorff's alpha", "Fleiss' kappa", "variance"):
        table.add_column(column, justify="right" if column else "left")
    kappa = _statistic(found.items.fleiss) if found.yes_no else "-"
    what = "yes and no" if found.yes_no else "grades from 0 to 1"
    table.add_row(f"{what}, item by item", _alpha(found.items), kappa, _variance(found.items))
    table.add_row("scores", _alpha(found.scores), "-", _variance(found.scores))
    return table


def _pairs(found: JudgeReliability) -> Table:
    table = make_table("Item by item, per pair of judges")
    table.add_column("")
    for column in ("answers differ, %", "mean difference", "largest", "Cohen's kappa"):
        table.add_column(column, justify="right")
    numbers = {name: number for number, name in enumerate(found.judges, 1)}
    for pair in found.pairs:
        items = pair.items
        table.add_row(
            f"{numbers[pair.one]} / {numbers[pair.two]}",
            share(items.differing) if found.yes_no else "-",
            figure(items.difference, ".3f"),
            "-" if items.largest is None else f"{items.largest:.2f}",
            "-" if pair.kappa is None else _statistic(pair.kappa),
        )
    return table


def _show_counts(console: Console, found: JudgeReliability) -> None:
    candidates = len(found.orders.left_out)
    notes = (
        (
            found.responses,
            "response was",
            "responses were",
            "judged by all judges with the same items",
        ),
        (found.left_out, "response is", "responses are", "left out: not judged by all judges"),
        (
            found.other_items,
            "response is",
            "responses are",
            "left out: judged with different items",
        ),
        (
            candidates,
            "candidate is",
            "candidates are",
            "left out of the rankings: not scored by every judge",
        ),
    )
    for number, one, many, what in notes:
        if number:
            console.print(f"{count_of(number, one, many)} {what}.", style="dim", highlight=False)


def _alpha(found: Reliability) -> str:
    return figure(found.alpha, ".2f") if found.alpha else f"none: {found.reason}"


def _variance(found: Reliability) -> str:
    return "-" if found.variance is None else f"{found.variance.value:.3f}"


def _statistic(found: Statistic) -> str:
    return f"{found.value:.2f}" if found.value is not None else f"none: {found.reason}"


def _show_first(console: Console, advice: Sequence[str]) -> None:
    """Print the first sentence of the advice as a paragraph."""
    if advice:
        say(console, advice[0])
        console.print()


def show_reference_answers(found: ItemGold) -> None:
    """Print the conclusion, then error rates, calibration and advice."""
    console = make_console()
    _show_first(console, found.advice)
    console.print(_figures(found))
    if found.calibration.by_width.bins:
        console.print(_bins(found.calibration))
    _show_missing(console, found)
    show_advice(console, "How far to trust a yes", found.advice[1:])


def _figures(found: ItemGold) -> Table:
    figures = found.calibration
    items = count_of(figures.items, "item", "items")
    table = make_table(f"{items} of {count_of(found.responses, 'response', 'responses')}")
    table.add_column("")
    table.add_column("figure", justify="right")
    rows = (
        ("share of yes minus reference, points", share(figures.yes_bias)),
        ("yes where the reference is no, %", share(figures.false_yes)),
        ("no where the reference is yes, %", share(figures.false_no)),
        ("AUC", figure(figures.auc, ".2f")),
        ("Brier score", figure(figures.brier, ".3f")),
        ("calibration error (ECE), bins below", _error(figures.by_width.error)),
        ("calibration error (ECE), equal-count bins", _error(figures.by_count.error)),
    )
    for name, shown in rows:
        table.add_row(name, shown)
    return table


def _bins(found: Calibration) -> Table:
    table = make_table("Calibration of its probabilities")
    for column in ("p_yes", "items", "mean p_yes, %", "reference yes, %", ""):
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    for each in found.by_width.bins:
        table.add_row(
            f"{each.low:.1f}-{each.high:.1f}",
            f"{each.items:,}",
            f"{100 * each.mean_p:.1f}",
            share(each.gold),
            _mark(each.mean_p, each.gold),
        )
    return table


def _mark(mean_p: float, gold: Interval) -> str:
    if mean_p > gold.high:
        return "too high"
    return "too low" if mean_p < gold.low else ""


def _error(error: float | None) -> str:
    return "-" if error is None else f"{error:.3f}"


def _show_missing(console: Console, found: ItemGold) -> None:
    notes = (
        (found.calibration.missing, "item has", "items have", "a reference but no answer"),
        (
            found.unjudged,
            "response with a reference was",
            "responses with a reference were",
            "not judged",
        ),
        (found.unknown, "row is for a response", "rows are for responses", "not in the run"),
    )
    for number, one, many, what in notes:
        if number:
            console.print(f"{count_of(number, one, many)} {what}.", style="dim", highlight=False)


def show_scorers(found: ScorerComparison) -> None:
    """Print which scorer to use, then the figures of each kind on held-out reference data."""
    from rocketeval.audit.compare_scorers import LabelFigures

    one = found.learn_from.removesuffix("s")
    about = count_of(found.queries, "query", "queries")
    table = make_table(f"Scorers on {count_of(found.gold, one, found.learn_from)}, {about}")
    table.add_column("kind", overflow="fold")
    headings = ("Pearson", "Spearman", "RMSE")
    for heading in headings if one == "label" else ("all votes, %", "decided votes, %"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("chosen", justify="right")
    for row in found.rows:
        figures = (
            [figure(row.pearson, ".2f"), figure(row.spearman, ".2f"), figure(row.rmse, ".2f")]
            if isinstance(row, LabelFigures)
            else [share(row.with_ties), share(row.without_ties)]
        )
        times = "-" if row.chosen is None else f"{row.chosen} of {found.folds}"
        table.add_row(row.kind, *figures, times)
    console = make_console()
    console.print(_scorer_advice(found), highlight=False)
    console.print()
    console.print(table)
    console.print(
        f"{found.folds}-fold cross-validation; 95% intervals from resamples of the queries.",
        style="dim",
        highlight=False,
    )


def _scorer_advice(found: ScorerComparison) -> str:
    first = found.rows[0].kind
    if found.take == first:
        return f"Use {first}: no other kind is better by more than one standard error."
    return (
        f"Use {found.take}: it is the simplest kind within one standard error of the best, and "
        f"{first} is not."
    )


def list_criteria(grades: bool, output: Output) -> None:
    """Print the criteria for grading, by group."""
    from rocketeval.criteria import criteria

    known = list(criteria().values())
    output.give({"criteria": known}, lambda: _show_criteria(known, grades))


def _show_criteria(known: list[Criterion], grades: bool) -> None:
    for group in dict.fromkeys(each.group for each in known):
        _show_group(group, [each for each in known if each.group == group], grades)


def _show_group(group: str, members: list[Criterion], grades: bool) -> None:
    table = make_table(group)
    table.add_column("criterion", no_wrap=True)
    table.add_column("definition")
    for member in members:
        table.add_row(member.name, member.definition)
        if grades:
            for grade, meaning in enumerate(member.grades, 1):
                table.add_row("", f"{grade}: {meaning}")
    make_console().print(table)
