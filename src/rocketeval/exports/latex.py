"""A table for a paper: LaTeX with booktabs, in which a name can do nothing."""

from __future__ import annotations

import re

from rocketeval.exports.display import Display

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    # The end of a row would take a bracket or a star after it for its own.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    '"': r"\symbol{34}",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "\0": "{}",
}
_LIGATURE = re.compile(r"([-',])(?=\1)")
# Two of these side by side would become another sign.


def latex(table: Display) -> str:
    """Return a `table` with its caption above and its notes below; needs the package booktabs."""
    columns = "".join("r" if numeric else "l" for numeric in table.numeric)
    rows = [
        [_figure(cell) if numeric else escape(cell) for cell, numeric in _cells(table, row)]
        for row in table.rows
    ]
    notes = [rf"\\[2pt]{{\footnotesize {escape(note)}}}" for note in table.notes]
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape(table.title)}}}",
        rf"\label{{tab:{table.label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _line([escape(head) for head in table.heads]),
        r"\midrule",
        *map(_line, rows),
        r"\bottomrule",
        r"\end{tabular}",
        *notes,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape(text: str) -> str:
    r"""Return the text such that it is set as it is.

    >>> escape("50% of_{x}")
    '50\\% of\\_\\{x\\}'
    """
    apart = _LIGATURE.sub("\\1\0", text.replace("\0", "?"))
    return "".join(map(_set, apart))


def beyond_ascii(source: str) -> bool:
    """Whether it has signs that pdfLaTeX may not know, and XeLaTeX or LuaLaTeX do."""
    return not source.isascii()


def _cells(table: Display, row: tuple[str, ...]) -> list[tuple[str, bool]]:
    return list(zip(row, table.numeric, strict=True))


def _figure(text: str) -> str:
    """Return a figure, its minus a minus."""
    dashed = text.replace("\N{EN DASH}", "--")
    return re.sub(r"(?<!-)-(?=[\d.])", "$-$", dashed)


def _set(mark: str) -> str:
    if mark in _SPECIAL or mark.isprintable():
        return _SPECIAL.get(mark, mark)
    return " " if mark.isspace() else "?"


def _line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
