"""What an author's lists were refused for, in a line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rocketeval.cli.words import printable
from rocketeval.names import counted

SHOWN_MISTAKES = 4


def told_refusals(refusals: Mapping[str, Any], *, steps: bool) -> Iterator[str]:
    """Yield how many lists were refused at first and the most frequent mistakes, in words."""
    one, many = ("step", "steps") if steps else ("list", "lists")
    if refusals["refused_at_first"]:
        mistakes = [
            f"{printable(mistake)} ({times:,})" for mistake, times in refusals["mistakes"].items()
        ]
        others = len(mistakes) - SHOWN_MISTAKES
        shown = ", ".join(mistakes[:SHOWN_MISTAKES])
        more = f", and {counted(others, 'other', 'others')}" if others > 0 else ""
        of = counted(refusals["lists"], one, many)
        yield f"{refusals['refused_at_first']:,} of {of} refused at first: {shown}{more}"
    if refusals["untold"]:
        untold = counted(refusals["untold"], one, many)
        yield f"{untold} paid for by an earlier version, which did not keep what was refused"
