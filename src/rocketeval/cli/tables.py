"""Figures and tables as the command line prints them.

Sentences that say what figures mean, as the command line prints them.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING

import click

from rocketeval.cli.text import printable
from rocketeval.text import figure as figure
from rocketeval.text import share as share

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


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
