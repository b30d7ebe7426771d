"""Parts of a server's JSON, whose types nobody guarantees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def mapping_or_empty(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def rows_or_empty(value: Any) -> list[dict[str, Any]]:
    """Return the objects in `value` if it is a list, else an empty one."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


def count_or_zero(value: Any) -> int:
    """Return `value` if it is a whole number, else zero."""
    return value if isinstance(value, int) else 0
