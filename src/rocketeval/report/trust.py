"""How far the judge can be trusted: in words first, then figure by figure."""

from __future__ import annotations

from collections.abc import Iterable

from rocketeval.records import Interval
from rocketeval.report.data import ReportData, ReportTable, ReportTableRow
from rocketeval.report.figures import Formatter, bounds, share, two_places
from rocketeval.report.sections import text
from rocketeval.report.sections import trust as figures


def trust(data: ReportData) -> str:
    """Return what the audit means, its figures beside baselines, and its tables."""
    tables = "".join(map(_table, data.agreement_tables))
    return _advice(data.advice) + figures(data.agreement) + tables


def _advice(sentences: Iterable[str]) -> str:
    lines = "".join(f"<li>{text(sentence)}</li>" for sentence in sentences)
    return f'<ul class="advice">{lines}</ul>' if lines else ""


def _table(table: ReportTable) -> str:
    formatter = share if table.unit == "share" else two_places
    head = "".join(f'<th scope="col" class="number">{text(name)}</th>' for name in table.columns)
    rows = "".join(_row(row, formatter) for row in table.rows)
    note = f'<p class="legend">{text(table.note)}</p>' if table.note else ""
    return (
        f'<h3>{text(table.title)}</h3><table class="levels"><thead><tr><td></td>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>{note}"
    )


def _row(row: ReportTableRow, formatter: Formatter) -> str:
    note = f"<small>{text(row.note)}</small>" if row.note else ""
    cells = "".join(_cell(cell, formatter) for cell in row.cells)
    return f'<tr><th scope="row"><bdi>{text(row.name)}</bdi>{note}</th>{cells}</tr>'


def _cell(interval: Interval | None, formatter: Formatter) -> str:
    if interval is None:
        return '<td class="number">\N{EN DASH}</td>'
    ends = bounds(interval, formatter)
    reach = f"<small>{ends}</small>" if ends else ""
    return f'<td class="number">{formatter(interval.value)}{reach}</td>'
