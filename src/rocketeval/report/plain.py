"""Records as JSON for the page: what is no number is refused, with the name of its owner."""

from __future__ import annotations

import json
import re
from dataclasses import fields, is_dataclass
from math import isfinite
from typing import Any

from rocketeval.errors import RocketEvalError
from rocketeval.records import Interval

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_DIGITS = 6
_NAMES = ("name", "title", "what", "stage", "run")


def plain(value: Any, owner: str = "the report") -> Any:
    """Return a record as JSON holds it; an interval's unknown or endless end is None.

    >>> plain(Interval(0.5, float("-inf"), 0.75))
    {'value': 0.5, 'low': None, 'high': 0.75}
    """
    if isinstance(value, float):
        return _number(value, owner)
    if isinstance(value, Interval):
        return {
            "value": _number(value.value, owner),
            "low": _end(value.low),
            "high": _end(value.high),
        }
    if is_dataclass(value) and not isinstance(value, type):
        named = _owner(value, owner)
        return {field.name: plain(getattr(value, field.name), named) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(each, owner) for each in value]
    return value


def json_bytes(value: Any) -> bytes:
    """Return what `plain` made as compact JSON; what UTF-8 cannot hold is replaced."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return written.encode()
    except UnicodeEncodeError:
        return encodable(written).encode()


def encodable(value: str) -> str:
    """Return `value` with what UTF-8 cannot hold replaced by the replacement character."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)


def _number(value: float, owner: str) -> float:
    if not isfinite(value):
        raise RocketEvalError(
            f"The report cannot show {value} for {owner}.",
            hint="A stage before the report made it: check the scores and the ranking.",
        )
    return round(value, _DIGITS)


def _end(value: float) -> float | None:
    # A candidate that never lost has no upper end, and few queries give no bounds at all:
    # both are findings, not faults.
    return round(value, _DIGITS) if isfinite(value) else None


def _owner(value: Any, outer: str) -> str:
    kind = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(value).__name__).lower()
    for name in _NAMES:
        if hasattr(value, name):
            return f"{kind} {getattr(value, name)!r}"
    if hasattr(value, "text") and hasattr(value, "item"):
        return f"item {value.item} ({value.text!r}) of query {value.query + 1}, {outer}"
    if hasattr(value, "losses"):
        return f"candidate {value.candidate + 1}, {outer}"
    return outer if kind.endswith("bin") else f"{kind} of {outer}"
