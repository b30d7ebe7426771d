"""The parts of the first screen, as HTML that needs no script to be read.

Every string that comes from a run passes through `text` on its way into the page.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html import escape
from itertools import groupby
from urllib.parse import quote

from rocketeval.records import Interval, Status
from rocketeval.report.data import SIZES, STATUS_TEXT, ReportData, ReportFigure, ReportRow
from rocketeval.report.figures import (
    Axis,
    Formatter,
    bounds,
    share,
    two_places,
    whisker,
    whole,
    with_bounds,
)

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_STILL_USED = frozenset({Status.TRUNCATED.value, "neutralised"})


def text(value: object) -> str:
    """Return `value` as HTML text that is safe inside elements and quoted attributes."""
    return escape(encodable(str(value)))


def encodable(value: str) -> str:
    """Return `value` with what UTF-8 cannot hold replaced by the replacement character."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)


def lead(data: ReportData) -> str:
    """Return the sentence that says what was judged, by whom."""
    candidates = data.counts.get("candidates", len(data.rows))
    queries = data.counts.get("queries", len(data.queries) + data.queries_omitted)
    return (
        f'<p class="lead"><b>{_many(candidates, "candidate", "candidates")}</b> answered '
        f"<b>{_many(queries, 'query', 'queries')}</b>. "
        f"<b><bdi>{text(data.judge)}</bdi></b> judged the responses with checklists by "
        f"<b><bdi>{text(data.author)}</bdi></b>.</p>"
    )


def notice(data: ReportData) -> str:
    """Return a loud list of everything missing; nothing when nothing is."""
    losses = [
        f"<b>{count:,}</b> {text(_count_name(name))}"
        for name, count in data.counts.items()
        if _is_loss(name) and count
    ]
    unscored = sum(row.missing for row in data.rows)
    if unscored:
        losses.insert(0, f"<b>{_many(unscored, 'response', 'responses')}</b> without a score")
    if data.queries_omitted:
        losses.append(
            f"<b>{_many(data.queries_omitted, 'query', 'queries')}</b> scored and ranked, "
            "but left out of this file's details"
        )
    if not losses:
        return ""
    listed = "".join(f"<li>{loss}</li>" for loss in losses)
    return f'<aside class="notice"><h2>Not complete</h2><ul>{listed}</ul></aside>'


def leaderboard(data: ReportData) -> str:
    """Return the ranking as a table, inseparable neighbours joined by a bracket."""
    if not data.rows:
        return "<p>No candidate has been ranked.</p>"
    scale = "\N{EN DASH}".join(f"{end:g}" for end in data.scale)
    axes = (
        Axis.around(row.rating for row in data.rows),
        Axis(*data.scale),
    )
    bodies = (_group([*rows], axes) for _, rows in groupby(data.rows, key=lambda row: row.group))
    return (
        '<table class="leaderboard"><thead><tr>'
        '<td class="bracket"></td><th scope="col">Rank</th><th scope="col">Candidate</th>'
        f'<th scope="col">Rating</th><th scope="col">Mean score <small>({scale})</small></th>'
        f'<th scope="col" class="number">Missing</th></tr></thead>{"".join(bodies)}</table>'
        '<p class="legend">Lines and ranges are intervals; the methods below say how they were '
        "made. A bracket with \N{ALMOST EQUAL TO} joins candidates that cannot be told apart: "
        f"their order is not a finding.</p>{_separation(data.separation)}"
    )


def _separation(sentences: Iterable[str]) -> str:
    lines = "".join(f"<li>{text(sentence)}</li>" for sentence in sentences)
    return f'<ul class="separation">{lines}</ul>' if lines else ""


def _group(rows: list[ReportRow], axes: tuple[Axis, Axis]) -> str:
    joined = len(rows) > 1
    bracket = (
        f'<th scope="rowgroup" rowspan="{len(rows)}" class="bracket joined">'
        f'<span aria-hidden="true">\N{ALMOST EQUAL TO}</span>'
        f'<span class="spoken">{len(rows)} candidates that cannot be told apart</span></th>'
        if joined
        else '<td class="bracket"></td>'
    )
    lines = (_row(row, axes, bracket if place == 0 else "") for place, row in enumerate(rows))
    return f"<tbody>{''.join(lines)}</tbody>"


def _row(row: ReportRow, axes: tuple[Axis, Axis], bracket: str) -> str:
    rating_axis, score_axis = axes
    missing = "loud" if row.missing else "quiet"
    return (
        f'<tr>{bracket}<td class="rank">{_rank(row)}</td>'
        f'<th scope="row"><a href="{candidate_route(row.candidate)}">'
        f"<bdi>{text(row.candidate)}</bdi></a></th>"
        f"<td>{_measure(row.rating, whole, rating_axis)}</td>"
        f"<td>{_measure(row.mean_score, two_places, score_axis)}</td>"
        f'<td class="number {missing}">{row.missing:,}<small>of {row.queries:,}</small></td></tr>'
    )


def _rank(row: ReportRow) -> str:
    if row.rank_low == row.rank_high:
        return f"{row.rank}"
    return f"{row.rank}<small>{row.rank_low}\N{EN DASH}{row.rank_high}</small>"


def _measure(interval: Interval | None, formatter: Formatter, axis: Axis) -> str:
    if interval is None:
        return '<span class="loud">missing</span>'
    return (
        f'<span class="measure"><span class="value">{formatter(interval.value)}'
        f"<small>{bounds(interval, formatter)}</small></span>"
        f"{whisker(interval, axis, with_bounds(interval, formatter))}</span>"
    )


def candidate_route(candidate: str) -> str:
    """Return the link to a candidate's view, safe inside an attribute."""
    return "#/candidate/" + quote(encodable(candidate), safe="")


def trust(figures: tuple[ReportFigure, ...]) -> str:
    """Return how far the judge agrees with people or labelers, beside trivial rules."""
    if not figures:
        return (
            '<p class="loud">Not audited: the run has neither labels nor votes, so nothing here '
            "says how far this judge can be trusted.</p>"
        )
    return f'<table class="figures"><tbody>{"".join(map(_figure, figures))}</tbody></table>'


def _figure(figure: ReportFigure) -> str:
    kind = "baseline" if figure.baseline else "own"
    formatter = share if figure.unit == "share" else two_places
    axis = Axis.around([figure.value], including=(0.0, 1.0))
    note = f"<small>{text(figure.note)}</small>" if figure.note else ""
    tag = '<span class="tag">baseline</span> ' if figure.baseline else ""
    return (
        f'<tr class="{kind}"><th scope="row">{tag}{text(figure.name)}{note}</th>'
        f"<td>{_measure(figure.value, formatter, axis)}</td></tr>"
    )


def counts(data: ReportData) -> str:
    """Return how big the run was, and how much of it was lost on the way."""
    sizes = {name: f"{count:,}" for name, count in data.counts.items() if name in SIZES}
    losses = {name: count for name, count in data.counts.items() if name not in SIZES}
    answers = data.counts.get("answers", 0)
    lines = [_count_line(name, count, answers) for name, count in losses.items() if count]
    table = f'<table class="counts"><tbody>{"".join(lines)}</tbody></table>' if lines else ""
    return definitions(sizes) + table + _zeros(losses)


def _count_line(name: str, count: int, answers: int) -> str:
    mood = "loud" if _is_loss(name) else "used"
    of_answers = bool(answers) and name in STATUS_TEXT
    part = f" <small>{_small_share(count / answers)}</small>" if of_answers else ""
    return (
        f'<tr><th scope="row">{text(_count_name(name))}</th>'
        f'<td class="number {mood}">{count:,}{part}</td></tr>'
    )


def _zeros(losses: Mapping[str, int]) -> str:
    names = [_count_name(name) for name, count in losses.items() if not count]
    return f'<p class="hint">None of these: {text("; ".join(names))}.</p>' if names else ""


def _is_loss(name: str) -> bool:
    return name not in SIZES and name not in _STILL_USED


def _count_name(name: str) -> str:
    if name in STATUS_TEXT:
        return f"answers: {STATUS_TEXT[name]}"
    return name.replace("_", " ")


def _small_share(part: float) -> str:
    return share(part) if part >= 0.001 else "under " + share(0.001)


def definitions(entries: Mapping[str, str]) -> str:
    """Return names and values as a definition list; nothing when there are none."""
    pairs = (
        f"<div><dt>{text(name.replace('_', ' '))}</dt><dd>{text(value)}</dd></div>"
        for name, value in entries.items()
    )
    return f"<dl>{''.join(pairs)}</dl>" if entries else ""


def footnotes(methods: Iterable[str]) -> str:
    """Return how the figures were made, one note a line."""
    notes = "".join(f"<li>{text(method)}</li>" for method in methods)
    return f"<ol>{notes}</ol>" if notes else "<p>None recorded.</p>"


def _many(count: int, one: str, more: str) -> str:
    return f"{count:,} {one if count == 1 else more}"
