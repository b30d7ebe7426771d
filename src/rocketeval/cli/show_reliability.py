"""How far judges agree with each other, as the command line prints it."""

from __future__ import annotations

from rich.table import Table

from rocketeval.audit.kappa import Statistic
from rocketeval.audit.reliability import Reliability
from rocketeval.cli.tables import figure, make_console, make_table, share
from rocketeval.stages.reliability import JudgeReliability


def show_reliability(found: JudgeReliability) -> None:
    """Print agreement on items and scores, what differs where, and the orders of candidates."""
    console = make_console()
    console.print(_agreement(found))
    console.print(_pairs(found))
    console.print(_orders(found))
    told = f"{found.responses} responses that all {len(found.judges)} judged by the same items."
    if found.left_out:
        told += f" {found.left_out} others are left out."
    console.print(told + " Judges that agree can still all be wrong.", highlight=False)


def _agreement(found: JudgeReliability) -> Table:
    table = make_table("Agreement between the judges")
    for column in ("", "Krippendorff's alpha", "Fleiss' kappa", "variance across judges"):
        table.add_column(column, justify="left" if not column else "right")
    for name, told in (("yes and no, item by item", found.items), ("scores", found.scores)):
        kappa = _statistic(told.fleiss) if told is found.items else "-"
        table.add_row(name, _alpha(told), kappa, figure(told.variance, ".3f"))
    return table


def _pairs(found: JudgeReliability) -> Table:
    table = make_table("Item by item, each two judges")
    table.add_column("")
    for column in ("answers differ, %", "mean difference", "largest", "Cohen's kappa"):
        table.add_column(column, justify="right")
    places = {name: place for place, name in enumerate(found.judges)}
    for name, told in found.pairs.items():
        one, two = next((a, b) for a in places for b in places if f"{a} / {b}" == name and a != b)
        kappa = found.items.cohen[places[one]][places[two]]
        largest = "-" if told.largest is None else f"{told.largest:.2f}"
        shown = (share(told.differing), figure(told.difference, ".3f"), largest)
        table.add_row(name, *shown, _statistic(kappa))
    return table


def _orders(found: JudgeReliability) -> Table:
    table = make_table("Spearman between their orders of the candidates")
    table.add_column("")
    for number in range(1, len(found.judges) + 1):
        table.add_column(str(number), justify="right")
    for number, (name, row) in enumerate(zip(found.judges, found.orders.cells, strict=True), 1):
        shown = []
        for place, cell in enumerate(row, 1):
            known = cell.spearman if place != number else None
            shown.append("-" if known is None else f"{known.value:.2f}")
        table.add_row(f"{number} {name}", *shown)
    return table


def _alpha(told: Reliability) -> str:
    return figure(told.alpha, ".2f") if told.alpha else f"none: {told.reason}"


def _statistic(told: Statistic) -> str:
    return f"{told.value:.2f}" if told.value is not None else f"none: {told.reason}"
