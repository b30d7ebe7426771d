"""Rankings, audits, scores and answers as tables of columns."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rocketeval.errors import ExportError
from rocketeval.exports.display import TextTable
from rocketeval.ranking.rank import WinMatrix
from rocketeval.ranking.summary import table_of_rows
from rocketeval.records import Checklist, Query
from rocketeval.store.schema import table_schema
from rocketeval.text import count_of

AUDIT = table_schema(
    ("section figure", pa.string()),
    ("value low high", pa.float64()),
)
PAIRS = table_schema(
    ("candidate opponent", pa.string()),
    ("win_share", pa.float64()),
)


def wins_matrix(wins: WinMatrix) -> pa.Table:
    """Return one row and one column a candidate: the share of queries the row wins."""
    shares = [pa.array(column, pa.float64()) for column in zip(*wins.shares, strict=True)]
    names = pa.array(wins.candidates, pa.string())
    return pa.table([names, *shares], names=["candidate", *wins.candidates])


def wins_pairs(wins: WinMatrix) -> pa.Table:
    """Return one row a pair that met, both ways round."""
    rows = [
        (name, other, share)
        for name, shares in zip(wins.candidates, wins.shares, strict=True)
        for other, share in zip(wins.candidates, shares, strict=True)
        if share is not None
    ]
    return table_of_rows(rows, PAIRS)


def audit_table(audit: Mapping[str, Any]) -> pa.Table:
    """Return one row a number in an audit, named by the way to it, intervals beside it."""
    rows = [
        (section, " > ".join(way), *figure)
        for section, found in audit.items()
        for way, figure in _numbers(found, ())
    ]
    return table_of_rows(rows, AUDIT)


_Figure = tuple[float | None, float | None, float | None]


def _numbers(found: Any, way: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], _Figure]]:
    if isinstance(found, bool) or found is None or isinstance(found, str):
        return
    if isinstance(found, (int, float)):
        yield way, (float(found), None, None)
    elif isinstance(found, Mapping):
        if found.keys() == {"value", "low", "high"}:
            yield way, (found["value"], found["low"], found["high"])
            return
        for name, each in found.items():
            yield from _numbers(each, (*way, str(name)))
    else:
        for place, each in enumerate(found, start=1):
            yield from _numbers(each, (*way, _label(each, place)))


def _label(entry: Any, place: int) -> str:
    """Return what an entry of a list is about: its category or margin, or else its place."""
    if isinstance(entry, Mapping):
        for name in ("category", "margin", "tie_margin"):
            if name in entry:
                return str(entry[name])
    return str(place)


_ANSWERS = ("p_yes", "p_low", "p_high", "mass", "logp_yes", "logp_no")

SCORES = table_schema(
    ("query_id category candidate judge", pa.string()),
    ("score", pa.float64()),
    ("basis", pa.string()),
    ("items answered", pa.int32()),
    ("judgment", pa.string()),
)
JUDGMENTS = table_schema(
    ("query_id category candidate judge", pa.string()),
    ("item", pa.int32()),
    ("item_text group", pa.string()),
    (" ".join(_ANSWERS), pa.float64()),
    ("status text judgment", pa.string()),
)


@dataclass(frozen=True)
class ExportNames:
    """What ids stand for."""

    judge: str
    queries: Mapping[str, Query]
    checklists: Mapping[str, Checklist]

    def categories(self, query_ids: pa.ChunkedArray) -> pa.Array:
        """Return the category of each query; missing where it has none."""
        known = pa.array([query.category for query in self.queries.values()], pa.string())
        places = pc.index_in(query_ids, value_set=pa.array(list(self.queries), pa.string()))
        return _one_array(known.take(_one_array(places)))


def score_rows(scores: pa.Table, names: ExportNames, rows: int = 50_000) -> Iterator[pa.Table]:
    """Yield the scores with categories and the judge, some rows at a time."""
    for start in range(0, scores.num_rows, rows):
        part = scores.slice(start, rows)
        columns = {name: part[name] for name in part.column_names}
        columns["category"] = names.categories(part["query_id"])
        columns["judge"] = pa.repeat(pa.scalar(names.judge, pa.string()), part.num_rows)
        yield pa.table([columns[name] for name in SCORES.names], schema=SCORES)


def answer_rows(
    scores: pa.Table, ledger: Iterable[pa.Table], names: ExportNames
) -> Iterator[pa.Table]:
    """Yield one row an answer, one table a part of the ledger, in the order of the scores.

    Responses that share a judgment have its answers each.
    """
    items = _Items(names.checklists)
    for part in ledger:
        found = _one_array(pc.index_in(scores["judgment"], value_set=part["key"]))
        chosen = np.flatnonzero(found.is_valid().to_numpy(zero_copy_only=False))
        if len(chosen):
            cells = scores.take(pa.array(chosen))
            yield _exploded(cells, part.take(found.drop_null()), items, names)


def _exploded(cells: pa.Table, part: pa.Table, items: _Items, names: ExportNames) -> pa.Table:
    lengths = pc.list_value_length(part["status"]).to_numpy()
    rows = np.repeat(np.arange(len(lengths)), lengths)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    cells = cells.append_column("category", names.categories(cells["query_id"]))
    cells = cells.select(["query_id", "category", "candidate", "judgment"]).take(pa.array(rows))
    columns = {
        **{name: cells[name] for name in cells.column_names},
        "judge": pa.repeat(pa.scalar(names.judge, pa.string()), len(rows)),
        "item": pa.array(within + 1, pa.int32()),
        **items.named(cells["query_id"], within),
        **{name: pc.list_flatten(part[name]) for name in (*_ANSWERS, "status")},
        "text": _texts(part["text"], lengths),
    }
    return pa.table([columns[name] for name in JUDGMENTS.names], schema=JUDGMENTS)


def _texts(column: pa.ChunkedArray, lengths: np.ndarray) -> pa.Array:
    """Return what the judge wrote, answer by answer; most judges write nothing at all."""
    if column.null_count == len(column):
        return pa.nulls(int(lengths.sum()), pa.string())
    lists = zip(column.to_pylist(), lengths.tolist(), strict=True)
    return pa.array([text for own, n in lists for text in own or [None] * n], pa.string())


class _Items:
    """The items of all checklists one after the other, to be found by query and place."""

    def __init__(self, checklists: Mapping[str, Checklist]) -> None:
        lists = checklists.values()
        self._queries = pa.array(list(checklists), pa.string())
        self._counts = np.array([len(each.items) for each in lists], np.int64)
        self._starts = np.cumsum(self._counts) - self._counts
        self._texts = pa.array([item for each in lists for item in each.items], pa.string())
        groups = (each.groups or (None,) * len(each.items) for each in lists)
        self._groups = pa.array([group for own in groups for group in own], pa.string())

    def named(self, query_ids: pa.ChunkedArray, within: np.ndarray) -> dict[str, pa.Array]:
        """Return each answer's item and its group; missing where the checklist has no such item."""
        queries = _one_array(pc.index_in(query_ids, value_set=self._queries))
        rows = queries.fill_null(0).to_numpy(zero_copy_only=False)
        known = queries.is_valid().to_numpy(zero_copy_only=False) & (within < self._counts[rows])
        places = pa.array(self._starts[rows] + within, mask=~known)
        return {"item_text": self._texts.take(places), "group": self._groups.take(places)}


def _one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


_MEAN = {"mean": "value", "mean_low": "low", "mean_high": "high"}
MOST_COLUMNS = 12
"""Candidates of a table that still fits a page."""

GROUPS = table_schema(
    ("candidate group dimension", pa.string()),
    ("whole", pa.bool_()),
    ("mean mean_low mean_high", pa.float64()),
    ("responses missing", pa.int64()),
)
GROUP_SCORES = table_schema(
    ("query_id category candidate judge group dimension", pa.string()),
    ("whole", pa.bool_()),
    ("mean", pa.float64()),
    ("items answered", pa.int32()),
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
            **{name: (own["mean"] or {}).get(part) for name, part in _MEAN.items()},
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
    names: ExportNames,
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


def show_groups(found: Found, left_out: int, judge: str) -> TextTable:
    """Return a row a group and a column a candidate; ExportError when that fits no page."""
    names = [own["candidate"] for own in found[0]["candidates"]] if found else []
    if len(names) > MOST_COLUMNS:
        raise ExportError(
            f"A table of {len(names)} candidates beside each other fits no page: "
            f"{MOST_COLUMNS} do.",
            hint="Export --to csv --what groups.",
        )
    return TextTable(
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
        yield f"Left out: {count_of(missing, 'missing answer', 'missing answers')}."
    if left_out:
        yield f"Not shown: {count_of(left_out, 'group', 'groups')}."


def _cell(mean: Mapping[str, float | None] | None) -> str:
    if mean is None or mean["value"] is None:
        return "\N{EN DASH}"
    low, high = mean["low"], mean["high"]
    value = f"{mean['value']:.2f}"
    if low is None or high is None or not (math.isfinite(low) and math.isfinite(high)):
        return value
    return f"{value} ({low:.2f}\N{EN DASH}{high:.2f})"
