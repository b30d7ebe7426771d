"""A table as GitHub's Markdown; what is in a name stays text."""

from __future__ import annotations

import re

from rocketeval.exports.display import Display

_SPECIAL = re.compile(r"[\\`*_\[\]|~$]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LINK = re.compile(r"(?i)@|\bwww(?=\.)|\b(?:https?|ftp|mailto)(?=:)")
# Web addresses and @names become links unless something stands in them.


def markdown(table: Display) -> str:
    """Return the table with its title above and its notes below."""
    rules = ["---:" if numeric else "---" for numeric in table.numeric]
    rows = [
        [
            cell if numeric else escape(cell)
            for cell, numeric in zip(row, table.numeric, strict=True)
        ]
        for row in table.rows
    ]
    lines = [_line([escape(head) for head in table.heads]), _line(rules), *map(_line, rows)]
    notes = [escape(note) for note in table.notes]
    return "\n\n".join([f"**{escape(table.title)}**", "\n".join(lines), *notes]) + "\n"


def escape(text: str) -> str:
    r"""Return the text such that it is shown as it is, on one line.

    >>> escape("a|b <i>"), escape("x_1")
    ('a\\|b &lt;i&gt;', 'x\\_1')
    """
    line = "".join(mark if mark.isprintable() else _unprinted(mark) for mark in text)
    safe = "".join(_ENTITIES.get(mark, mark) for mark in _SPECIAL.sub(_escaped, line))
    return _LINK.sub(r"\g<0><!-- -->", safe)


def _escaped(found: re.Match[str]) -> str:
    return "\\" + found[0]


def _unprinted(mark: str) -> str:
    return " " if mark.isspace() else "\N{REPLACEMENT CHARACTER}"


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"
