"""Scores as a query-by-candidate grid, answers as columns, and item weights.

The report shows only weights that the scorer uses.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Ints
from rocketeval.config import RunConfig
from rocketeval.report.findings import Findings
from rocketeval.report.model import Weights
from rocketeval.store.manifest import LearnedFacts
from rocketeval.store.schema import no_judgments

ANSWER_COLUMNS = ["key", "p_yes", "p_low", "p_high", "status", "neutralised", "p_na"]


@dataclass(frozen=True, eq=False)
class ResponseGrid:
    """All responses of a run as a query-by-candidate grid."""

    query_ids: tuple[str, ...]
    """One per row, in benchmark order."""
    candidates: tuple[str, ...]
    """One per column, in ranking order."""
    scores: Floats
    """NaN if missing."""
    responses: NDArray[np.bool_]
    """Whether the candidate responded to the query."""
    keys: pa.Array
    """Judgment key of each cell, row by row; null if missing."""

    def keys_of(self, places: Sequence[int]) -> pa.Array:
        """Return the keys of some queries' cells, row by row."""
        width = len(self.candidates)
        cells = np.asarray(places, dtype=np.int64)[:, None] * width + np.arange(width)
        return self.keys.take(pa.array(cells.ravel()))


def make_cells(
    scores: pa.Table, query_ids: Sequence[str], candidates: Sequence[str]
) -> ResponseGrid:
    """Arrange a table of scores as a grid; candidates not listed are left out."""
    rows = _places(scores["query_id"], query_ids)
    columns = _places(scores["candidate"], candidates)
    here = np.flatnonzero((rows >= 0) & (columns >= 0))
    shape = (len(query_ids), len(candidates))
    cells = rows[here] * len(candidates) + columns[here]
    grid = np.full(shape[0] * shape[1], np.nan)
    grid[cells] = scores["score"].to_numpy(zero_copy_only=False).astype(np.float64)[here]
    source = np.full(len(grid), -1, dtype=np.int64)
    source[cells] = here
    there = source >= 0
    return ResponseGrid(
        tuple(query_ids),
        tuple(candidates),
        grid.reshape(shape),
        there.reshape(shape),
        _one_array(scores["judgment"]).take(pa.array(source, mask=~there)),
    )


@dataclass(frozen=True, eq=False)
class JudgedColumns:
    """The judgments of some queries, as columns."""

    places: dict[int, int]
    """Start of each query's cells in `rows`."""
    width: int
    """Number of candidates."""
    rows: Ints
    """Column row of each cell; -1 if it was not judged."""
    offsets: Ints
    """Start of each row's answers, then the end of the last row."""
    p_yes: Floats
    p_low: Floats
    p_high: Floats
    status: Ints
    """Index into `statuses`."""
    statuses: tuple[str, ...]
    neutralised: Ints
    """Number of neutralized marks per row."""
    p_na: Floats
    """Probability of "not applicable"; NaN if that is no answer."""

    def rows_of(self, place: int) -> Ints:
        """Return the row of each candidate's judgment."""
        start = self.places[place]
        return self.rows[start : start + self.width]

    def spots(self, place: int, items: int) -> tuple[Ints, NDArray[np.bool_]]:
        """Return the answer positions of a query, candidates by items, and which of them exist."""
        rows = self.rows_of(place)
        starts, ends = self.offsets[rows], self.offsets[rows + 1]
        spots = starts[:, None] + np.arange(items)
        there = (rows >= 0)[:, None] & (spots < ends[:, None])
        return np.where(there, spots, 0), there

    def answers(self, place: int, items: int) -> Floats:
        """Return a query's answers, candidates by items; NaN if unanswered."""
        spots, there = self.spots(place, items)
        if not len(self.p_yes):
            return np.full(spots.shape, np.nan)
        return np.where(there, self.p_yes[spots], np.nan)


def read_judged(
    cells: ResponseGrid, places: Sequence[int], judgments: Iterable[pa.Table]
) -> JudgedColumns:
    """Return the judgments of some queries from ledger tables with `ANSWER_COLUMNS`."""
    keys = cells.keys_of(places)
    parts = [
        table.filter(pc.is_in(table["key"], value_set=keys, skip_nulls=True)) for table in judgments
    ]
    ledger = pa.concat_tables([no_judgments(ANSWER_COLUMNS), *parts]).combine_chunks()
    width = len(cells.candidates)
    found = pc.fill_null(pc.index_in(keys, value_set=ledger["key"], skip_nulls=True), -1)
    lengths = pc.fill_null(pc.list_value_length(ledger["p_yes"]), 0)
    statuses = _one_array(pc.list_flatten(ledger["status"])).dictionary_encode()
    offsets = np.concatenate([[0], np.cumsum(_numbers(lengths))]).astype(np.int64)
    return JudgedColumns(
        places={place: number * width for number, place in enumerate(places)},
        width=width,
        rows=_numbers(found),
        offsets=offsets,
        p_yes=_flat(ledger["p_yes"]),
        p_low=_flat(ledger["p_low"]),
        p_high=_flat(ledger["p_high"]),
        status=_numbers(statuses.indices),
        statuses=tuple(statuses.dictionary.to_pylist()),
        neutralised=_numbers(ledger["neutralised"]),
        p_na=_flat_with_gaps(ledger["p_na"], offsets),
    )


def _flat(lists: pa.ChunkedArray) -> Floats:
    values: Floats = pc.list_flatten(lists).to_numpy(zero_copy_only=False).astype(np.float64)
    return values


def _flat_with_gaps(lists: pa.ChunkedArray, offsets: Ints) -> Floats:
    """Return a column in which some rows have no list; their values are NaN."""
    values = np.full(int(offsets[-1]), np.nan)
    there = lists.is_valid().to_numpy(zero_copy_only=False).astype(bool)
    values[np.repeat(there, np.diff(offsets))] = _flat(lists)
    return values


def _places(names: pa.ChunkedArray, order: Sequence[str]) -> Ints:
    found = pc.index_in(names, value_set=pa.array(order, pa.string()))
    return _numbers(pc.fill_null(found, -1))


def _numbers(column: pa.Array | pa.ChunkedArray) -> Ints:
    numbers: Ints = column.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    """Return the column as one array; empty if the column has no chunks."""
    return pa.concat_arrays([pa.array([], column.type), *column.chunks])


def known(row: Floats) -> list[float | None]:
    """Return numbers for JSON, rounded to four digits; None for NaN."""
    return [None if number != number else number for number in row.round(4).tolist()]


def spread(scores: Floats) -> Floats:
    """Return the standard deviation of each query's scores; NaN without scores."""
    present = ~np.isnan(scores)
    counts = present.sum(axis=1)
    least = np.maximum(counts, 1)
    means = np.where(present, scores, 0.0).sum(axis=1) / least
    apart = np.where(present, scores - means[:, None], 0.0)
    return np.where(counts > 0, np.sqrt((apart**2).sum(axis=1) / least), np.nan)


PARTS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles of the box plots."""


def quantiles(scores: Floats) -> list[tuple[float, ...] | None]:
    """Return each candidate's score quantiles; None for a candidate without scores.

    >>> quantiles(np.array([[1.0, np.nan], [3.0, np.nan]]))
    [(1.1, 1.5, 2.0, 2.5, 2.9), None]
    """
    columns = (column[~np.isnan(column)] for column in scores.T)
    return [
        tuple(np.quantile(known, PARTS).round(4).tolist()) if len(known) else None
        for known in columns
    ]


_WEIGH_ALIKE = frozenset({"mean", "hard", "isotonic", "points"})
_MEAN_WITHOUT_LABELS = frozenset({"extra_trees", "random_forest"})
"""Scorers that use the mean on queries without learned weights."""
_LEARN_FROM_VOTES = frozenset({"pooled_logistic"})


@dataclass(frozen=True, slots=True)
class ScorerWeights:
    """How a scorer weights items."""

    weights: Weights
    learned_from: str
    """"labels", "votes" or empty."""
    else_equal: bool
    """Whether items have equal weights on queries without learned weights."""

    def of_items(self, items: int, learned: Sequence[float] | None) -> Floats | None:
        """Return the item weights of a query; None if the scorer has no weights per item."""
        if learned is not None:
            return np.array(learned)
        return np.full(items, 1.0 / max(items, 1)) if self.else_equal else None


def weighing(findings: Findings, config: RunConfig) -> ScorerWeights:
    """Return how the run's scorer weights items."""
    score = findings.stages.score
    kind, learned = score.scorer or config.scorer.kind, score.learned
    if findings.weights:
        return ScorerWeights("learned", _learned_from(kind, learned), kind in _MEAN_WITHOUT_LABELS)
    if learned.queries_by_mean:
        # No query has learned weights, so every query is scored by the mean.
        return ScorerWeights("equal", "", else_equal=True)
    alike = kind in _WEIGH_ALIKE
    return ScorerWeights("equal" if alike else "none", _learned_from(kind, learned), alike)


def _learned_from(kind: str, learned: LearnedFacts) -> str:
    if learned.votes:
        return "votes"
    if learned.labels:
        return "labels"
    if learned == LearnedFacts():
        return ""
    # The scorer was fitted in another run, which counted the reference data.
    return "votes" if kind in _LEARN_FROM_VOTES else "labels"
