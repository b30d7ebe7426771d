"""Where each candidate loses against its neighbours in the ranking, folded until it is wanted."""

from __future__ import annotations

from collections.abc import Collection
from urllib.parse import quote

from rocketeval.records import Interval
from rocketeval.report.data import ReportData, ReportExplained, ReportLoss
from rocketeval.report.figures import bounds, two_places
from rocketeval.report.sections import encodable, text


def losses(data: ReportData) -> str:
    """Return one folded line a candidate with its largest losses inside."""
    if not data.explained:
        return (
            '<p class="hint">Not explained: <code>rocketeval explain</code>, then '
            "<code>rocketeval report</code>, adds this part.</p>"
        )
    shown = {query.id for query in data.queries}
    lines = "".join(_candidate(found, shown) for found in data.explained)
    left = len(data.rows) - len(data.explained)
    more = (
        f" The first {len(data.explained)} of {len(data.rows):,} candidates are shown; "
        "explain.json has them all."
        if left > 0
        else ""
    )
    return (
        f'<div class="list">{lines}</div>'
        '<p class="legend">Each candidate beside those nearest to it in the ranking: points of a '
        "query&#x27;s score that an item costs it and not them. A single item is one observation "
        f"and has no interval.{more}</p>"
    )


def _candidate(found: ReportExplained, shown: Collection[str]) -> str:
    worst = text(found.losses[0].text) if found.losses else "no item costs it points"
    body = (
        '<table class="losses"><thead><tr><th scope="col" class="number">Points</th>'
        '<th scope="col">Item</th><th scope="col" class="number">Yes</th>'
        '<th scope="col" class="number">Neighbours</th></tr></thead><tbody>'
        f"{''.join(_loss(loss, shown) for loss in found.losses)}</tbody></table>"
        if found.losses
        else '<p class="hint">No item costs it points that its neighbours get.</p>'
    )
    return (
        f"<details><summary><b>{found.place}</b>"
        f'<span class="what"><b><bdi>{text(found.candidate)}</bdi></b>'
        f'<span class="snippet" dir="auto">{worst}</span></span>'
        f'<span class="points">{_points(found.points)}</span></summary>{body}</details>'
    )


def _points(points: Interval | None) -> str:
    if points is None:
        return '<span class="loud">not compared</span>'
    word = "loses" if points.value >= 0 else "gains"
    ends = points if points.value >= 0 else Interval(-points.value, -points.high, -points.low)
    return (
        f"{word} {two_places(ends.value)} points a query<small>{bounds(ends, two_places)}</small>"
    )


def _loss(loss: ReportLoss, shown: Collection[str]) -> str:
    name = f"<bdi>{text(loss.query_id)}</bdi>"
    query = f'<a href="{query_route(loss.query_id)}">{name}</a>' if loss.query_id in shown else name
    return (
        f'<tr><td class="number value">{two_places(loss.points)}</td>'
        f'<td><span dir="auto">{text(loss.text)}</span>'
        f"<small>{query}, item {loss.item}</small></td>"
        f'<td class="number">{two_places(loss.p_yes)}</td>'
        f'<td class="number">{two_places(loss.neighbours_p_yes)}</td></tr>'
    )


def query_route(query_id: str) -> str:
    """Return the link to a query's view, safe inside an attribute."""
    return "#/query/" + quote(encodable(query_id), safe="")
