"""Score tables of queries by candidates, and the outcomes of comparisons.

An outcome is 1 if the first wins, -1 if the second wins, and 0 for a tie.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.records import Vote

if TYPE_CHECKING:
    import pyarrow as pa

Ints = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreGrid:
    """Every candidate's score on every query; NaN if missing."""

    query_ids: tuple[str, ...]
    """One per row."""
    candidates: tuple[str, ...]
    """One per column."""
    scores: Floats
    """Shape (queries, candidates), read-only."""
    clusters: tuple[str, ...] | None = None
    """The cluster of each row, where some queries depend on each other."""

    def __post_init__(self) -> None:
        scores = np.array(self.scores, dtype=np.float64)
        expected = (len(self.query_ids), len(self.candidates))
        if scores.shape != expected:
            raise ValueError(f"scores have shape {scores.shape}, expected {expected}")
        scores.setflags(write=False)
        object.__setattr__(self, "scores", scores)
        if self.clusters is not None and len(self.clusters) != len(self.query_ids):
            raise ValueError(f"{len(self.clusters)} clusters for {len(self.query_ids)} queries")

    def places(self) -> NDArray[np.int64]:
        """Return the number of each row's cluster, from 0 in order of first appearance."""
        if self.clusters is None:
            return np.arange(len(self.query_ids))
        numbers: dict[str, int] = {}
        return np.array(
            [numbers.setdefault(name, len(numbers)) for name in self.clusters], dtype=np.int64
        )

    def cluster_names(self) -> dict[str, str] | None:
        """Return the cluster of each query by its id; None where every query is independent."""
        if self.clusters is None:
            return None
        return dict(zip(self.query_ids, self.clusters, strict=True))

    def clustered(self, clusters: Mapping[str, str]) -> ScoreGrid:
        """Return the same grid with the cluster of each query, by its id; else its own id."""
        own = tuple(clusters.get(query, query) for query in self.query_ids)
        distinct = len(set(own)) == len(own)
        return replace(self, clusters=None if distinct else own)

    def with_scores(self, scores: Floats) -> ScoreGrid:
        """Return the same queries and candidates with other scores."""
        return replace(self, scores=scores)

    def take(self, rows: Sequence[int], columns: Sequence[int]) -> ScoreGrid:
        """Return some of the rows and columns, in this order."""
        return ScoreGrid(
            tuple(self.query_ids[row] for row in rows),
            tuple(self.candidates[column] for column in columns),
            self.scores[np.ix_(rows, columns)],
            None if self.clusters is None else tuple(self.clusters[row] for row in rows),
        )

    @classmethod
    def from_columns(
        cls,
        query_ids: Sequence[str],
        candidates: Sequence[str],
        values: Sequence[float | None],
    ) -> ScoreGrid:
        """Return the grid of parallel columns.

        Queries are in order of first appearance, candidates sorted.

        >>> grid = ScoreGrid.from_columns(["q", "q"], ["b", "a"], [7.0, None])
        >>> grid.candidates, grid.scores.tolist()
        (('a', 'b'), [[nan, 7.0]])
        """
        rows = {query: row for row, query in enumerate(dict.fromkeys(query_ids))}
        columns = {name: column for column, name in enumerate(sorted(set(candidates)))}
        cells = [
            rows[query] * len(columns) + columns[candidate]
            for query, candidate in zip(query_ids, candidates, strict=True)
        ]
        numbers = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
        return _laid_out(tuple(rows), tuple(columns), np.array(cells, dtype=np.int64), numbers)

    @property
    def missing(self) -> int:
        """Number of cells without a score."""
        return int(np.isnan(self.scores).sum())

    def mean_by_candidate(self) -> dict[str, float]:
        """Return each candidate's mean over its scored queries; NaN if it has none."""
        present = ~np.isnan(self.scores)
        counts = present.sum(axis=0)
        totals = np.where(present, self.scores, 0.0).sum(axis=0)
        means = np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)
        return dict(zip(self.candidates, means.tolist(), strict=True))


class GridBuilder:
    """Builds a grid from columns that arrive in parts.

    >>> import pyarrow as pa
    >>> builder = GridBuilder()
    >>> builder.add(pa.array(["q", "q"]), pa.array(["b", "a"]), np.array([7.0, np.nan]))
    >>> builder.grid().candidates, builder.grid().scores.tolist()
    (('a', 'b'), [[nan, 7.0]])
    """

    def __init__(self) -> None:
        self._queries: dict[str, int] = {}
        self._candidates: dict[str, int] = {}
        self._parts: list[tuple[Ints, Ints, Floats]] = []

    def add(self, query_ids: pa.Array, candidates: pa.Array, values: Floats) -> None:
        """Add a part: parallel columns of strings and numbers, NaN for a missing score."""
        rows = _numbered(query_ids, self._queries)
        self._parts.append((rows, _numbered(candidates, self._candidates), values))

    def grid(self) -> ScoreGrid:
        """Return the grid of all parts.

        Queries are in order of first appearance, candidates sorted.
        """
        names = sorted(self._candidates)
        places = np.zeros(len(names), np.int64)
        for column, name in enumerate(names):
            places[self._candidates[name]] = column
        cells = [rows * np.int64(len(names)) + places[columns] for rows, columns, _ in self._parts]
        numbers = [values for _, _, values in self._parts]
        return _laid_out(
            tuple(self._queries),
            tuple(names),
            np.concatenate([np.zeros(0, np.int64), *cells]),
            np.concatenate([np.zeros(0), *numbers]),
        )


def _numbered(column: pa.Array, known: dict[str, int]) -> Ints:
    """Return the index of each name in the column; add new names to `known`."""
    encoded = column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    own = np.array([known.setdefault(name, len(known)) for name in names], dtype=np.int32)
    numbers: Ints = own[encoded.indices.to_numpy()]
    return numbers


def _laid_out(
    query_ids: tuple[str, ...],
    candidates: tuple[str, ...],
    cells: NDArray[np.int64],
    numbers: Floats,
) -> ScoreGrid:
    """Return the grid with each number in its cell; cells are numbered row by row."""
    if len(cells) != len(numbers):
        raise ValueError(f"{len(numbers)} scores for {len(cells)} responses")
    filled = np.zeros(len(query_ids) * len(candidates), dtype=bool)
    filled[cells] = True
    if filled.sum() < len(cells) or np.isinf(numbers).any():
        _refuse_bad_cell(cells, numbers, query_ids, candidates)
    flat = np.full(len(filled), np.nan)
    flat[cells] = numbers
    return ScoreGrid(query_ids, candidates, flat.reshape(len(query_ids), len(candidates)))


def _refuse_bad_cell(
    cells: NDArray[np.int64], numbers: Floats, query_ids: Sequence[str], candidates: Sequence[str]
) -> None:
    """Raise BenchmarkError for the first cell with two scores or an infinite one."""
    seen: set[int] = set()
    for cell, infinite in zip(cells.tolist(), np.isinf(numbers).tolist(), strict=True):
        if cell not in seen and not infinite:
            seen.add(cell)
            continue
        row, column = divmod(cell, len(candidates))
        problem = "an infinite score" if infinite else "two scores"
        raise BenchmarkError(
            f"query {query_ids[row]!r}, candidate {candidates[column]!r} has {problem}",
            hint="Give each response one finite score, or leave it out.",
        )


ROUNDING = 1e-9
# 7.3 - 7.2 is 0.0999...96 in binary: without this slack, it would be a tie and 1.1 - 1.0 not.
# Smaller differences are ties also without a margin: the same answers in another order add up to
# almost the same score.

_SIGN = {"a": 1, "tie": 0, "b": -1}


def compare(first: Floats, second: Floats, tie_margin: float) -> NDArray[np.int8]:
    """Return 1 where the first score wins, -1 where it loses, and 0 if tied or missing."""
    threshold = win_threshold(tie_margin)
    difference = first - second
    return (difference >= threshold).astype(np.int8) - (difference <= -threshold).astype(np.int8)


def win_threshold(tie_margin: float) -> float:
    """Return the smallest difference that wins."""
    if not (math.isfinite(tie_margin) and tie_margin >= 0.0):
        raise ConfigError(
            f"the tie margin is {tie_margin}",
            hint="Use 0 or a small positive number on the scale of the scores, such as 0.1.",
        )
    return max(tie_margin - ROUNDING, ROUNDING)


def vote_outcomes(votes: Iterable[Vote]) -> NDArray[np.int8]:
    """Return the outcome of each vote for its first candidate.

    >>> vote_outcomes([Vote("q", "x", "y", "b"), Vote("q", "x", "y", "tie")]).tolist()
    [-1, 0]
    """
    return np.array([_SIGN[vote.winner] for vote in votes], dtype=np.int8)
