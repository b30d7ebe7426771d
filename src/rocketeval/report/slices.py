"""Slices: queries with the same value of a field, and every candidate's mean score on them.

Fields are the category, the tags, the length, the number of turns, and further fields of a query
with few values. A candidate's intervals hold for all slices of a field together (Bonferroni), since
a reader looks at all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

import numpy as np

from rocketeval.arrays import Floats, Ints
from rocketeval.ranking.stage import clip_interval
from rocketeval.records import Interval, Query
from rocketeval.stats.bootstrap import intervals, ratio_draws, renumbered
from rocketeval.text import percentage

MOST_VALUES = 24
"""Slices per field on the page, the largest."""
MOST_FIELDS = 8
MOST_CANDIDATES = 100
"""Candidates with means by slice, best first."""
MOST_LETTERS = 60
"""Longest value of a further field; longer ones are texts."""
_MOST_DRAWS = 5000
_TAIL_DRAWS = 10
_LENGTHS = (200, 800, 3200)
_MOST_TURNS = 5


class SliceField(TypedDict):
    """One field of the queries: its values, and those of each query."""

    name: str
    values: list[str]
    of: list[list[int]]
    """Indices into `values`, one list per query."""


@dataclass(frozen=True, slots=True)
class SliceMeans:
    """Mean scores on the queries of one slice."""

    field: str
    name: str
    queries: int
    means: tuple[Interval | None, ...]
    """One per candidate, for the first candidates of the head; None without a score."""


def slice_fields(queries: Sequence[Query]) -> list[SliceField]:
    """Return the fields by which the queries can be divided, the category first.

    >>> field, = slice_fields([Query("a", "?", category="x"), Query("b", "?", category="y")])
    >>> field["name"], field["values"], field["of"]
    ('category', ['x', 'y'], [[0], [1]])
    """
    columns: dict[str, list[tuple[str, ...]]] = {
        "category": [() if one.category is None else (one.category,) for one in queries],
        "tag": [tuple(dict.fromkeys(one.tags)) for one in queries],
        "length": [(_length(len(one.text)),) for one in queries],
        "turns": [(_turns(one),) for one in queries],
        **_further(queries),
    }
    made = (_field(name, column) for name, column in columns.items())
    return [field for field in made if _divides(field)][:MOST_FIELDS]


def _divides(field: SliceField) -> bool:
    values = len(field["values"])
    return values > 1 or (values == 1 and not all(field["of"]))


def _field(name: str, column: Sequence[tuple[str, ...]]) -> SliceField:
    order = _ORDERED.get(name)
    sizes = Counter(value for values in column for value in values)
    names = sorted(sizes, key=lambda value: (order(value) if order else 0, value))
    places = {value: place for place, value in enumerate(names)}
    of = [[places[value] for value in values] for values in column]
    return {"name": name, "values": names, "of": of}


def _length(letters: int) -> str:
    """Return the band of a length.

    >>> _length(20), _length(200), _length(5000)
    ('under 200 characters', '200-799 characters', '3,200 characters or more')
    """
    low = max((limit for limit in _LENGTHS if limit <= letters), default=0)
    if not low:
        return f"under {_LENGTHS[0]:,} characters"
    if low == _LENGTHS[-1]:
        return f"{low:,} characters or more"
    return f"{low:,}-{_LENGTHS[_LENGTHS.index(low) + 1] - 1:,} characters"


def _turns(query: Query) -> str:
    count = 1 + sum(turn.role == "user" for turn in query.history)
    if count >= _MOST_TURNS:
        return f"{_MOST_TURNS} turns or more"
    return "1 turn" if count == 1 else f"{count} turns"


def _band(name: str) -> int:
    """Return the place of a band among those of its field."""
    digits = "".join(mark for mark in name.partition("-")[0] if mark.isdigit())
    return 0 if name.startswith("under") else int(digits)


_ORDERED = {"length": _band, "turns": _band}


def _further(queries: Sequence[Query]) -> dict[str, list[tuple[str, ...]]]:
    """Return the further fields with few different, short values that repeat."""
    names = dict.fromkeys(name for one in queries for name in one.metadata)
    columns = {name: [_value(one.metadata, name) for one in queries] for name in names}
    return {
        f"field {name}" if name in ("category", "tag", "length", "turns") else name: column
        for name, column in columns.items()
        if 1 < len({value for value in column if value}) <= min(MOST_VALUES, len(queries) // 2)
    }


def _value(metadata: Mapping[str, object], name: str) -> tuple[str, ...]:
    found = metadata.get(name)
    if isinstance(found, bool):
        return ("yes" if found else "no",)
    if not isinstance(found, str | int) or not 0 < len(str(found)) <= MOST_LETTERS:
        return ()
    return (str(found),)


def slice_means(
    scores: Floats,
    fields: Iterable[SliceField],
    *,
    places: Ints,
    times: int,
    seed: int,
    level: float,
    scale: tuple[float, float] | None = None,
) -> tuple[SliceMeans, ...]:
    """Return the means in the largest slices of each field, clipped to a scale if one is given.

    `places` numbers the cluster of each query.
    """
    shown = scores[:, :MOST_CANDIDATES]
    return tuple(
        SliceMeans(field["name"], name, len(rows), _means(shown[rows], places[rows], draws, scale))
        for field in fields
        if len(field["values"]) > 1
        for slices in [_rows(field)]
        for draws in [_Draws.of(len(slices), times, seed, level)]
        for name, rows in slices.items()
    )


def _rows(field: SliceField) -> dict[str, Ints]:
    """Return the queries of each of the largest slices, in the order of the values."""
    rows: dict[int, list[int]] = {}
    for query, values in enumerate(field["of"]):
        for value in values:
            rows.setdefault(value, []).append(query)
    kept = sorted(sorted(rows, key=lambda value: -len(rows[value]))[:MOST_VALUES])
    return {field["values"][value]: np.array(rows[value], dtype=np.int64) for value in kept}


@dataclass(frozen=True, slots=True)
class _Draws:
    """Settings of intervals that hold for several slices together."""

    times: int
    seed: int
    level: float

    @classmethod
    def of(cls, slices: int, times: int, seed: int, level: float) -> _Draws:
        beyond = (1.0 - level) / slices
        enough = min(_MOST_DRAWS, math.ceil(2 * _TAIL_DRAWS / beyond))
        return cls(max(times, enough), seed, 1.0 - beyond)


def _means(
    scores: Floats, places: Ints, draws: _Draws, scale: tuple[float, float] | None
) -> tuple[Interval | None, ...]:
    present = ~np.isnan(scores)
    known = np.where(present, scores, 0.0)
    counts = present.astype(np.float64)
    clusters = renumbered(places)
    drawn = ratio_draws(known, counts, times=draws.times, seed=draws.seed, queries=clusters)
    values = known.sum(axis=0) / np.maximum(counts.sum(axis=0), 1.0)
    met = np.array([len(np.unique(clusters[column])) for column in present.T], dtype=np.int64)
    found = intervals(values, drawn, met, draws.level)
    if scale is not None:
        found = [clip_interval(one, scale) for one in found]
    return tuple(_rounded(one) if there else None for one, there in zip(found, met, strict=True))


def _rounded(one: Interval) -> Interval:
    return Interval(*(round(end, 4) for end in (one.value, one.low, one.high)))


def slices_in_words(means: Sequence[SliceMeans], level: float) -> Iterator[str]:
    """Yield how sure the means of each field are, and how many slices it has."""
    for name, count in Counter(one.field for one in means).items():
        each = 1.0 - (1.0 - level) / count
        yield (
            f"By {name}: {count} slices. A candidate's intervals hold for all of them together at "
            f"{percentage(level)} ({each:.1%} each, Bonferroni). Differences between candidates "
            "within a slice are not tested."
        )
