"""Words that several verbs print, safe for any terminal."""

from __future__ import annotations

import os
from pathlib import Path

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
