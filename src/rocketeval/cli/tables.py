"""Figures and tables as the command line prints them."""

from __future__ import annotations

import math
import sys

from rich.console import Console
from rich.table import Table

from rocketeval.records import Interval

PIPE_WIDTH = 1000


def make_console() -> Console:
    """Return a console that wraps for people and never for pipes."""
    return Console() if sys.stdout.isatty() else Console(width=PIPE_WIDTH)


def make_table(title: str) -> Table:
    """Return an empty table without lines."""
    return Table(title=title, title_justify="left", box=None, pad_edge=False)


def figure(interval: Interval | None, digits: str) -> str:
    """Return `value (low to high)`, or a dash."""
    if interval is None:
        return "-"
    value, low, high = (_number(x, digits) for x in (interval.value, interval.low, interval.high))
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return f"{value} (unknown)"
    if low == high:
        return value
    joint = " to " if interval.low < 0 else "-"
    return f"{value} ({low}{joint}{high})"


def _number(value: float, digits: str) -> str:
    """Return a number; what rounds to zero has no sign."""
    shown = format(value, digits)
    return shown.lstrip("-") if math.isfinite(value) and float(shown) == 0.0 else shown


def share(interval: Interval | None) -> str:
    """Return a share in percent, with its interval."""
    if interval is None:
        return "-"
    return figure(
        Interval(*(100 * x for x in (interval.value, interval.low, interval.high))), ".1f"
    )
