"""Who wins against whom, as a table that needs no script and no colour to be read."""

from __future__ import annotations

from rocketeval.report.data import ReportWins
from rocketeval.report.sections import text


def wins(found: ReportWins | None) -> str:
    """Return the win shares as a table, each cell its own number."""
    if found is None:
        return '<p class="hint">Not shown: there are too many candidates for a table of pairs.</p>'
    # Columns are numbered like the rows: thirty names side by side would have to be cut.
    head = "".join(
        f'<th scope="col" title="{text(name)}">{place}'
        f'<span class="spoken"> {text(name)}</span></th>'
        for place, name in enumerate(found.candidates, start=1)
    )
    rows = "".join(
        f'<tr><th scope="row"><span class="place">{place}</span><bdi>{text(name)}</bdi></th>'
        f"{''.join(map(_cell, shares))}</tr>"
        for place, (name, shares) in enumerate(
            zip(found.candidates, found.shares, strict=True), start=1
        )
    )
    return (
        '<div class="scroll" tabindex="0" role="region" aria-label="Win shares">'
        f'<table class="wins"><thead><tr><td>Row beats column</td>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
        '<p class="legend">Per cent of the shared queries that the row wins over the column, ties '
        "half. Blue is above 50, orange below; a dash stands where two never meet."
        f"{_left_out(found)}</p>"
    )


def _cell(share: float | None) -> str:
    if share is None:
        return '<td class="never">\N{EN DASH}</td>'
    # Style attributes are refused by the page's policy: eleven classes carry the shades.
    return f'<td class="w{round(10 * share)}">{100 * share:.0f}</td>'


def _left_out(found: ReportWins) -> str:
    if not found.left_out:
        return ""
    return (
        f" The first {len(found.candidates)} are shown, {found.left_out:,} more are ranked; "
        "ranking.json has the whole table."
    )
