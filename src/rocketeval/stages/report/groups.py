"""What candidates got in each group of items, as the explain stage found it, for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rocketeval.records import Interval
from rocketeval.report.data import GroupMeans
from rocketeval.stages.report.figures import read_interval

MOST_CANDIDATES = 200
"""Candidates whose means by group are on the page: the first in the ranking."""
_DIGITS = 4


def group_means(explain: Mapping[str, Any] | None, ranked: Sequence[str]) -> tuple[GroupMeans, ...]:
    """Return the means of the first candidates; none without any, groups or an explanation.

    Who is not ranked has no means: a gap of theirs would look like one that was measured.
    """
    shown = ranked[:MOST_CANDIDATES]
    if not shown:
        return ()
    return tuple(_means(found, shown) for found in (explain or {}).get("groups", ()))


def _means(found: Mapping[str, Any], shown: Sequence[str]) -> GroupMeans:
    own = {row["candidate"]: row for row in found["candidates"]}
    return GroupMeans(
        name=found["group"],
        dimension=found["dimension"],
        whole=found["whole"],
        queries=found["queries"],
        means=tuple(_short(own.get(name, {}).get("mean")) for name in shown),
        missing=tuple(own.get(name, {}).get("missing", 0) for name in shown),
    )


def _short(found: Mapping[str, Any] | None) -> Interval | None:
    known = read_interval(found)
    if known is None:
        return None
    return Interval(*(round(end, _DIGITS) for end in (known.value, known.low, known.high)))
