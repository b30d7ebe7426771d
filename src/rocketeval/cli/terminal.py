"""What the place that output goes to can show: which marks, and whether lines can be redrawn."""

from __future__ import annotations

import os
from collections.abc import Mapping
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


ASCII_LOCALES = ("C", "POSIX")


def marks_for(encoding: str | None, environment: Mapping[str, str] = os.environ) -> Marks:
    """Return the finest marks that an encoding can hold and the locale asks for.

    >>> [marks_for(each, {}).full for each in ("utf-8", "cp1252", None)]
    ['\u2501', '#', '#']
    >>> marks_for("utf-8", {"LANG": "C"}).full
    '#'
    """
    if _asks_for_ascii(environment):
        return PLAIN
    needed = "".join(getattr(FANCY, name) for name in Marks.__slots__)
    try:
        needed.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return FANCY


def _asks_for_ascii(environment: Mapping[str, str]) -> bool:
    """Whether the user chose the C locale, for which Python writes UTF-8 all the same."""
    if environment.get("PYTHONIOENCODING") or environment.get("PYTHONUTF8") == "1":
        return False
    whole, own, rest = (environment.get(name, "") for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    # Python itself puts such a name into LC_CTYPE when it finds the C locale.
    own = "" if own.lower() in ("c.utf-8", "c.utf8", "utf-8") and rest in ASCII_LOCALES else own
    return (whole or own or rest) in ASCII_LOCALES


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
