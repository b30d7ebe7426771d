"""HTML pages: the self-contained report and the pages that `rocketeval view` serves.

The content security policy allows only the page's own script and style sheet, by hash, so markup
injected through run data stays inert. Without scripts, a page shows plain tables with escaped text.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from html import escape
from importlib import resources
from math import isfinite
from typing import Literal

from rocketeval.errors import RocketEvalError
from rocketeval.records import Interval
from rocketeval.report.blocks import MOST_BYTES, ReportSource, encodable, fit, json_bytes, plain
from rocketeval.report.model import Candidate, ReportHead, RunsHead
from rocketeval.text import NO_INTERVAL

_OFF = "<p>JavaScript is off. Turn it on to open queries, responses and answers.</p>"


def text(value: object) -> str:
    """Escape `value` for HTML elements and quoted attributes."""
    return escape(encodable(str(value)))


def leaderboard(head: ReportHead) -> str:
    """Return the ranking as an HTML table."""
    title = f"<h1><bdi>{text(head.run)}</bdi></h1>"
    provisional = f"<p>{text(head.provisional)}</p>" if head.provisional else ""
    losses = "".join(f"<li>{loss.count:,} {text(loss.what)}</li>" for loss in head.losses)
    missing = f"<h2>Missing data</h2><ul>{losses}</ul>" if losses else ""
    if not head.candidates:
        return f"{title}{provisional}<p>No candidate is ranked.</p>{missing}{_OFF}"
    names = ("Rank", "Candidate", "Rating", "Mean score", "Missing")
    rows = (_cells(candidate) for candidate in head.candidates)
    return f"{title}{provisional}{_table(names, rows)}{missing}{_OFF}"


def runs(head: RunsHead) -> str:
    """Return the list of runs as an HTML table."""
    names = ("Run", "Judge", "State", "Queries", "Candidates")
    rows = (
        (run.name, run.judge, run.why or run.state, run.queries, run.candidates)
        for run in head.runs
    )
    return f"<h1><bdi>{text(head.folder)}</bdi></h1>{_table(names, rows)}{_OFF}"


def with_bounds(figure: Interval | None, digits: int) -> str:
    """Format a figure with its interval.

    >>> with_bounds(Interval(7.812, 7.5, float("inf")), 2), with_bounds(None, 0)
    ('7.81 (7.50 to ?)', 'missing')
    >>> with_bounds(Interval(1612.4, float("nan"), float("nan")), 0)
    '1612 (no interval)'
    """
    if figure is None:
        return "missing"
    if not (isfinite(figure.low) or isfinite(figure.high)):
        return f"{figure.value:z.{digits}f} ({NO_INTERVAL})"
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


_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_UNSAFE_IN_SCRIPT = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def embedded_page(source: ReportSource, most_bytes: int = MOST_BYTES) -> str:
    """Return the page with as many blocks as fit in `most_bytes`, reproducible to the byte.

    Raise RocketEvalError if a figure is not finite.
    """
    bare = _page(replace(source.head, blocks="embedded"), "report", served=False)
    fitted = fit(source, most_bytes - len(bare.encode()))
    return _page(fitted.head, "report", served=False, blocks=fitted.made)


def served_page(head: ReportHead | RunsHead, kind: Literal["report", "runs"]) -> str:
    """Return the page without blocks; it fetches them from its server."""
    return _page(head, kind, served=True)


def _page(
    head: ReportHead | RunsHead,
    kind: str,
    *,
    served: bool,
    blocks: Mapping[str, bytes] | None = None,
) -> str:
    style, script = _asset("app.css"), _asset("app.js")
    hashes = json.loads(_asset("style-hashes.json"))
    if isinstance(head, ReportHead):
        title, fallback = f"{head.run} · RocketEval", leaderboard(head)
    else:
        title, fallback = f"{head.folder} · RocketEval runs", runs(head)
    return _fill(
        _asset("page.html"),
        {
            "policy": _policy(script, [_digest(style), *hashes], served),
            "title": text(title),
            "style": style,
            "kind": kind,
            "fallback": fallback,
            "head": _embed(plain(head)),
            "script": script,
            "blocks": "".join(_element(name, block) for name, block in (blocks or {}).items())
            + ("" if served else _notices()),
        },
    )


def _notices() -> str:
    """Return the licenses of the libraries in the page's script, as text that cannot run."""
    notices = _asset("THIRD_PARTY.txt").replace("<", "&lt;")
    return f'<script type="text/plain" id="third-party">\n{notices}</script>\n'


def _asset(name: str) -> str:
    file = resources.files("rocketeval.report").joinpath("page", name)
    if not file.is_file():
        raise RocketEvalError(
            f"The report's {name} is missing from this installation.",
            hint="Reinstall RocketEval. In a checkout, build the page: see CONTRIBUTING.md.",
        )
    return file.read_text("utf-8")


def _fill(template: str, values: Mapping[str, str]) -> str:
    # A single pass, so placeholders inside values are not replaced.
    return _PLACEHOLDER.sub(lambda found: values[found[1]], template)


def _policy(script: str, styles: Iterable[str], served: bool) -> str:
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            "style-src " + " ".join(f"'{style}'" for style in styles),
            "img-src data: blob:",
            *(["connect-src 'self'"] if served else []),
            "base-uri 'none'",
            "form-action 'none'",
        )
    )


def _digest(source: str) -> str:
    return "sha256-" + b64encode(sha256(source.encode()).digest()).decode()


def _embed(payload: object) -> str:
    return _UNSAFE_IN_SCRIPT.sub(_as_escape, json_bytes(payload).decode())


def _as_escape(found: re.Match[str]) -> str:
    return f"\\u{ord(encodable(found[0])):04x}"


def _element(name: str, block: bytes) -> str:
    return (
        f'<script type="application/octet-stream" id="block-{name}">'
        f"{b64encode(block).decode()}</script>\n"
    )
