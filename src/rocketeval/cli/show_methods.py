"""Grading methods side by side, as the command line prints them: at most 80 columns wide."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocketeval.audit.label_correlation import CANDIDATES, PER_QUERY, RESPONSES, LabelCorrelation
from rocketeval.audit.methods import MethodComparison, MethodFigures
from rocketeval.cli.tables import figure, make_console, make_table, share
from rocketeval.cli.words import printable
from rocketeval.names import counted
from rocketeval.records import Interval

LEVELS = (RESPONSES, PER_QUERY, CANDIDATES)


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
    some = counted(comparison.responses, "response", "responses")
    told = f"All figures are about the {some} that every compared method scored."
    if comparison.left_out:
        told += f" {comparison.left_out:,} that some method did not score are left out."
    return told


def _show_votes(console: Console, comparison: MethodComparison) -> None:
    rows = [row for row in comparison.rows if row.agreement]
    agreement = rows[0].agreement
    assert agreement is not None
    if not agreement.used:
        votes = counted(agreement.votes, "vote", "votes")
        _say(
            console,
            f"No agreement with votes: of {votes} none is about two responses that every compared "
            "method scored.",
        )
        return
    table = make_table(
        f"Agreement with {counted(agreement.used, 'vote', 'votes')} "
        f"(tie margin {comparison.tie_margin:g})"
    )
    _columns(table, "with ties", "without ties", "above the first")
    for row in rows:
        assert row.agreement is not None
        shown = (row.agreement.with_ties, row.agreement.without_ties, row.gain)
        table.add_row(_name(row.name), *map(share, shown))
    if comparison.voters:
        voters = comparison.voters
        table.add_row("another voter", share(voters.with_ties), share(voters.without_ties), "-")
    console.print(table)
    if agreement.unusable:
        more = counted(agreement.unusable, "more vote is", "more votes are")
        _say(console, f"{more} about other responses.")


def _show_labels(console: Console, rows: Sequence[MethodFigures]) -> None:
    labelled = [(row.name, row.labels) for row in rows if row.labels]
    first = labelled[0][1]
    if not first.responses:
        _say(console, "No figure for labels: none is about a response that every method scored.")
        return
    size = counted(first.responses, "labelled response", "labelled responses")
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
    return Text(printable(name))


def _say(console: Console, sentence: str) -> None:
    console.print(printable(sentence), markup=False, highlight=False)
