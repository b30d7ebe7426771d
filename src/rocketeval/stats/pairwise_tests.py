"""Significance tests of all pairs of candidates, with family-wise error control.

Each pair is compared by its mean score difference over the queries that both have a score on. The
p-values come from one set of random sign flips for all pairs (Westfall and Young's step-down maxT
procedure on studentized means): under the null hypothesis a query's differences are as likely to
have the opposite signs. The chance that any pair without a real difference is called significant is
at most `1 - level`, however many candidates there are.

Queries of one cluster, such as the turns of one conversation, are flipped together. Pairs that
share too few clusters for a significant result are never significant.

Rank intervals follow from the tests: a candidate's best rank is one more than the number of
candidates significantly better than it, and its worst rank counts those significantly worse. All
rank intervals contain the true ranks at the same time with probability `level` or more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Bools, Floats, Ints
from rocketeval.stats.bootstrap import least_queries

FLIPS = 1_999
"""Random combinations of signs."""

_BLOCK_CELLS = 8_000_000


@dataclass(frozen=True, slots=True, eq=False)
class PairwiseTests:
    """Mean score differences of all pairs of candidates, and their adjusted p-values."""

    differences: Floats
    """Mean score of the row's candidate minus that of the column's, over shared queries; NaN where
    two share none."""
    p_values: Floats
    """Two-sided and adjusted for all pairs; 1 on the diagonal and where two share too little."""
    level: float

    def better(self) -> Bools:
        """Return, for each row and column, whether the row's candidate is significantly better."""
        significant = self.p_values <= 1.0 - self.level + 1e-12
        found: Bools = significant & (np.nan_to_num(self.differences) > 0.0)
        return found

    def rank_bounds(self) -> tuple[Ints, Ints]:
        """Return the best and the worst rank of each candidate.

        >>> rows = np.arange(20.0)[:, None] % 3 + np.array([2.0, 0.1, 0.0])
        >>> rows[:, 1:] += np.sin(np.arange(40.0)).reshape(20, 2)
        >>> [bounds.tolist() for bounds in pairwise_tests(rows, level=0.95).rank_bounds()]
        [[1, 2, 2], [1, 3, 3]]
        """
        better = self.better()
        best: Ints = 1 + better.sum(axis=0)
        worst: Ints = len(better) - better.sum(axis=1)
        return best, worst


def pairwise_tests(
    scores: Floats,
    *,
    level: float,
    seed: int = 0,
    clusters: Ints | None = None,
    adjusted: bool = True,
    flips: int = FLIPS,
) -> PairwiseTests:
    """Test every pair of columns of `scores` (one row per query, NaN where a score is missing).

    `clusters` numbers each row's cluster from 0; without it each row is its own. Without
    `adjusted`, each p-value is that of its pair alone.
    """
    places = np.arange(len(scores)) if clusters is None else clusters
    groups = int(places.max()) + 1
    first, second = np.triu_indices(scores.shape[1], k=1)
    parts = _Pairs(scores, places, groups, first, second)
    usable = parts.shared >= least_queries(level)
    observed = np.where(usable, np.abs(parts.statistics(np.ones((1, groups)))[0]), 0.0)
    rng = np.random.default_rng(seed)
    signs: Floats = 1.0 - 2.0 * rng.integers(0, 2, size=(flips, groups)).astype(np.float64)
    count = _exceeding if adjusted else _exceeding_alone
    p_values = (1.0 + count(parts, signs, observed, usable)) / (1.0 + flips)
    p_values = np.where(usable & (observed > 0.0), p_values, 1.0)
    candidates = scores.shape[1]
    matrix, differences = np.ones((candidates, candidates)), np.zeros((candidates, candidates))
    matrix[first, second] = matrix[second, first] = p_values
    differences[first, second], differences[second, first] = parts.means, -parts.means
    return PairwiseTests(differences, matrix, level)


class _Pairs:
    """Sums over clusters of every pair's score differences."""

    def __init__(
        self, scores: Floats, places: Ints, groups: int, first: Ints, second: Ints
    ) -> None:
        present = ~np.isnan(scores)
        self._first, self._second = first, second
        self._complete = bool(present.all())
        centered = np.where(present, scores, 0.0)
        if self._complete:
            # What all candidates share in a query cancels in differences; less is lost to rounding.
            centered = centered - centered.mean(axis=1, keepdims=True)
        self._scores, self._present = centered, present.astype(np.float64)
        self._places, self._groups = places, groups
        self.shared = np.zeros(len(first), np.int64)
        self.means = np.full(len(first), np.nan)
        self._squares = np.zeros(len(first))
        for block in self._blocks():
            sums, met = self._cluster_sums(block), self._cluster_sizes(block)
            self.shared[block] = (met > 0).sum(axis=0)
            self._squares[block] = (sums**2).sum(axis=0)
            total = met.sum(axis=0)
            np.divide(sums.sum(axis=0), total, out=self.means[block], where=total > 0)

    def _blocks(self) -> Iterator[slice]:
        size = max(1, _BLOCK_CELLS // max(self._groups, len(self._scores)))
        for start in range(0, len(self._first), size):
            yield slice(start, min(start + size, len(self._first)))

    def _summed(self, values: Floats) -> Floats:
        sums = np.zeros((self._groups, values.shape[1]))
        np.add.at(sums, self._places, values)
        return sums

    def _cluster_sums(self, block: slice) -> Floats:
        ours, theirs = self._first[block], self._second[block]
        both = self._present[:, ours] * self._present[:, theirs]
        return self._summed((self._scores[:, ours] - self._scores[:, theirs]) * both)

    def _cluster_sizes(self, block: slice) -> Floats:
        return self._summed(
            self._present[:, self._first[block]] * self._present[:, self._second[block]]
        )

    def statistics(self, signs: Floats) -> Floats:
        """Return the studentized mean difference of every pair (column) under each row of signs."""
        if self._complete:
            columns = signs @ self._summed(self._scores)
            sums = columns[:, self._first] - columns[:, self._second]
        else:
            sums = np.concatenate(
                [signs @ self._cluster_sums(block) for block in self._blocks()], axis=1
            )
        return self._studentized(sums)

    def _studentized(self, sums: Floats) -> Floats:
        count = np.maximum(self.shared, 2)
        variance = (self._squares - sums**2 / count) * count / (count - 1.0)
        # Equal differences everywhere leave rounding errors of a variance: as good as none.
        floor = 1e-18 * np.maximum(self._squares, 1e-300)
        found: Floats = np.where(
            self._squares > 0.0, sums / np.sqrt(np.maximum(variance, floor)), 0.0
        )
        return found


def _flip_blocks(parts: _Pairs, signs: Floats) -> Iterator[Floats]:
    """Yield the absolute statistics of blocks of flips, one row per flip."""
    size = max(1, _BLOCK_CELLS // max(1, len(parts.shared)))
    for start in range(0, len(signs), size):
        yield np.abs(parts.statistics(signs[start : start + size]))


def _exceeding(parts: _Pairs, signs: Floats, observed: Floats, usable: Bools) -> Floats:
    """Return per pair how many flips reach it, by the step-down maxT rule."""
    order = np.argsort(-observed, kind="stable")
    counts = np.zeros(len(observed))
    tolerance = observed[order] * (1.0 - 1e-9)
    for flipped in _flip_blocks(parts, signs):
        sorted_ = np.where(usable, flipped, 0.0)[:, order]
        largest = np.maximum.accumulate(sorted_[:, ::-1], axis=1)[:, ::-1]
        counts += (largest >= tolerance).sum(axis=0)
    counts = np.maximum.accumulate(counts)
    found = np.empty_like(counts)
    found[order] = counts
    return found


def _exceeding_alone(parts: _Pairs, signs: Floats, observed: Floats, usable: Bools) -> Floats:
    """Return per pair how many flips reach it, without adjustment."""
    counts = np.zeros(len(observed))
    for flipped in _flip_blocks(parts, signs):
        counts += (flipped >= observed * (1.0 - 1e-9)).sum(axis=0)
    return counts
