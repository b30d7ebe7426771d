"""A report as HTML: one file that loads nothing, or the page that `rocketeval view` serves.

The policy in the page lets exactly its own script and style sheet run, by their hashes: text of a
run that became markup by mistake would still be inert.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import replace
from hashlib import sha256
from importlib import resources
from typing import Literal

from rocketeval.errors import RocketEvalError
from rocketeval.report.budget import MOST_BYTES, fit
from rocketeval.report.data import ReportHead, RunsHead
from rocketeval.report.fallback import leaderboard, runs, text
from rocketeval.report.plain import encodable, json_bytes, plain
from rocketeval.report.source import ReportSource

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_UNSAFE_IN_SCRIPT = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def embedded_page(source: ReportSource, most_bytes: int = MOST_BYTES) -> str:
    """Return the page with as many blocks as `most_bytes` hold; the same run gives the same bytes.

    Raises RocketEvalError if a figure is not a number.
    """
    bare = _page(replace(source.head, blocks="embedded"), "report", served=False)
    fitted = fit(source, most_bytes - len(bare.encode()))
    return _page(fitted.head, "report", served=False, blocks=fitted.made)


def served_page(head: ReportHead | RunsHead, kind: Literal["report", "runs"]) -> str:
    """Return the page without blocks: it asks its server for them."""
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
            "blocks": "".join(_element(name, block) for name, block in (blocks or {}).items()),
        },
    )


def _asset(name: str) -> str:
    file = resources.files("rocketeval.report").joinpath("page", name)
    if not file.is_file():
        raise RocketEvalError(
            f"The report's {name} is missing from this installation.",
            hint="Install RocketEval again, or in a checkout build the page: see CONTRIBUTING.md.",
        )
    return file.read_text("utf-8")


def _fill(template: str, values: Mapping[str, str]) -> str:
    # One pass over the template alone: a value that holds a placeholder is never looked at again.
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
