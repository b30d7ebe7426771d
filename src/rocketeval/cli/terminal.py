"""What the place that output goes to can show: which marks, and whether lines can be redrawn."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TextIO

from rich.cells import cell_len, set_cell_size


@dataclass(frozen=True, slots=True)
class Marks:
    """The marks that drawings are made of."""

    full: str
    """A finished part of a bar."""
    empty: str
    cut: str
    """Stands for the middle of a name that is too long."""
    top: str
    """The first line of a bracket."""
    middle: str
    bottom: str
    left: str
    """The lower end of an interval."""
    line: str
    point: str
    right: str
    good: str
    bad: str
    arrow: str


FANCY = Marks(
    full="\u2501",
    empty="\u2500",
    cut="\u2026",
    top="\u250c",
    middle="\u2502",
    bottom="\u2514",
    left="\u251c",
    line="\u2500",
    point="\u25cf",
    right="\u2524",
    good="\u2713",
    bad="\u2717",
    arrow="\u2192",
)
PLAIN = Marks(
    full="#",
    empty="-",
    cut="~",
    top="/",
    middle="|",
    bottom="\\",
    left="|",
    line="-",
    point="o",
    right="|",
    good="ok",
    bad="X",
    arrow="->",
)


def marks_for(encoding: str | None) -> Marks:
    """Return the finest marks that an encoding can hold.

    >>> marks_for("utf-8").full, marks_for("cp1252").full, marks_for(None).full
    ('\u2501', '#', '#')
    """
    needed = "".join(getattr(FANCY, name) for name in Marks.__slots__)
    try:
        needed.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return FANCY


def is_live(stream: TextIO) -> bool:
    """Whether lines of the stream can be drawn over: a terminal that knows how."""
    return stream.isatty() and os.environ.get("TERM", "").lower() not in ("dumb", "unknown", "")


def shortened(name: str, width: int, cut: str) -> str:
    """Return a name in at most `width` columns, its middle cut: both ends tell versions apart.

    >>> shortened("qwen2.5-3b-instruct-awq", 12, "~")
    'qwen2.~t-awq'
    """
    if cell_len(name) <= width:
        return name
    if width <= cell_len(cut):
        return cut[:width]
    room = width - cell_len(cut)
    head = set_cell_size(name, (room + 1) // 2).rstrip()
    tail = room - cell_len(head)
    end = ""
    for mark in reversed(name):
        if cell_len(mark + end) > tail:
            break
        end = mark + end
    return head + cut + end
