"""Tidy tables of a run's wins, audit figures, scores, answers and item-group means."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.audit.audit import Audit
from rocketeval.audit.votes import CategoryAgreement, MarginAgreement
from rocketeval.errors import ExportError
from rocketeval.explain.groups import GroupColumn, GroupScore
from rocketeval.exports.display import TextTable
from rocketeval.ranking.rank import WinMatrix
from rocketeval.ranking.summary import table_of_rows
from rocketeval.records import Checklist, Interval, Query
from rocketeval.store.schema import APPLICABILITY, table_schema
from rocketeval.text import count_of

_ANSWERS = ("p_yes", "p_low", "p_high", "mass", "logp_yes", "logp_no")
_RESPONSE = ("query_id category candidate judge", pa.string())
AUDIT = table_schema(("section figure", pa.string()), ("value low high", pa.float64()))
PAIRS = table_schema(("candidate opponent", pa.string()), ("win_share", pa.float64()))
SCORES = table_schema(
    _RESPONSE,
    ("score", pa.float64()),
    ("basis", pa.string()),
    ("items answered", pa.int32()),
    ("judgment", pa.string()),
)
RUBRIC_SCORES = table_schema(
    *((field.name, field.type) for field in SCORES),
    ("applicable score_low score_high", pa.float64()),
)
"""The same for a run whose items have weights or kinds."""
JUDGMENTS = table_schema(
    _RESPONSE,
    ("item", pa.int32()),
    ("item_text group", pa.string()),
    (" ".join(_ANSWERS), pa.float64()),
    ("status text judgment", pa.string()),
)
RUBRIC_JUDGMENTS = table_schema(
    *((field.name, field.type) for field in JUDGMENTS),
    ("weight p_na na_low na_high", pa.float64()),
    ("kind", pa.string()),
)
"""The same with weights, kinds and applicability, for a run whose items have any."""
GROUPS = table_schema(
    ("candidate group dimension", pa.string()),
    ("whole", pa.bool_()),
    ("mean mean_low mean_high", pa.float64()),
    ("responses missing", pa.int64()),
)
GROUP_SCORES = table_schema(
    _RESPONSE,
    ("group dimension", pa.string()),
    ("whole", pa.bool_()),
    ("mean", pa.float64()),
    ("items answered", pa.int32()),
)


def wins_matrix(wins: WinMatrix) -> pa.Table:
    """Return one row and one column per candidate: the share of queries the row wins."""
    shares = [pa.array(column, pa.float64()) for column in zip(*wins.shares, strict=True)]
    names = pa.array(wins.candidates, pa.string())
    return pa.table([names, *shares], names=["candidate", *wins.candidates])


def wins_pairs(wins: WinMatrix) -> pa.Table:
    """Return two rows per pair with a common query, one for each direction."""
    rows = [
        (name, other, share)
        for name, shares in zip(wins.candidates, wins.shares, strict=True)
        for other, share in zip(wins.candidates, shares, strict=True)
        if share is not None
    ]
    return table_of_rows(rows, PAIRS)


def audit_table(audit: Audit) -> pa.Table:
    """Return one row per number of an audit, named by its field path."""
    rows = [(way[0], " > ".join(way[1:]), *figure) for way, figure in _numbers(audit, ()) if way]
    return table_of_rows(rows, AUDIT)


_Figure = tuple[float | None, float | None, float | None]


def _numbers(found: object, way: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], _Figure]]:
    if isinstance(found, Interval):
        yield way, (_known(found.value), _known(found.low), _known(found.high))
    elif isinstance(found, int | float) and not isinstance(found, bool):
        if _known(found) is not None:
            yield way, (float(found), None, None)
    elif isinstance(found, Mapping):
        for name, each in found.items():
            yield from _numbers(each, (*way, str(name)))
    elif isinstance(found, tuple):
        for place, each in enumerate(found, start=1):
            yield from _numbers(each, (*way, _label(each, place)))
    elif is_dataclass(found):
        for field in fields(found):
            yield from _numbers(getattr(found, field.name), (*way, field.name))


def _known(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def _label(entry: object, place: int) -> str:
    """Return the name of a list entry: its category, its margin, or its position."""
    if isinstance(entry, CategoryAgreement):
        return entry.category
    return str(entry.margin if isinstance(entry, MarginAgreement) else place)


@dataclass(frozen=True)
class ExportNames:
    """The judge, queries and checklists that ids refer to."""

    judge: str
    queries: Mapping[str, Query]
    checklists: Mapping[str, Checklist]

    def columns_for(self, query_ids: pa.ChunkedArray) -> dict[str, pa.Array]:
        """Return the category of each query (null without one) and the judge."""
        known = pa.array([query.category for query in self.queries.values()], pa.string())
        places = pc.index_in(query_ids, value_set=pa.array(list(self.queries), pa.string()))
        categories = _one_array(known.take(_one_array(places)))
        return {"category": categories, "judge": _repeated(self.judge, len(query_ids))}


def _repeated(text: str | None, times: int) -> pa.Array:
    return pa.repeat(pa.scalar(text, pa.string()), times)


def score_schema(scores: pa.Table) -> pa.Schema:
    """Return the columns of exported scores, with bounds if items have weights or kinds."""
    return RUBRIC_SCORES if "score_low" in scores.column_names else SCORES


def score_rows(scores: pa.Table, names: ExportNames, rows: int = 50_000) -> Iterator[pa.Table]:
    """Yield the scores with categories and the judge, in parts."""
    schema = score_schema(scores)
    for start in range(0, scores.num_rows, rows):
        part = scores.slice(start, rows)
        columns = {name: part[name] for name in part.column_names}
        columns |= names.columns_for(part["query_id"])
        yield pa.table([columns[name] for name in schema.names], schema=schema)


def answer_rows(
    scores: pa.Table, ledger: Iterable[pa.Table], names: ExportNames
) -> Iterator[pa.Table]:
    """Yield one row per answer and one table per ledger part, in the order of the scores.

    Responses that share a judgment each get its answers.
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
    cells = cells.select(["query_id", "candidate", "judgment"]).take(pa.array(rows))
    columns = {
        **{name: cells[name] for name in cells.column_names},
        **names.columns_for(cells["query_id"]),
        "item": pa.array(within + 1, pa.int32()),
        **items.named(cells["query_id"], within),
        **{name: pc.list_flatten(part[name]) for name in (*_ANSWERS, "status")},
        "text": _texts(part["text"], lengths),
    }
    if items.detailed:
        columns |= {name: _numbers_of(part[name], lengths) for name in APPLICABILITY}
    schema = RUBRIC_JUDGMENTS if items.detailed else JUDGMENTS
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _numbers_of(column: pa.ChunkedArray, lengths: np.ndarray) -> pa.Array:
    """Return one number per answer; null in judgments without the column."""
    lists = zip(column.to_pylist(), lengths.tolist(), strict=True)
    return pa.array([own for row, n in lists for own in row or [None] * n], pa.float64())


def _texts(column: pa.ChunkedArray, lengths: np.ndarray) -> pa.Array:
    """Return the text that the judge wrote for each answer; null for most judges."""
    if column.null_count == len(column):
        return pa.nulls(int(lengths.sum()), pa.string())
    lists = zip(column.to_pylist(), lengths.tolist(), strict=True)
    return pa.array([text for own, n in lists for text in own or [None] * n], pa.string())


class _Items:
    """The items of all checklists, indexed by query and position."""

    def __init__(self, checklists: Mapping[str, Checklist]) -> None:
        lists = checklists.values()
        self._queries = pa.array(list(checklists), pa.string())
        self._counts = np.array([len(each.items) for each in lists], np.int64)
        self._starts = np.cumsum(self._counts) - self._counts
        self._texts = pa.array([item for each in lists for item in each.items], pa.string())
        groups = (each.groups or (None,) * len(each.items) for each in lists)
        self._groups = pa.array([group for own in groups for group in own], pa.string())
        self.detailed = any(each.details is not None for each in lists)
        details = [own for each in lists for own in each.every_detail] if self.detailed else []
        self._weights = pa.array([own.weight for own in details], pa.float64())
        self._kinds = pa.array([str(own.kind) for own in details], pa.string())

    def named(self, query_ids: pa.ChunkedArray, within: np.ndarray) -> dict[str, pa.Array]:
        """Return each answer's item and group; null if the checklist has no such item."""
        queries = _one_array(pc.index_in(query_ids, value_set=self._queries))
        rows = queries.fill_null(0).to_numpy(zero_copy_only=False)
        known = queries.is_valid().to_numpy(zero_copy_only=False) & (within < self._counts[rows])
        places = pa.array(self._starts[rows] + within, mask=~known)
        found = {"item_text": self._texts.take(places), "group": self._groups.take(places)}
        if self.detailed:
            found |= {"weight": self._weights.take(places), "kind": self._kinds.take(places)}
        return found


def _one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


MOST_COLUMNS = 12
"""Most candidates in a table that fits on a page."""


def groups_table(found: Sequence[GroupScore]) -> pa.Table:
    """Return one row per candidate and group; an unknown bound is null."""
    rows = [
        (
            own.candidate,
            group.group,
            group.dimension,
            group.whole,
            *_ends(own.mean),
            own.responses,
            own.missing,
        )
        for group in found
        for own in group.candidates
    ]
    return table_of_rows(rows, GROUPS)


def group_score_rows(column: GroupColumn, cells: pa.Table, names: ExportNames) -> pa.Table:
    """Return one row per response with items of a group.

    `cells` has `query_id` and `candidate`, one row per response of the column.
    """
    chosen = np.flatnonzero(column.items > 0)
    there = cells.take(pa.array(chosen))
    group = column.group
    made = {
        "query_id": there["query_id"],
        "candidate": there["candidate"],
        **names.columns_for(there["query_id"]),
        "group": _repeated(group.name, len(chosen)),
        "dimension": _repeated(group.dimension, len(chosen)),
        "whole": pa.repeat(pa.scalar(group.whole), len(chosen)),
        "mean": pa.array(column.scores[chosen], pa.float64(), from_pandas=True),
        "items": pa.array(column.items[chosen], pa.int32()),
        "answered": pa.array(column.answered[chosen], pa.int32()),
    }
    return pa.table([made[name] for name in GROUP_SCORES.names], schema=GROUP_SCORES)


def show_groups(found: Sequence[GroupScore], left_out: int, judge: str, about: str) -> TextTable:
    """Return one row per group and one column per candidate; raise ExportError if too wide.

    `about` says what a figure is.
    """
    names = [own.candidate for own in found[0].candidates] if found else []
    if len(names) > MOST_COLUMNS:
        raise ExportError(
            f"A table of {len(names)} candidates does not fit on a page; at most "
            f"{MOST_COLUMNS} fit.",
            hint="Use --to csv --what groups.",
        )
    return TextTable(
        title=f"Results by item group, judged by {judge}",
        label="groups",
        heads=("Group", *names),
        numeric=(False, *(True for _ in names)),
        rows=tuple(
            (_title(group), *(_cell(own.mean) for own in group.candidates)) for group in found
        ),
        notes=(about, *_notes(found, left_out)),
    )


def _title(group: GroupScore) -> str:
    """Return a group's name; mark a whole dimension, which may share a name with a group."""
    return f"{group.group} (all)" if group.whole else group.group


def _notes(found: Sequence[GroupScore], left_out: int) -> Iterator[str]:
    yield "In parentheses: intervals from resampled queries."
    missing = sum(own.missing for group in found if not group.whole for own in group.candidates)
    if missing:
        yield f"Left out: {count_of(missing, 'unanswered item', 'unanswered items')}."
    if left_out:
        yield f"Not shown: {count_of(left_out, 'group', 'groups')}."


def _cell(mean: Interval | None) -> str:
    value, low, high = _ends(mean)
    if value is None:
        return "\N{EN DASH}"
    ends = "" if low is None or high is None else f" ({low:.2f}\N{EN DASH}{high:.2f})"
    return f"{value:.2f}{ends}"


def _ends(found: Interval | None) -> _Figure:
    """Return the figure and its bounds; None if unknown."""
    if found is None:
        return None, None, None
    value, low, high = (
        end if math.isfinite(end) else None for end in (found.value, found.low, found.high)
    )
    return value, low, high
