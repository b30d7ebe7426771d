"""One plain table, printed and, with --record, written to perf/recorded."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

RECORDED = Path(__file__).parents[1] / "recorded"


def render(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: the first column left-aligned, the others right-aligned."""
    table = [list(columns), *map(list, rows)]
    widths = [max(len(row[place]) for row in table) for place in range(len(columns))]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]


def add_record_option(parser: argparse.ArgumentParser) -> None:
    """Add the --record option."""
    parser.add_argument(
        "--record", metavar="NAME", help="also write the table to perf/recorded/NAME.txt"
    )


def show(lines: Sequence[str], record: str | None) -> None:
    """Print the lines; write them to perf/recorded if `record` names a file."""
    print("\n".join(lines), flush=True)
    if record is not None:
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / f"{record}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def progress(line: str) -> None:
    """Print a progress message to standard error."""
    print(line, file=sys.stderr, flush=True)
