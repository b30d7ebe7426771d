"""Rounded tables of the ranking, win matrix and audit, as Markdown or LaTeX."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from rocketeval.audit.audit import Audit
from rocketeval.audit.wording import SPEARMAN, label_figures, rating_figures, vote_figures
from rocketeval.errors import ExportError
from rocketeval.ranking.rank import Ranking
from rocketeval.ranking.summary import contradicted_ranks
from rocketeval.records import Interval
from rocketeval.text import count_of, figure, join_words

MOST_COLUMNS = 30
"""Most candidates in a win matrix that fits on a page."""


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of unescaped text."""

    title: str
    label: str
    """Short name for references to the table."""
    heads: tuple[str, ...]
    numeric: tuple[bool, ...]
    """Which columns hold numbers, where a hyphen is a minus sign."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def show_ranking(ranking: Ranking, judge: str) -> TextTable:
    """Return the leaderboard with intervals, rank intervals, groups and missing scores."""
    percent = f"{100 * ranking.level:g}%"
    rows = tuple(
        (
            f"{row.rank}"
            if row.rank_low == row.rank_high
            else f"{row.rank} ({row.rank_low}\N{EN DASH}{row.rank_high})",
            f"{row.group}",
            row.candidate,
            _figure(row.rating, ".0f"),
            _figure(row.mean_score, ".2f"),
            f"{row.queries}",
            f"{row.missing}",
        )
        for row in ranking.rows
    )
    return TextTable(
        title=f"Ranking over {count_of(ranking.queries, 'query', 'queries')}, judged by {judge}",
        label="ranking",
        heads=("Rank", "Group", "Candidate", "Rating", "Mean score", "Queries", "Missing"),
        numeric=(True, True, False, True, True, True, True),
        rows=rows,
        notes=tuple(_ranking_notes(ranking, percent)),
    )


def _ranking_notes(ranking: Ranking, percent: str) -> Iterator[str]:
    yield (
        f"In parentheses: {percent} intervals from {ranking.bootstrap} resamples of the queries. "
        f"Scores that differ by less than {ranking.tie_margin:g} count as a tie."
    )
    yield "Candidates in a group are statistically tied with the first one in it."
    yield from contradicted_ranks(ranking.rows)
    if ranking.anchor is not None:
        yield f"Ratings are relative to {ranking.anchor}, fixed at {ranking.anchor_rating:g}."
    if ranking.islands > 1:
        yield (
            f"{ranking.islands} sets of candidates share no query: "
            "do not compare ratings across sets."
        )
    if ranking.unranked:
        yield f"Not ranked (no score): {join_words(ranking.unranked, most=20)}."


def show_wins(ranking: Ranking, judge: str) -> TextTable:
    """Return the win matrix in percent; raise ExportError if it is too wide for a page."""
    if ranking.wins is None or len(ranking.wins.candidates) > MOST_COLUMNS:
        raise ExportError(
            f"A win matrix of {len(ranking.rows)} candidates does not fit on a page; "
            f"at most {MOST_COLUMNS} fit.",
            hint="Use --to csv --what wins, or --to matches.",
        )
    names = ranking.wins.candidates
    return TextTable(
        title=f"Queries won (%), judged by {judge}",
        label="wins",
        heads=("", "Row beats column", *(str(n) for n in range(1, len(names) + 1))),
        numeric=(True, False, *(True for _ in names)),
        rows=tuple(
            (str(place), name, *(_percent(share) for share in shares))
            for place, (name, shares) in enumerate(
                zip(names, ranking.wins.shares, strict=True), start=1
            )
        ),
        notes=("Of the queries on which both have a score; a tie counts as half a win.",),
    )


def show_audit(audit: Audit, judge: str) -> TextTable:
    """Return agreement with votes and correlations with ratings and labels."""
    found = (*vote_figures(audit), *rating_figures(audit), *label_figures(audit, SPEARMAN))
    rows = tuple(
        (each.measure, each.method, _audit_value(each.value, each.p_value), each.rests_on)
        for each in found
        if each.value is not None
    )
    if not rows:
        raise ExportError(
            "The audit has no figures: the run has no votes, labels or ratings.",
            hint="Add reference data to the benchmark, then run `rocketeval audit` again.",
        )
    return TextTable(
        title=f"Audit of the judge {judge}",
        label="audit",
        heads=("Figure", "Method", "Value", "Based on"),
        numeric=(False, False, True, False),
        rows=rows,
        notes=(
            "In parentheses: intervals. Shares are shares of votes; scores that differ by less "
            f"than {audit.tie_margin:g} count as a tie.",
        ),
    )


def _audit_value(value: Interval, p_value: float | None) -> str:
    if p_value is not None and math.isnan(value.low):
        return f"{value.value:.2f} (p {p_value:.2g})"
    return _figure(value, ".2f")


def _figure(interval: Interval, digits: str) -> str:
    return figure(interval, digits, "\N{EN DASH}")


def _percent(share: float | None) -> str:
    return "\N{EN DASH}" if share is None else f"{100 * share:.0f}"


_SPECIAL = re.compile(r"[\\`*_\[\]|~$]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_LINK = re.compile(r"(?i)@|\bwww(?=\.)|\b(?:https?|ftp|mailto)(?=:)")
# An empty comment inside URLs and @names keeps them from becoming links.


def markdown(table: TextTable) -> str:
    """Return the table as Markdown, with its title above and its notes below."""
    rules = ["---:" if numeric else "---" for numeric in table.numeric]
    rows = [
        [
            cell if numeric else escape_markdown(cell)
            for cell, numeric in zip(row, table.numeric, strict=True)
        ]
        for row in table.rows
    ]
    lines = [
        _line([escape_markdown(head) for head in table.heads]),
        _line(rules),
        *map(_line, rows),
    ]
    notes = [escape_markdown(note) for note in table.notes]
    return "\n\n".join([f"**{escape_markdown(table.title)}**", "\n".join(lines), *notes]) + "\n"


def escape_markdown(text: str) -> str:
    r"""Escape text so that Markdown shows it literally, on one line.

    >>> escape_markdown("a|b <i>"), escape_markdown("x_1")
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


_LATEX_SPECIAL = {
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
    # After a row end, LaTeX reads a bracket or star as an argument.
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    '"': r"\symbol{34}",
    "\N{EN DASH}": "--",
    "\N{EM DASH}": "---",
    "\0": "{}",
}
_LIGATURE = re.compile(r"([-',])(?=\1)")
# LaTeX joins two of these into a ligature.


def latex(table: TextTable) -> str:
    """Return a LaTeX `table` with caption and notes; it needs the booktabs package."""
    columns = "".join("r" if numeric else "l" for numeric in table.numeric)
    rows = [
        [
            _latex_figure(cell) if numeric else escape_latex(cell)
            for cell, numeric in _cells(table, row)
        ]
        for row in table.rows
    ]
    notes = [rf"\\[2pt]{{\footnotesize {escape_latex(note)}}}" for note in table.notes]
    lines = [
        r"% \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\label{{tab:{table.label}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        _latex_line([escape_latex(head) for head in table.heads]),
        r"\midrule",
        *map(_latex_line, rows),
        r"\bottomrule",
        r"\end{tabular}",
        *notes,
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def escape_latex(text: str) -> str:
    r"""Escape text so that LaTeX sets it literally.

    >>> escape_latex("50% of_{x}")
    '50\\% of\\_\\{x\\}'
    """
    apart = _LIGATURE.sub("\\1\0", text.replace("\0", "?"))
    return "".join(map(_set, apart))


def beyond_ascii(source: str) -> bool:
    """Return whether the source needs XeLaTeX or LuaLaTeX instead of pdfLaTeX."""
    return not source.isascii()


def _cells(table: TextTable, row: tuple[str, ...]) -> list[tuple[str, bool]]:
    return list(zip(row, table.numeric, strict=True))


def _latex_figure(text: str) -> str:
    """Return a number with a LaTeX minus sign."""
    dashed = text.replace("\N{EN DASH}", "--")
    return re.sub(r"(?<!-)-(?=[\d.])", "$-$", dashed)


def _set(mark: str) -> str:
    if mark in _LATEX_SPECIAL or mark.isprintable():
        return _LATEX_SPECIAL.get(mark, mark)
    return " " if mark.isspace() else "?"


def _latex_line(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"
