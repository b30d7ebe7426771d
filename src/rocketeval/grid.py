"""Scores as a table, queries by candidates: what ranking and audit compute on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import BenchmarkError

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ScoreGrid:
    """Every candidate's score on every query; NaN where there is none."""

    query_ids: tuple[str, ...]
    """One per row."""
    candidates: tuple[str, ...]
    """One per column."""
    scores: Floats
    """Shape (queries, candidates), read-only."""

    def __post_init__(self) -> None:
        scores = np.array(self.scores, dtype=np.float64)
        expected = (len(self.query_ids), len(self.candidates))
        if scores.shape != expected:
            raise ValueError(f"scores have shape {scores.shape}, their names say {expected}")
        scores.setflags(write=False)
        object.__setattr__(self, "scores", scores)

    @classmethod
    def from_columns(
        cls,
        query_ids: Sequence[str],
        candidates: Sequence[str],
        values: Sequence[float | None],
    ) -> ScoreGrid:
        """The grid of parallel columns: queries in order of first appearance, candidates sorted.

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
        flat = np.full(len(rows) * len(columns), np.nan)
        numbers = np.array([np.nan if v is None else v for v in values], dtype=np.float64)
        _refuse_bad_cells(cells, numbers, tuple(rows), tuple(columns))
        flat[cells] = numbers
        return cls(tuple(rows), tuple(columns), flat.reshape(len(rows), len(columns)))

    @property
    def missing(self) -> int:
        """How many cells have no score."""
        return int(np.isnan(self.scores).sum())

    def mean_by_candidate(self) -> dict[str, float]:
        """Each candidate's mean over the queries it has a score on; NaN if there is none."""
        present = ~np.isnan(self.scores)
        counts = present.sum(axis=0)
        totals = np.where(present, self.scores, 0.0).sum(axis=0)
        means = np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)
        return dict(zip(self.candidates, means.tolist(), strict=True))


def _refuse_bad_cells(
    cells: Sequence[int], numbers: Floats, query_ids: Sequence[str], candidates: Sequence[str]
) -> None:
    if len(cells) != len(numbers):
        raise ValueError(f"{len(numbers)} scores for {len(cells)} responses")
    seen: set[int] = set()
    for cell, infinite in zip(cells, np.isinf(numbers).tolist(), strict=True):
        if cell not in seen and not infinite:
            seen.add(cell)
            continue
        row, column = divmod(cell, len(candidates))
        problem = "an infinite score" if infinite else "two scores"
        raise BenchmarkError(
            f"query {query_ids[row]!r}, candidate {candidates[column]!r} has {problem}",
            hint="Give each response one finite score, or leave it out.",
        )
