"""Formatting of numbers, paths, tables and text for the terminal."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TextIO, cast

import click

from rocketeval.text import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rocketeval.judges.cascade import CascadeRow
    from rocketeval.ranking.rank import RankedCandidate
    from rocketeval.records import Failure


def failed(failure: Failure) -> str:
    """Return one line that names the candidate, the query and the reason."""
    where = f"{failure.candidate} on {failure.query_id}"
    return printable(f"failed: {where}: {failure.reason}")


def clock(seconds: float) -> str:
    """Format seconds as M:SS, or H:MM:SS from one hour."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def near(path: Path) -> str:
    """Return a path relative to the working directory if it lies below it."""
    here = Path.cwd()
    whole = here / path
    shorter = Path(os.path.normpath(whole))
    # Behind a symbolic link, `..` may lead elsewhere.
    if shorter.resolve() == whole.resolve():
        whole = shorter
    return str(whole.relative_to(here) if whole.is_relative_to(here) else path)


def shown_path(path: Path) -> str:
    """Return a path to print."""
    return printable(near(path))


def as_argument(path: Path) -> str:
    """Return a path for a command line that cannot be mistaken for an option."""
    text = near(path)
    return f"./{text}" if text.startswith("-") else text


PIPE_WIDTH = 1000
"""Columns of a pipe or file if $COLUMNS is not set: enough that nothing wraps."""


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that prints text verbatim, without markup or emoji codes.

    A terminal wraps at its own width. A pipe or file wraps at $COLUMNS if that is set, and its
    lines have no trailing spaces.
    """
    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return _console_class()(stderr=stderr, markup=False, emoji=False)
    trimmed = cast("IO[str]", _TrimmedStream(stream))
    width = _columns_set() or PIPE_WIDTH
    return _console_class()(file=trimmed, width=width, markup=False, emoji=False)


class _TrimmedStream:
    """A text stream that drops trailing spaces of every line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        self._stream.write(re.sub(r" +$", "", text, flags=re.MULTILINE))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _columns_set() -> int | None:
    """Return $COLUMNS; None if it is not set, or not a positive number."""
    columns = os.environ.get("COLUMNS", "")
    return int(columns) or None if columns.isdecimal() else None


@cache
def _console_class() -> type[Console]:
    """Return the console class; imports `rich` only when something is printed."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            """Let the entry point handle a closed pipe, in the same way for every verb."""
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    return _Console


def screen_width() -> int | None:
    """Return the usable columns; None for a pipe or file, unless $COLUMNS is set."""
    if not sys.stdout.isatty():
        return _columns_set()
    # Some terminals wrap a line when its last column is written.
    return make_console().width - 1


def make_table(title: str) -> Table:
    """Return an empty table without rules."""
    from rich.table import Table

    return Table(title=title, title_justify="left", box=None, pad_edge=False)


def show_pairs(pairs: Iterable[tuple[str, str]], indent: int) -> None:
    """Print one line per pair: a title of `indent` columns, and text wrapped next to it."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=0)
    table.add_column(no_wrap=True, width=indent)
    table.add_column(overflow="fold")
    for title, text in pairs:
        table.add_row(title, Text(printable(text)))
    for line in make_console().render_lines(table, pad=False):
        click.echo("".join(segment.text for segment in line).rstrip())


def show_whole(title: str, text: str, indent: int) -> None:
    """Print a title and a command or path, never wrapped, so that it can be copied."""
    click.echo(f"{title:<{indent}}{printable(text)}")


def say(console: Console, sentence: str) -> None:
    """Print a sentence without interpreting markup in it."""
    console.print(printable(sentence), markup=False, highlight=False)


def show_advice(console: Console, title: str, sentences: Sequence[str]) -> None:
    """Print sentences as a bulleted list under a title."""
    from rich.table import Table
    from rich.text import Text

    if not sentences:
        return
    lines = Table.grid(padding=(0, 1))
    for sentence in sentences:
        lines.add_row("-", Text(printable(sentence)))
    console.print(title, style="italic")
    console.print(lines)


def rank_text(row: RankedCandidate | CascadeRow) -> str:
    """Format a rank with its interval, unless that is one rank."""
    sure = row.rank_low == row.rank_high
    return str(row.rank) if sure else f"{row.rank} ({row.rank_low}-{row.rank_high})"


def brief(count: int) -> str:
    """Format a count with about three digits.

    >>> brief(950), brief(12_345), brief(3_400_000)
    ('950', '12.3k', '3.4M')
    """
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        scaled = count / size
        if count >= 1000 and scaled >= 0.9995:
            return f"{scaled:.0f}{letter}" if scaled >= 99.95 else f"{scaled:.1f}{letter}"
    return str(count)


def brief_money(amount: float) -> str:
    """Format an amount of money with two or three digits.

    >>> brief_money(0.1234), brief_money(0.001234), brief_money(1234.5), brief_money(0.00001)
    ('0.12', '0.0012', '1,234', '<0.0001')
    """
    if amount >= 100:
        return f"{amount:,.0f}"
    if amount >= 0.1 or not amount:
        return f"{amount:.2f}"
    return f"{amount:.2g}" if amount >= 0.0001 else "<0.0001"
