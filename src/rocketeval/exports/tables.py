"""A ranking, its win matrix and an audit's figures as tables of columns."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from rocketeval.exports.csv_text import csv_text
from rocketeval.ranking.rank import Ranking, WinMatrix
from rocketeval.records import Interval

RANKING = pa.schema(
    [
        ("rank", pa.int64()),
        ("rank_low", pa.int64()),
        ("rank_high", pa.int64()),
        ("candidate", pa.string()),
        ("rating", pa.float64()),
        ("rating_low", pa.float64()),
        ("rating_high", pa.float64()),
        ("mean_score", pa.float64()),
        ("mean_score_low", pa.float64()),
        ("mean_score_high", pa.float64()),
        ("queries", pa.int64()),
        ("missing", pa.int64()),
        ("group", pa.int64()),
    ]
)
AUDIT = pa.schema(
    [
        ("section", pa.string()),
        ("figure", pa.string()),
        ("value", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
    ]
)
PAIRS = pa.schema(
    [("candidate", pa.string()), ("opponent", pa.string()), ("win_share", pa.float64())]
)


def ranking_table(ranking: Ranking) -> pa.Table:
    """Return one row a ranked candidate; an unknown bound is missing."""
    rows = [
        (
            row.rank,
            row.rank_low,
            row.rank_high,
            row.candidate,
            *_known(row.rating),
            *_known(row.mean_score),
            row.queries,
            row.missing,
            row.group,
        )
        for row in ranking.rows
    ]
    return _table(rows, RANKING)


def ranking_csv(ranking: Ranking) -> str:
    """Return the leaderboard as CSV, as it stands in every run."""
    return "".join(csv_text(RANKING.names, [ranking_table(ranking)]))


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
    return _table(rows, PAIRS)


def audit_table(audit: Mapping[str, Any]) -> pa.Table:
    """Return one row a number in an audit, named by the way to it, intervals beside it."""
    rows = [
        (section, " > ".join(way), *figure)
        for section, found in audit.items()
        for way, figure in _numbers(found, ())
    ]
    return _table(rows, AUDIT)


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


def _known(figure: Interval) -> list[float | None]:
    return [None if math.isnan(x) else x for x in (figure.value, figure.low, figure.high)]


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)
