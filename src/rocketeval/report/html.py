"""One run as one HTML file: markup, style, script and data inlined, nothing else allowed."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from importlib import resources
from math import isfinite, isinf
from typing import Any

from rocketeval.errors import RocketEvalError
from rocketeval.records import Interval, Status, Turn
from rocketeval.report import losses, sections, trust, wins
from rocketeval.report.data import (
    STATUS_TEXT,
    ReportAnswer,
    ReportData,
    ReportItem,
    ReportQuery,
    ReportResponse,
    ReportRow,
)
from rocketeval.report.figures import two_places, whole, with_bounds

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_UNSAFE_IN_SCRIPT = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
_STORED_DIGITS = 4


def build_report(data: ReportData) -> str:
    """Return the whole page; the same data gives the same bytes.

    Raises RocketEvalError if a figure is not a number.
    """
    _refuse_nonsense(data)
    style, script = _template("report.css"), _template("report.js")
    return _fill(
        _template("report.html"),
        {
            "policy": _policy(style, script),
            "style": style,
            "script": script,
            "data": _embed(_payload(data)),
            "name": sections.text(data.run_name),
            "lead": sections.lead(data),
            "notice": sections.notice(data),
            "leaderboard": sections.leaderboard(data),
            "wins": wins.wins(data.wins),
            "losses": losses.losses(data),
            "trust": trust.trust(data),
            "counts": sections.counts(data),
            "cost": sections.definitions(data.cost) or "<p>Not recorded.</p>",
            "judge": sections.definitions(data.judge_details) or "<p>Not recorded.</p>",
            "methods": sections.footnotes(data.methods),
            "created_with": sections.text(data.created_with),
        },
    )


def _template(name: str) -> str:
    return resources.files("rocketeval.report").joinpath("templates", name).read_text("utf-8")


def _fill(template: str, values: Mapping[str, str]) -> str:
    # One pass over the template alone: a value that holds a placeholder is never looked at again.
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def _policy(style: str, script: str) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _digest(source: str) -> str:
    return "sha256-" + b64encode(sha256(source.encode()).digest()).decode()


def _embed(payload: Mapping[str, Any]) -> str:
    plain = json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE_IN_SCRIPT.sub(_as_escape, plain)


def _as_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(sections.encodable(found[0])):04x}"


def _payload(data: ReportData) -> dict[str, Any]:
    return {
        "run": data.run_name,
        "scale": list(data.scale),
        "statuses": dict(STATUS_TEXT),
        "answers": data.answers,
        "omitted": data.queries_omitted,
        "candidates": [_candidate(row) for row in data.rows],
        "queries": [_query(query) for query in data.queries],
    }


def _candidate(row: ReportRow) -> dict[str, Any]:
    rank = str(row.rank)
    if row.rank_low != row.rank_high:
        rank += f" ({row.rank_low}\N{EN DASH}{row.rank_high})"
    return {
        "name": row.candidate,
        "rank": rank,
        "rating": with_bounds(row.rating, whole),
        "score": with_bounds(row.mean_score, two_places),
        "missing": row.missing,
        "queries": row.queries,
    }


def _query(query: ReportQuery) -> dict[str, Any]:
    return {
        "id": query.id,
        "text": query.text,
        "history": _turns(query.history),
        "reference": query.reference,
        "category": query.category,
        "items": list(query.items),
        "figures": [_item(figure) for figure in query.figures],
        "responses": [_response(response) for response in query.responses],
    }


def _item(figure: ReportItem) -> dict[str, Any]:
    return {
        "weight": _stored(figure.weight),
        "learned": figure.learned,
        "mean": _stored(figure.mean),
        "spread": _stored(figure.spread),
        "correlation": _stored(figure.correlation),
        "dead": figure.dead,
    }


def _response(response: ReportResponse) -> dict[str, Any]:
    return {
        "candidate": response.candidate,
        "text": response.text,
        "history": None if response.history is None else _turns(response.history),
        "score": _stored(response.score),
        "answers": [_answer(answer) for answer in response.answers],
        "neutralised": response.neutralised,
    }


def _turns(turns: tuple[Turn, ...]) -> list[list[str]]:
    return [[turn.role, turn.content] for turn in turns]


def _answer(answer: ReportAnswer) -> float | list[Any] | None:
    # Nearly all answers are plain; a bare number keeps a report of a million of them small.
    if answer.status == Status.OK and not _visibly_wide(answer):
        return _stored(answer.p_yes)
    return [_stored(answer.p_yes), _stored(answer.low), _stored(answer.high), answer.status]


def _visibly_wide(answer: ReportAnswer) -> bool:
    if answer.low is None or answer.high is None:
        return False
    return two_places(answer.low) != two_places(answer.high)


def _stored(number: float | None) -> float | None:
    return None if number is None else round(number, _STORED_DIGITS)


def _refuse_nonsense(data: ReportData) -> None:
    for owner, number in _numbers(data):
        if not isfinite(number):
            raise RocketEvalError(
                f"The report of {data.run_name!r} cannot show {number} for {owner}.",
                hint="A stage before the report made it: check the scores and the ranking.",
            )


def _numbers(data: ReportData) -> Iterator[tuple[str, float]]:
    for row in data.rows:
        for interval in (row.rating, row.mean_score):
            yield from ((f"candidate {row.candidate!r}", end) for end in _ends(interval))
    for figure in data.agreement:
        yield from ((f"figure {figure.name!r}", end) for end in _ends(figure.value))
    for line in (line for table in data.agreement_tables for line in table.rows):
        for cell in line.cells:
            yield from ((f"figure {line.name!r}", end) for end in _ends(cell))
    for found in data.explained:
        yield from ((f"candidate {found.candidate!r}", end) for end in _ends(found.points))
        for loss in found.losses:
            owner = f"item {loss.item} of query {loss.query_id!r}, candidate {found.candidate!r}"
            yield from ((owner, n) for n in (loss.points, loss.p_yes, loss.neighbours_p_yes))
    for query in data.queries:
        for response in query.responses:
            owner = f"the response of {response.candidate!r} to query {query.id!r}"
            figures = [(a.p_yes, a.low, a.high) for a in response.answers]
            for number in (response.score, *(n for triple in figures for n in triple)):
                if number is not None:
                    yield owner, number


def _ends(interval: Interval | None) -> Iterator[float]:
    if interval is None:
        return
    yield interval.value
    # A candidate that never lost has no upper end; that is a finding, not a fault.
    yield from (end for end in (interval.low, interval.high) if not isinf(end))
