"""What a page says where scripts do not run: plain tables, every string of the run escaped."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from math import isfinite

from rocketeval.records import Interval
from rocketeval.report.data import Candidate, ReportHead, RunsHead
from rocketeval.report.plain import encodable

_OFF = "<p>Scripts are off: queries, responses and their answers cannot be opened.</p>"


def text(value: object) -> str:
    """Return `value` as HTML text that is safe inside elements and quoted attributes."""
    return escape(encodable(str(value)))


def leaderboard(head: ReportHead) -> str:
    """Return the ranking as a table."""
    title = f"<h1><bdi>{text(head.run)}</bdi></h1>"
    provisional = f"<p>{text(head.provisional)}</p>" if head.provisional else ""
    losses = "".join(f"<li>{loss.count:,} {text(loss.what)}</li>" for loss in head.losses)
    missing = f"<h2>Not complete</h2><ul>{losses}</ul>" if losses else ""
    if not head.candidates:
        return f"{title}{provisional}<p>No candidate has been ranked.</p>{missing}{_OFF}"
    names = ("Rank", "Candidate", "Rating", "Mean score", "Missing")
    rows = (_cells(candidate) for candidate in head.candidates)
    return f"{title}{provisional}{_table(names, rows)}{missing}{_OFF}"


def runs(head: RunsHead) -> str:
    """Return the list of runs as a table."""
    names = ("Run", "Judge", "State", "Queries", "Candidates")
    rows = (
        (run.name, run.judge, run.why or run.state, run.queries, run.candidates)
        for run in head.runs
    )
    return f"<h1><bdi>{text(head.folder)}</bdi></h1>{_table(names, rows)}{_OFF}"


def with_bounds(figure: Interval | None, digits: int) -> str:
    """Return a figure with its interval in one line.

    >>> with_bounds(Interval(7.812, 7.5, float("inf")), 2), with_bounds(None, 0)
    ('7.81 (7.50 to ?)', 'missing')
    """
    if figure is None:
        return "missing"
    low, high = (
        f"{end:z.{digits}f}" if isfinite(end) else "?" for end in (figure.low, figure.high)
    )
    return f"{figure.value:z.{digits}f} ({low} to {high})"


def _cells(row: Candidate) -> tuple[object, ...]:
    rank = "not ranked" if row.rank is None else f"{row.rank} ({row.rank_low} to {row.rank_high})"
    missing = f"{row.missing:,} of {row.queries + row.missing:,}"
    return rank, row.name, with_bounds(row.rating, 0), with_bounds(row.score, 2), missing


def _table(names: Iterable[str], rows: Iterable[tuple[object, ...]]) -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    lines = (
        "<tr>" + "".join(f"<td><bdi>{text(cell)}</bdi></td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
