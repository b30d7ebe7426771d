"""What `rocketeval audit` prints beyond the audit itself, made for 80 columns.

Grading methods and scorers side by side, how far judges agree with each other, the judge's answers
next to reference answers to the same items, and the criteria that texts can be graded by.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rocketeval.cli.output import Output
from rocketeval.cli.text import make_console, make_table, printable, show_advice
from rocketeval.text import count_of, figure, share

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
    """Print a table for each kind of gold, what every method took, and which one to prefer."""
    console = make_console()
    rows = comparison.rows
    if any(row.agreement for row in rows):
        _show_votes(console, comparison)
    if any(row.labels for row in rows):
        _show_labels(console, rows)
    if any(row.ratings for row in rows):
        _show_ratings(console, rows)
    console.print(_costs(comparison))
    _say(console, _about(comparison))
    for row in rows:
        if row.note:
            _say(console, f"{row.name}: {row.note}.")
    for each in comparison.apart:
        _say(console, f"{each.name} is not compared: {each.reason.rstrip('.')}.")
    if comparison.advice is None:
        _say(console, "No votes, labels or ratings say which method to prefer.")
    else:
        _say(console, comparison.advice.told)


def _about(comparison: MethodComparison) -> str:
    some = count_of(comparison.responses, "response", "responses")
    told = f"All figures are about the {some} that every compared method scored."
    if comparison.left_out:
        told += f" {comparison.left_out:,} that some method did not score are left out."
    return told


def _show_votes(console: Console, comparison: MethodComparison) -> None:
    from rocketeval.audit.wording import ANOTHER_VOTER

    rows = [row for row in comparison.rows if row.agreement]
    agreement = rows[0].agreement
    assert agreement is not None
    if not agreement.used:
        votes = count_of(agreement.votes, "vote", "votes")
        _say(
            console,
            f"No agreement with votes: of {votes} none is about two responses that every compared "
            "method scored.",
        )
        return
    table = make_table(
        f"Agreement with {count_of(agreement.used, 'vote', 'votes')} "
        f"(tie margin {comparison.tie_margin:g})"
    )
    _columns(table, "with ties", "without ties", "above the first")
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
        _say(console, f"{more} about other responses.")


def _show_labels(console: Console, rows: Sequence[MethodFigures]) -> None:
    from rocketeval.audit.labels import LEVELS

    labelled = [(row.name, row.labels) for row in rows if row.labels]
    first = labelled[0][1]
    if not first.responses:
        _say(console, "No figure for labels: none is about a response that every method scored.")
        return
    size = count_of(first.responses, "labelled response", "labelled responses")
    levels = make_table(f"Spearman with {size}")
    _columns(levels, *(_level_name(first, level) for level in LEVELS))
    others = make_table("Over those responses")
    _columns(others, "Pearson", "Kendall", "RMSE")
    for name, found in labelled:
        levels.add_row(_name(name), *(_short(found.levels[each].spearman) for each in LEVELS))
        over = (found.pearson, found.kendall, found.rmse)
        others.add_row(_name(name), *map(_short, over))
    console.print(levels)
    console.print(others)
    # The same gap in several methods has one reason.
    reasons = {
        (level, found.levels[level].reason): name
        for name, found in reversed(labelled)
        for level in LEVELS
    }
    for (level, reason), name in reasons.items():
        if reason is not None:
            _say(console, f"No coefficient ({name}, {level}): {reason}.")


def _level_name(found: LabelCorrelation, level: str) -> str:
    from rocketeval.audit.labels import RESPONSES

    return level if level == RESPONSES else f"{level} ({found.levels[level].n})"


def _short(found: Interval | None) -> str:
    # Three figures that all reach below zero still fit 80 columns with the shorter joint.
    return figure(found, ".2f").replace(" to ", "..")


def _show_ratings(console: Console, rows: Sequence[MethodFigures]) -> None:
    rated = [(row.name, row.ratings) for row in rows if row.ratings]
    if all(found.reason for _, found in rated):
        _say(console, f"No figure for reference ratings: {rated[0][1].reason}.")
        return
    table = make_table("Order of the candidates against reference ratings")
    _columns(table, "Spearman", "Kendall", "candidates")
    for name, found in rated:
        coefficients = (found.spearman, found.kendall)
        shown = ["-" if each is None else f"{each.value:.2f}" for each in coefficients]
        table.add_row(_name(name), *shown, str(found.n))
    console.print(table)


def _costs(comparison: MethodComparison) -> Table:
    table = make_table("What it took")
    _columns(table, "requests", "prompt tokens", "written", "unanswered", "no score")
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


def _say(console: Console, sentence: str) -> None:
    console.print(printable(sentence), markup=False, highlight=False)


def show_reliability(found: JudgeReliability) -> None:
    """Print agreement on items and scores, what differs where, the orders, and what it means."""
    console = make_console()
    some = count_of(len(found.orders.candidates), "candidate", "candidates")
    console.print(f"The judges, and Spearman between their orders of {some}", style="italic")
    console.print(_judges(found))
    console.print(_agreement(found))
    console.print(_pairs(found))
    _show_counts(console, found)
    show_advice(console, "How far one judge can stand for another", found.advice)


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
    table = make_table("Item by item, two judges at a time")
    table.add_column("")
    for column in ("answers differ, %", "mean distance", "largest", "Cohen's kappa"):
        table.add_column(column, justify="right")
    numbers = {name: number for number, name in enumerate(found.judges, 1)}
    for pair in found.pairs:
        told = pair.items
        table.add_row(
            f"{numbers[pair.one]} / {numbers[pair.two]}",
            share(told.differing) if found.yes_no else "-",
            figure(told.difference, ".3f"),
            "-" if told.largest is None else f"{told.largest:.2f}",
            "-" if pair.kappa is None else _statistic(pair.kappa),
        )
    return table


def _show_counts(console: Console, found: JudgeReliability) -> None:
    candidates = len(found.orders.left_out)
    notes = (
        (found.responses, "response was", "responses were", "judged by all, by the same items"),
        (found.left_out, "response is", "responses are", "left out: not judged by all"),
        (found.other_items, "response is", "responses are", "left out: judged by other items"),
        (candidates, "candidate is", "candidates are", "in no order: some judge scored nothing"),
    )
    for number, one, many, what in notes:
        if number:
            console.print(f"{count_of(number, one, many)} {what}.", style="dim", highlight=False)


def _alpha(told: Reliability) -> str:
    return figure(told.alpha, ".2f") if told.alpha else f"none: {told.reason}"


def _variance(told: Reliability) -> str:
    return "-" if told.variance is None else f"{told.variance.value:.3f}"


def _statistic(told: Statistic) -> str:
    return f"{told.value:.2f}" if told.value is not None else f"none: {told.reason}"


def show_item_gold(found: ItemGold) -> None:
    """Print wrong answers, how far probabilities are chances, and last what it means."""
    console = make_console()
    console.print(_figures(found))
    if found.calibration.by_width.bins:
        console.print(_bins(found.calibration))
    _show_missing(console, found)
    show_advice(console, "How far to trust a yes", found.advice)


def _figures(found: ItemGold) -> Table:
    told = found.calibration
    items = count_of(told.items, "item", "items")
    table = make_table(f"{items} of {count_of(found.responses, 'response', 'responses')}")
    table.add_column("")
    table.add_column("figure", justify="right")
    rows = (
        ("yes more often than gold, points", share(told.yes_bias)),
        ("yes where gold says no, %", share(told.false_yes)),
        ("no where gold says yes, %", share(told.false_no)),
        ("higher p_yes where gold says yes (AUC)", figure(told.auc, ".2f")),
        ("squared distance from gold (Brier)", figure(told.brier, ".3f")),
        ("calibration error (ECE), bins below", _error(told.by_width.error)),
        ("calibration error, equally full bins", _error(told.by_count.error)),
    )
    for name, shown in rows:
        table.add_row(name, shown)
    return table


def _bins(told: Calibration) -> Table:
    table = make_table("Do its probabilities mean what they say?")
    for column in ("p_yes", "items", "mean p_yes, %", "gold says yes, %", ""):
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    for each in told.by_width.bins:
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
        (found.calibration.missing, "item with gold has", "items with gold have", "no answer"),
        (found.unjudged, "response with gold was", "responses with gold were", "not judged"),
        (found.unknown, "row is about a response", "rows are about responses", "not in the run"),
    )
    for number, one, many, what in notes:
        if number:
            console.print(f"{count_of(number, one, many)} {what}.", style="dim", highlight=False)


def show_scorers(found: ScorerComparison) -> None:
    """Print how each kind of scorer does on reference data it has not seen, and which to take."""
    from rocketeval.audit.compare_scorers import LabelFigures

    one = found.learn_from.removesuffix("s")
    about = count_of(found.queries, "query", "queries")
    table = make_table(f"Scorers on {count_of(found.gold, one, found.learn_from)}, {about}")
    table.add_column("kind")
    headings = ("Pearson", "Spearman", "RMSE")
    for heading in headings if one == "label" else ("with ties", "without ties"):
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
    console.print(table)
    console.print(_scorer_advice(found), highlight=False)
    console.print(
        f"{found.folds}-fold cross-validation; 95% intervals from resamples of the queries.",
        style="dim",
        highlight=False,
    )


def _scorer_advice(found: ScorerComparison) -> str:
    first = found.rows[0].kind
    if found.take == first:
        return f"Take {first}: no other is better by more than one standard error."
    return (
        f"Take {found.take}: the simplest of those within one standard error of the best, "
        f"and better than {first} by more."
    )


def list_criteria(grades: bool, output: Output) -> None:
    """Print the criteria that texts can be graded by, in four groups."""
    from rocketeval.criteria import criteria

    known = list(criteria().values())
    output.give({"criteria": known}, lambda: _show_criteria(known, grades))


def _show_criteria(known: list[Criterion], grades: bool) -> None:
    for group in dict.fromkeys(each.group for each in known):
        _show_group(group, [each for each in known if each.group == group], grades)


def _show_group(group: str, members: list[Criterion], grades: bool) -> None:
    table = make_table(group)
    table.add_column("criterion", no_wrap=True)
    table.add_column("what is graded")
    for member in members:
        table.add_row(member.name, member.definition)
        if grades:
            for grade, meaning in enumerate(member.grades, 1):
                table.add_row("", f"{grade}: {meaning}")
    make_console().print(table)
