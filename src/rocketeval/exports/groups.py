"""Means by group of items as tables: one row a candidate and group, or a response and group."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rocketeval.errors import ExportError
from rocketeval.exports.display import Display
from rocketeval.exports.tidy import Names
from rocketeval.names import counted

MOST_COLUMNS = 12
"""Candidates of a table that still fits a page."""

GROUPS = pa.schema(
    [
        ("candidate", pa.string()),
        ("group", pa.string()),
        ("dimension", pa.string()),
        ("whole", pa.bool_()),
        ("mean", pa.float64()),
        ("mean_low", pa.float64()),
        ("mean_high", pa.float64()),
        ("responses", pa.int64()),
        ("missing", pa.int64()),
    ]
)
GROUP_SCORES = pa.schema(
    [
        ("query_id", pa.string()),
        ("category", pa.string()),
        ("candidate", pa.string()),
        ("judge", pa.string()),
        ("group", pa.string()),
        ("dimension", pa.string()),
        ("whole", pa.bool_()),
        ("mean", pa.float64()),
        ("items", pa.int32()),
        ("answered", pa.int32()),
    ]
)

Found = Sequence[Mapping[str, Any]]
"""The groups of explain.json."""


def groups_table(found: Found) -> pa.Table:
    """Return one row a candidate and group; an unknown bound is missing."""
    rows = [
        {
            "candidate": own["candidate"],
            "group": group["group"],
            "dimension": group["dimension"],
            "whole": group["whole"],
            **_known(own["mean"]),
            "responses": own["responses"],
            "missing": own["missing"],
        }
        for group in found
        for own in group["candidates"]
    ]
    return pa.Table.from_pylist(rows, schema=GROUPS)


def group_score_rows(
    named: tuple[str, str | None, bool],
    cells: pa.Table,
    columns: tuple[NDArray[np.float64], NDArray[np.int64], NDArray[np.int64]],
    names: Names,
) -> pa.Table:
    """Return one row a response that has items of a group, which is `named`, with its dimension.

    `cells` has `query_id` and `candidate`; `columns` are means, items and answered items.
    """
    chosen = np.flatnonzero(columns[1] > 0)
    there = cells.take(pa.array(chosen))
    means, items, answered = (column[chosen] for column in columns)
    group, dimension, whole = named
    made = {
        "query_id": there["query_id"],
        "category": names.categories(there["query_id"]),
        "candidate": there["candidate"],
        "judge": pa.repeat(pa.scalar(names.judge, pa.string()), len(chosen)),
        "group": pa.repeat(pa.scalar(group, pa.string()), len(chosen)),
        "dimension": pa.repeat(pa.scalar(dimension, pa.string()), len(chosen)),
        "whole": pa.repeat(pa.scalar(whole), len(chosen)),
        "mean": pa.array(means, pa.float64(), from_pandas=True),
        "items": pa.array(items, pa.int32()),
        "answered": pa.array(answered, pa.int32()),
    }
    return pa.table([made[name] for name in GROUP_SCORES.names], schema=GROUP_SCORES)


def show_groups(found: Found, left_out: int, judge: str) -> Display:
    """Return a row a group and a column a candidate; ExportError when that fits no page."""
    names = [own["candidate"] for own in found[0]["candidates"]] if found else []
    if len(names) > MOST_COLUMNS:
        raise ExportError(
            f"A table of {len(names)} candidates beside each other fits no page: "
            f"{MOST_COLUMNS} do.",
            hint="Export --to csv --what groups.",
        )
    return Display(
        title=f"Mean answer by group of items, judged by {judge}",
        label="groups",
        heads=("Group", *names),
        numeric=(False, *(True for _ in names)),
        rows=tuple(
            (_title(group), *(_cell(own["mean"]) for own in group["candidates"])) for group in found
        ),
        notes=tuple(_notes(found, left_out)),
    )


def _title(group: Mapping[str, Any]) -> str:
    """Return a group's name; a dimension as a whole may be called like one of its groups."""
    return f"{group['group']} (all)" if group["whole"] else str(group["group"])


def _notes(found: Found, left_out: int) -> Iterator[str]:
    yield (
        "A response's mean over a group's items, then the mean over responses. "
        "In parentheses: intervals over the queries."
    )
    parts = [own for group in found if not group["whole"] for own in group["candidates"]]
    missing = sum(own["missing"] for own in parts)
    if missing:
        yield f"Left out: {counted(missing, 'missing answer', 'missing answers')}."
    if left_out:
        yield f"Not shown: {counted(left_out, 'group', 'groups')}."


def _cell(mean: Mapping[str, float | None] | None) -> str:
    if mean is None or mean["value"] is None:
        return "\N{EN DASH}"
    low, high = mean["low"], mean["high"]
    value = f"{mean['value']:.2f}"
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return value
    return f"{value} ({low:.2f}\N{EN DASH}{high:.2f})"


def _known(mean: Mapping[str, float | None] | None) -> dict[str, float | None]:
    told = mean or {}
    return {
        "mean": told.get("value"),
        "mean_low": told.get("low"),
        "mean_high": told.get("high"),
    }
