"""Sentences that say what figures mean, as the command line prints them."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocketeval.cli.words import printable


def show_advice(console: Console, title: str, sentences: Sequence[str]) -> None:
    """Print the sentences under a title, each broken under its own first word."""
    if not sentences:
        return
    lines = Table.grid(padding=(0, 1))
    for sentence in sentences:
        lines.add_row("-", Text(printable(sentence)))
    console.print(title, style="italic")
    console.print(lines)
