"""The judge's answers beside gold answers to the same items, as the command line prints them."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from rocketeval.audit.calibration import Calibration
from rocketeval.cli.show_advice import show_advice
from rocketeval.cli.tables import figure, make_console, make_table, share
from rocketeval.names import counted
from rocketeval.records import Interval
from rocketeval.stages.item_gold import ItemGold


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
    items = counted(told.items, "item", "items")
    table = make_table(f"{items} of {counted(found.responses, 'response', 'responses')}")
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
            console.print(f"{counted(number, one, many)} {what}.", style="dim", highlight=False)
