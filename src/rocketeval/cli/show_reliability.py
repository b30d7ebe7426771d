"""How far judges agree with each other, as the command line prints it: made for 80 columns."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocketeval.audit.kappa import Statistic
from rocketeval.audit.reliability import Reliability
from rocketeval.cli.show_advice import show_advice
from rocketeval.cli.tables import figure, make_console, make_table, share
from rocketeval.cli.words import printable
from rocketeval.names import counted
from rocketeval.stages.reliability import JudgeReliability


def show_reliability(found: JudgeReliability) -> None:
    """Print agreement on items and scores, what differs where, the orders, and what it means."""
    console = make_console()
    some = counted(len(found.orders.candidates), "candidate", "candidates")
    console.print(f"The judges, and Spearman between their orders of {some}", style="italic")
    console.print(_judges(found))
    console.print(_agreement(found))
    console.print(_pairs(found))
    _show_counts(console, found)
    show_advice(console, "How far one judge can stand for another", found.advice)


def _judges(found: JudgeReliability) -> Table:
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
            console.print(f"{counted(number, one, many)} {what}.", style="dim", highlight=False)


def _alpha(told: Reliability) -> str:
    return figure(told.alpha, ".2f") if told.alpha else f"none: {told.reason}"


def _variance(told: Reliability) -> str:
    return "-" if told.variance is None else f"{told.variance.value:.3f}"


def _statistic(told: Statistic) -> str:
    return f"{told.value:.2f}" if told.value is not None else f"none: {told.reason}"
