"""Words that several verbs print, safe for any terminal.

Figures and tables as the command line prints them.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from rocketeval.records import Failure


def failed(failure: Failure) -> str:
    """Return what went wrong, and where, as one line."""
    where = f"{failure.candidate} on {failure.query_id}"
    return printable(f"failed: {where}: {failure.reason}")


def chance(p_value: float) -> str:
    """Return a p-value with the digits it has."""
    return "p < 0.001" if p_value < 0.001 else f"p {p_value:.3f}"


def clock(seconds: float) -> str:
    """Return a time as minutes and seconds, with hours when there are any."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def printable(name: str) -> str:
    """Return a name without control characters, which could rewrite the terminal."""
    return "".join(mark if mark.isprintable() else "\ufffd" for mark in name)


def printable_lines(text: str) -> str:
    """Return a text of several lines, each without control characters.

    >>> printable_lines("one\\ntwo\\x1b[2J")
    'one\\ntwo\ufffd[2J'
    """
    return "\n".join(map(printable, text.split("\n")))


def near(path: Path) -> str:
    """Return a path as a person would type it: from the working directory where it lies below."""
    here = Path.cwd()
    whole = here / path
    shorter = Path(os.path.normpath(whole))
    # Behind a link, `..` leads elsewhere than it looks.
    if shorter.resolve() == whole.resolve():
        whole = shorter
    return str(whole.relative_to(here) if whole.is_relative_to(here) else path)


def shown_path(path: Path) -> str:
    """Return a path for a terminal."""
    return printable(near(path))


def as_argument(path: Path) -> str:
    """Return a path for a command line, where it cannot be taken for an option."""
    text = near(path)
    return f"./{text}" if text.startswith("-") else text


PIPE_WIDTH = 1000


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that wraps for people and never for pipes, and takes text as it is.

    Names and texts come from anywhere: brackets in them are no markup, colons no emoji.
    """
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else PIPE_WIDTH
    return _console_class()(stderr=stderr, width=width, markup=False, emoji=False)


@cache
def _console_class() -> type[Console]:
    """Return the class of consoles; `rich` is imported only where something is printed."""
    from rich.console import Console

    class _Console(Console):
        def on_broken_pipe(self) -> None:
            """Leave it to the entry point, for every verb alike, that nobody reads any more."""
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    return _Console


def screen_width() -> int | None:
    """Return the columns of the terminal, less the last; None for a pipe, which has no end."""
    # Some terminals break a line when its last column is written to.
    return make_console().width - 1 if sys.stdout.isatty() else None


def make_table(title: str) -> Table:
    """Return an empty table without lines."""
    from rich.table import Table

    return Table(title=title, title_justify="left", box=None, pad_edge=False)


def show_pairs(pairs: Iterable[tuple[str, str]], indent: int) -> None:
    """Print a word and what there is to say of it, a line each, broken beside the word."""
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
    """Print a word and a command or a path beside it, which is never broken: it will be copied."""
    click.echo(f"{title:<{indent}}{printable(text)}")


def show_advice(console: Console, title: str, sentences: Sequence[str]) -> None:
    """Print the sentences under a title, each broken under its own first word."""
    from rich.table import Table
    from rich.text import Text

    if not sentences:
        return
    lines = Table.grid(padding=(0, 1))
    for sentence in sentences:
        lines.add_row("-", Text(printable(sentence)))
    console.print(title, style="italic")
    console.print(lines)


def brief(count: int) -> str:
    """Return a count in three digits or so.

    >>> brief(950), brief(12_345), brief(3_400_000)
    ('950', '12.3k', '3.4M')
    """
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        scaled = count / size
        if count >= 1000 and scaled >= 0.9995:
            return f"{scaled:.0f}{letter}" if scaled >= 99.95 else f"{scaled:.1f}{letter}"
    return str(count)


def brief_money(amount: float) -> str:
    """Return an amount in two or three digits.

    >>> brief_money(0.1234), brief_money(0.001234), brief_money(1234.5), brief_money(0.00001)
    ('0.12', '0.0012', '1,234', '<0.0001')
    """
    if amount >= 100:
        return f"{amount:,.0f}"
    if amount >= 0.1 or not amount:
        return f"{amount:.2f}"
    return f"{amount:.2g}" if amount >= 0.0001 else "<0.0001"
