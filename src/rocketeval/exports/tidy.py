"""Scores and answers as tidy tables: one row a response, one row an answer, names beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.records import Checklist, Query

_ANSWERS = ("p_yes", "p_low", "p_high", "mass", "logp_yes", "logp_no")

SCORES = pa.schema(
    [
        ("query_id", pa.string()),
        ("category", pa.string()),
        ("candidate", pa.string()),
        ("judge", pa.string()),
        ("score", pa.float64()),
        ("basis", pa.string()),
        ("items", pa.int32()),
        ("answered", pa.int32()),
        ("judgment", pa.string()),
    ]
)
JUDGMENTS = pa.schema(
    [
        ("query_id", pa.string()),
        ("category", pa.string()),
        ("candidate", pa.string()),
        ("judge", pa.string()),
        ("item", pa.int32()),
        ("item_text", pa.string()),
        ("group", pa.string()),
        *((name, pa.float64()) for name in _ANSWERS),
        ("status", pa.string()),
        ("text", pa.string()),
        ("judgment", pa.string()),
    ]
)


@dataclass(frozen=True)
class Names:
    """What ids stand for."""

    judge: str
    queries: Mapping[str, Query]
    checklists: Mapping[str, Checklist]

    def categories(self, query_ids: pa.ChunkedArray) -> pa.Array:
        """Return the category of each query; missing where it has none."""
        known = pa.array([query.category for query in self.queries.values()], pa.string())
        places = pc.index_in(query_ids, value_set=pa.array(list(self.queries), pa.string()))
        return _one_array(known.take(_one_array(places)))


def score_rows(scores: pa.Table, names: Names, rows: int = 50_000) -> Iterator[pa.Table]:
    """Yield the scores with categories and the judge, some rows at a time."""
    for start in range(0, scores.num_rows, rows):
        part = scores.slice(start, rows)
        columns = {name: part[name] for name in part.column_names}
        columns["category"] = names.categories(part["query_id"])
        columns["judge"] = pa.repeat(pa.scalar(names.judge, pa.string()), part.num_rows)
        yield pa.table([columns[name] for name in SCORES.names], schema=SCORES)


def answer_rows(scores: pa.Table, ledger: Iterable[pa.Table], names: Names) -> Iterator[pa.Table]:
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


def _exploded(cells: pa.Table, part: pa.Table, items: _Items, names: Names) -> pa.Table:
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
