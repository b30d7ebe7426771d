"""How a checklist came about, as a table: where its questions are from and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
from rich.text import Text

from rocketeval.cli.tables import make_console, make_table
from rocketeval.cli.words import printable
from rocketeval.names import counted

_WHY = {
    "duplicate": "the same words",
    "alignment": "yes not better",
    "dimension": "other dimension",
    "redundancy": "redundant",
}
"""Reasons as the table heads them; a reason that nothing was dropped for gets no column."""


def show_composition(composition: Mapping[str, Any]) -> None:
    """Print a row for every sub-dimension, and all of them together."""
    rows = composition["counts"]
    dropped = {
        why: sum(row["dropped"][why] for row in rows)
        for why in _WHY
        if any(row["dropped"][why] for row in rows)
    }
    table = make_table("Questions by sub-dimension")
    table.add_column("dimension", overflow="fold")
    table.add_column("sub-dimension", overflow="fold")
    for title in ("seeds", "diversified", "elaborated", *(_WHY[why] for why in dropped), "kept"):
        table.add_column(title, justify="right")
    for row in rows:
        out = [_figure(row["dropped"][why]) for why in dropped]
        names = (Text(printable(row[name])) for name in ("dimension", "sub_dimension"))
        brought = (_figure(row[name]) for name in ("seeds", "diversified", "elaborated"))
        table.add_row(*names, *brought, *out, _figure(row["kept"]))
    sums = (sum(row[name] for row in rows) for name in ("seeds", "diversified", "elaborated"))
    kept = sum(row["kept"] for row in rows)
    table.add_row("all", "", *map(_figure, sums), *map(_figure, dropped.values()), _figure(kept))
    make_console().print(table)
    if composition["steps"]:
        asked = counted(composition["steps"], "step", "steps")
        click.echo(f"{asked} of the author, {composition['reused_steps']:,} paid for earlier")


def _figure(number: int) -> str:
    return f"{number:,}" if number else "-"
