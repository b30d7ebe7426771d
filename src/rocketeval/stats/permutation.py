"""Sign-flip test of a mean difference, and its statistical power.

If two candidates are equally good, each query's difference is equally likely to have either sign.
The test flips signs: all combinations for few queries, random ones otherwise.

Tests of all pairs of candidates control the family-wise error. Each pair is compared on the queries
that both have a score on. The p-values come from one set of random sign flips for all pairs
(Westfall and Young's step-down maxT procedure on studentized means). The chance that any pair
without a real difference is called significant is at most `1 - level`, however many candidates
there are.

Queries of one cluster, such as the turns of one conversation, are flipped together. Pairs that
share too few clusters for a significant result are never significant.

Rank intervals follow from the tests: a candidate's best rank is one more than the number of
candidates significantly better than it, and its worst rank counts those significantly worse. All
rank intervals contain the true ranks at the same time with probability `level` or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Bools, Floats, Ints
from rocketeval.stats.bootstrap import LEAST_DIFFERENCE, least_queries

ENUMERATED = 14
"""Up to this many nonzero differences, all combinations of signs are enumerated."""
FLIPS = 9_999
"""Number of random combinations otherwise."""
ROUNDING = 1e-9
"""Relative tolerance for sums equal to the observed one."""

_BLOCK_CELLS = 4_000_000


def sign_flip_p(differences: Floats, seed: int = 0) -> float:
    """Return the two-sided p-value of the mean difference; 1 if all differences are zero.

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0, 1.0, 2.0, 1.0]))
    0.03125
    """
    moving = differences[differences != 0.0]
    if moving.size == 0:
        return 1.0
    observed = abs(moving.sum()) - ROUNDING * np.abs(moving).sum()
    if moving.size <= ENUMERATED:
        extreme = np.abs(all_signs(moving.size) @ moving) >= observed
        return float(extreme.mean())
    extreme_flips = sum(
        int((np.abs(np.where(flips, -1.0, 1.0) @ moving) >= observed).sum())
        for flips in random_flips(moving.size, seed)
    )
    return (extreme_flips + 1) / (FLIPS + 1)


def all_signs(count: int) -> Floats:
    """Return all combinations of signs with the first one fixed; the rest are mirror images."""
    places = np.arange(2 ** (count - 1))[:, None] >> np.arange(count - 1)
    others = 1.0 - 2.0 * (places & 1)
    return np.column_stack([np.ones(len(others)), others])


def random_flips(count: int, seed: int) -> Iterator[NDArray[np.int8]]:
    """Yield blocks of rows, `FLIPS` in total, with 1 for each flipped sign."""
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK_CELLS // count)
    for start in range(0, FLIPS, block):
        rows = min(block, FLIPS - start)
        yield rng.integers(0, 2, size=(rows, count), dtype=np.int8)


POWER = 0.8
"""Statistical power: the probability of detecting a true difference."""
FARTHEST = 100
"""No number of queries is given if more than this many times the present ones are needed."""


def detectable_effect(spread: float, queries: int, level: float) -> float:
    """Return the smallest mean difference that `queries` detect at `level` with 80% power.

    `spread` is the standard deviation of the difference over queries. NaN with too few queries.
    """
    if queries < least_queries(level):
        return math.nan
    return _standard_errors(queries, level) * spread / math.sqrt(queries)


def queries_needed(effect: float, spread: float, level: float) -> int | None:
    """Return the queries needed to detect `effect` at `level` with 80% power; None for zero."""
    if effect == 0.0:
        return None
    ratio = spread / abs(effect)
    least = least_queries(level)
    needed = max(least, math.floor((_normal(level) * ratio) ** 2))
    while _standard_errors(needed, level) * ratio > math.sqrt(needed):
        needed += 1
    return needed


def _standard_errors(queries: int, level: float) -> float:
    """Return the effect in standard errors that is detected with 80% power."""
    from scipy.special import stdtrit

    tail = (1.0 - level) / 2.0
    return float(stdtrit(queries - 1, 1.0 - tail) + stdtrit(queries - 1, POWER))


def _normal(level: float) -> float:
    """Return the same for infinitely many queries."""
    from scipy.special import ndtri

    return float(ndtri(1.0 - (1.0 - level) / 2.0) + ndtri(POWER))


PAIR_FLIPS = 1_999
"""Random combinations of signs for the tests of all pairs."""


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

    def tied_groups(self, order: Sequence[int]) -> dict[int, int]:
        """Return the group number of each candidate, from 1, walking down a ranking.

        A group ends before a candidate that differs significantly, in either direction, from the
        first one in it.
        """
        better = self.better()
        differs = better | better.T
        groups: dict[int, int] = {}
        first, group = order[0], 1
        for column in order:
            if differs[first, column]:
                first, group = column, group + 1
            groups[column] = group
        return groups

    def outscored(self, order: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """Return, for each candidate, those later in a ranking that are significantly better."""
        later = np.tril(self.better()[np.ix_(order, order)], k=-1)
        return {
            column: tuple(order[other] for other in np.flatnonzero(later[:, place]).tolist())
            for place, column in enumerate(order)
        }


def pairwise_tests(
    scores: Floats,
    *,
    level: float,
    seed: int = 0,
    clusters: Ints | None = None,
    adjusted: bool = True,
    flips: int = PAIR_FLIPS,
) -> PairwiseTests:
    """Test every pair of columns of `scores` (one row per query, NaN where a score is missing).

    `clusters` numbers each row's cluster from 0; without it each row is its own. Without
    `adjusted`, each p-value is that of its pair alone.
    """
    places = np.arange(len(scores)) if clusters is None else clusters
    groups = int(places.max()) + 1
    first, second = np.triu_indices(scores.shape[1], k=1)
    parts = _Pairs(scores, places, groups, first, second)
    usable = np.flatnonzero(parts.shared >= least_queries(level))
    observed = np.zeros(len(first))
    for pairs, _, found in parts.statistics(np.ones((1, groups)), usable):
        observed[pairs] = found[0]
    rng = np.random.default_rng(seed)
    signs: Floats = 1.0 - 2.0 * rng.integers(0, 2, size=(flips, groups)).astype(np.float64)
    count = _exceeding if adjusted else _exceeding_alone
    p_values = (1.0 + count(parts, signs, observed, usable)) / (1.0 + flips)
    p_values = np.where(observed > 0.0, p_values, 1.0)
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
        self._groups = groups
        self._alone = bool((places == np.arange(len(scores))).all())
        self._order = np.argsort(places, kind="stable")
        self._filled, self._starts = np.unique(places[self._order], return_index=True)
        self.shared = np.zeros(len(first), np.int64)
        self.means = np.full(len(first), np.nan)
        self._squares = np.zeros(len(first))
        self._differ = np.zeros(len(first), bool)
        for block in self._blocks(np.arange(len(first))):
            sums, met = self._cluster_sums(block), self._cluster_sizes(block)
            self.shared[block] = (met > 0).sum(axis=0)
            self._squares[block] = (sums**2).sum(axis=0)
            least = LEAST_DIFFERENCE * np.maximum(met, 1.0)
            self._differ[block] = (np.abs(sums) >= least).any(axis=0)
            total = met.sum(axis=0)
            with np.errstate(invalid="ignore"):
                self.means[block] = sums.sum(axis=0) / total

    def _blocks(self, pairs: Ints) -> Iterator[Ints]:
        size = max(1, _BLOCK_CELLS // max(self._groups, len(self._scores)))
        for start in range(0, len(pairs), size):
            yield pairs[start : start + size]

    def _summed(self, values: Floats) -> Floats:
        if self._alone:
            return values
        sums = np.zeros((self._groups, values.shape[1]))
        sums[self._filled] = np.add.reduceat(values[self._order], self._starts, axis=0)
        return sums

    def _cluster_sums(self, block: Ints) -> Floats:
        ours, theirs = self._first[block], self._second[block]
        both = self._present[:, ours] * self._present[:, theirs]
        return self._summed((self._scores[:, ours] - self._scores[:, theirs]) * both)

    def _cluster_sizes(self, block: Ints) -> Floats:
        return self._summed(
            self._present[:, self._first[block]] * self._present[:, self._second[block]]
        )

    def statistics(self, signs: Floats, pairs: Ints) -> Iterator[tuple[Ints, slice, Floats]]:
        """Yield blocks of `pairs`, in their order, with the absolute studentized mean differences.

        Each block of pairs (columns) comes with one block of the rows of `signs` after another.
        """
        columns = signs @ self._summed(self._scores)
        for block in self._blocks(pairs):
            ours, theirs = self._first[block], self._second[block]
            clusters = None if self._complete else self._cluster_sums(block)
            size = max(1, _BLOCK_CELLS // len(block))
            for start in range(0, len(signs), size):
                flips = slice(start, start + size)
                if clusters is None:
                    sums = columns[flips, ours] - columns[flips, theirs]
                else:
                    sums = signs[flips] @ clusters
                yield block, flips, np.abs(self._studentized(sums, block))

    def _studentized(self, sums: Floats, block: Ints) -> Floats:
        count, squares = np.maximum(self.shared[block], 2), self._squares[block]
        variance = (squares - sums**2 / count) * count / (count - 1.0)
        # Equal differences everywhere leave rounding errors of a variance: as good as none.
        floor = 1e-18 * np.maximum(squares, 1e-300)
        statistics = sums / np.sqrt(np.maximum(variance, floor))
        found: Floats = np.where(self._differ[block], statistics, 0.0)
        return found


def _exceeding(parts: _Pairs, signs: Floats, observed: Floats, usable: Ints) -> Floats:
    """Return per pair how many flips reach it, by the step-down maxT rule."""
    rising = usable[np.argsort(observed[usable], kind="stable")]
    counts = np.zeros(len(observed))
    # The largest statistic of each flip so far, from the pair with the smallest observed one on.
    largest = np.zeros(len(signs))
    for pairs, flips, flipped in parts.statistics(signs, rising):
        flipped[:, 0] = np.maximum(flipped[:, 0], largest[flips])
        reached = np.maximum.accumulate(flipped, axis=1)
        largest[flips] = reached[:, -1]
        counts[pairs] += (reached >= observed[pairs] * (1.0 - 1e-9)).sum(axis=0)
    counts[rising] = np.maximum.accumulate(counts[rising[::-1]])[::-1]
    return counts


def _exceeding_alone(parts: _Pairs, signs: Floats, observed: Floats, usable: Ints) -> Floats:
    """Return per pair how many flips reach it, without adjustment."""
    counts = np.zeros(len(observed))
    for pairs, _, flipped in parts.statistics(signs, usable):
        counts[pairs] += (flipped >= observed[pairs] * (1.0 - 1e-9)).sum(axis=0)
    return counts


def holm(p_values: Floats) -> Floats:
    """Return a symmetric matrix of p-values, adjusted for all pairs by Holm's step-down rule."""
    first, second = np.triu_indices(len(p_values), k=1)
    adjusted = np.ones_like(p_values)
    adjusted[first, second] = adjusted[second, first] = holm_list(p_values[first, second])
    return adjusted


def holm_list(p_values: Floats) -> Floats:
    """Return a list of p-values, adjusted for all of them by Holm's step-down rule.

    >>> holm_list(np.array([0.04, 0.01, 0.5])).tolist()
    [0.08, 0.03, 0.5]
    """
    order = np.argsort(p_values, kind="stable")
    left = np.arange(len(p_values), 0, -1)
    adjusted = np.empty_like(p_values)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(p_values[order] * left))
    return adjusted
