"""Differences of every two candidates, in groups that share resamples or signs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.certainty.compare import DIGITS

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

BLOCK_CELLS = 1_000_000
"""Differences that are worked on at once."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Every two columns of scores: (0, 1), (0, 2), ..., (1, 2), ..."""

    scores: Floats
    former: Ints
    latter: Ints
    shared: Ints
    """Queries that both have a score on."""
    moving: Ints
    """Those on which they differ."""

    @classmethod
    def of(cls, scores: Floats) -> Pairs:
        """All pairs of candidates, which are the columns."""
        former, latter = np.triu_indices(scores.shape[1], k=1)
        counts = [_counts(scores, column) for column in range(scores.shape[1])]
        shared, moving = (np.concatenate([count[side] for count in counts]) for side in (0, 1))
        return cls(scores, former, latter, shared, moving)

    def first(self, candidates: int) -> Pairs:
        """The pairs of the first candidates alone."""
        kept = self.latter < candidates
        return Pairs(
            self.scores[:, :candidates],
            self.former[kept],
            self.latter[kept],
            self.shared[kept],
            self.moving[kept],
        )

    def differences(self, chosen: Ints) -> Floats:
        """Of some pairs, a column each; NaN where one has no score."""
        columns = self.scores[:, self.former[chosen]] - self.scores[:, self.latter[chosen]]
        return columns.round(DIGITS)

    def grouped(self, sizes: Ints) -> Iterator[tuple[int, Ints]]:
        """Pairs of the same size together, in blocks."""
        block = max(1, BLOCK_CELLS // max(1, len(self.scores)))
        for size in np.unique(sizes).tolist():
            members = np.flatnonzero(sizes == size)
            for start in range(0, len(members), block):
                yield size, members[start : start + block]


def closed_up(differences: Floats, wanted: Bools) -> Floats:
    """The wanted differences of each column without gaps; all columns have as many.

    >>> closed_up(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[True, False], [False, True]]))
    array([[1., 4.]])
    """
    columns = differences.T[wanted.T]
    return np.ascontiguousarray(columns.reshape(differences.shape[1], -1).T)


def _counts(scores: Floats, column: int) -> tuple[Ints, Ints]:
    """Queries that a candidate shares with each later one, and those on which they differ."""
    differences = (scores[:, column : column + 1] - scores[:, column + 1 :]).round(DIGITS)
    shared = ~np.isnan(differences)
    return shared.sum(axis=0), (shared & (differences != 0.0)).sum(axis=0)
