"""Pairwise comparisons of all candidates in a ranking, vectorized as matrix products."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Bools, Floats, Ints
from rocketeval.compare.pair import (
    DIGITS,
    ComparisonVerdict,
    compare,
    difference_ends,
    find_verdict,
)
from rocketeval.grid import ScoreGrid
from rocketeval.grid import compare as compare_scores
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import (
    NO_WIDTH,
    interval_without_spread,
    least_queries,
    resample_queries,
    tail_probability,
)
from rocketeval.stats.permutation import ENUMERATED, FLIPS, ROUNDING, all_signs, random_flips
from rocketeval.stopping.race import RaceResult
from rocketeval.stopping.summary import over_looks, widen_interval

BLOCK_CELLS = 1_000_000
"""Largest number of score differences in memory at once."""
FLIPPED_CELLS = 1_000_000
"""Largest number of sums of flipped differences in memory at once."""


@dataclass(frozen=True, eq=False)
class CandidatePairs:
    """All pairs of score columns, in the order (0, 1), (0, 2), ..., (1, 2), ..."""

    scores: Floats
    former: Ints
    latter: Ints
    shared: Ints
    """Queries on which both candidates have a score."""
    moving: Ints
    """Queries on which their scores differ."""

    @classmethod
    def of(cls, scores: Floats) -> CandidatePairs:
        """Return all pairs of candidates; each column is one candidate."""
        former, latter = np.triu_indices(scores.shape[1], k=1)
        counts = [_counts(scores, column) for column in range(scores.shape[1])]
        shared, moving = (np.concatenate([count[side] for count in counts]) for side in (0, 1))
        return cls(scores, former, latter, shared, moving)

    def first(self, candidates: int) -> CandidatePairs:
        """Return the pairs among the first candidates only."""
        kept = self.latter < candidates
        return CandidatePairs(
            self.scores[:, :candidates],
            self.former[kept],
            self.latter[kept],
            self.shared[kept],
            self.moving[kept],
        )

    def differences(self, chosen: Ints) -> Floats:
        """Return the score differences, one column per pair; NaN where a score is missing."""
        columns = self.scores[:, self.former[chosen]] - self.scores[:, self.latter[chosen]]
        return columns.round(DIGITS)

    def grouped(self, sizes: Ints) -> Iterator[tuple[int, Ints]]:
        """Yield blocks of pairs that have the same size."""
        block = max(1, BLOCK_CELLS // max(1, len(self.scores)))
        for size in np.unique(sizes).tolist():
            members = np.flatnonzero(sizes == size)
            for start in range(0, len(members), block):
                yield size, members[start : start + block]


def closed_up(differences: Floats, wanted: Bools) -> Floats:
    """Return the wanted differences of each column without gaps.

    Every column must have the same number of wanted differences.

    >>> closed_up(np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[True, False], [False, True]]))
    array([[1., 4.]])
    """
    columns = differences.T[wanted.T]
    return np.ascontiguousarray(columns.reshape(differences.shape[1], -1).T)


def _counts(scores: Floats, column: int) -> tuple[Ints, Ints]:
    """Count the queries a candidate shares with each later one, and those that differ."""
    differences = (scores[:, column : column + 1] - scores[:, column + 1 :]).round(DIGITS)
    shared = ~np.isnan(differences)
    return shared.sum(axis=0), (shared & (differences != 0.0)).sum(axis=0)


_DRAWING = 200
# Drawing one random sign takes about as long as this many multiplications.
_MOST_CLOSE = 0.01
_CLOSE = 1e-10


def flip_p_values(pairs: CandidatePairs, seed: int) -> Floats:
    """Return the two-sided sign-flip p-value of each pair's mean difference."""
    p_values = np.ones(len(pairs.former))
    for size, members in pairs.grouped(pairs.moving):
        if size == 0:
            continue
        differences = pairs.differences(members)
        moving = closed_up(differences, ~np.isnan(differences) & (differences != 0.0))
        observed = np.abs(moving.sum(axis=0)) - ROUNDING * np.abs(moving).sum(axis=0)
        if size <= ENUMERATED:
            p_values[members] = (np.abs(all_signs(size) @ moving) >= observed).mean(axis=0)
            continue
        whole = size == len(pairs.scores)
        count = _by_candidate if whole else _by_pair
        p_values[members] = (count(pairs, members, moving, observed, seed) + 1) / (FLIPS + 1)
    return p_values


def work(pairs: CandidatePairs) -> float:
    """Estimate how many multiplications the p-values take."""
    sizes, counts = np.unique(pairs.moving[pairs.moving > ENUMERATED], return_counts=True)
    blocks = np.ceil(counts * len(pairs.scores) / BLOCK_CELLS)
    products = np.where(sizes == len(pairs.scores), pairs.scores.shape[1] * blocks, counts)
    return float((FLIPS * sizes * (_DRAWING * blocks + 2.0 * products)).sum())


def _few_flips(size: int, pairs: int, seed: int) -> Iterator[NDArray[np.int8]]:
    """Yield the random flips in blocks whose sums, of all pairs, fit in memory."""
    rows = max(1, FLIPPED_CELLS // max(1, pairs))
    for flips in random_flips(size, seed):
        for start in range(0, len(flips), rows):
            yield flips[start : start + rows]


def _by_pair(
    pairs: CandidatePairs, members: Ints, moving: Floats, observed: Floats, seed: int
) -> Ints:
    """Count the flips of each pair that are at least as extreme as the observed difference."""
    extreme = np.zeros(len(members), dtype=np.int64)
    totals = moving.sum(axis=0)
    for flips in _few_flips(len(moving), len(members), seed):
        sums = totals - 2.0 * (flips.astype(np.float64) @ moving)
        extreme += (np.abs(sums) >= observed).sum(axis=0)
    return extreme


def _by_candidate(
    pairs: CandidatePairs, members: Ints, moving: Floats, observed: Floats, seed: int
) -> Ints:
    """Count as `_by_pair` does, for complete scores without zero differences."""
    scores, former, latter = pairs.scores, pairs.former[members], pairs.latter[members]
    rounded = np.abs(scores[:, former] - scores[:, latter] - moving).sum(axis=0)
    slack = rounded + _CLOSE * np.abs(scores).sum()
    extreme = np.zeros(len(members), dtype=np.int64)
    totals = moving.sum(axis=0)
    for flips in _few_flips(len(moving), len(members), seed):
        flipped = scores.sum(axis=0) - 2.0 * (flips.astype(np.float64) @ scores)
        sums = np.abs(flipped[:, former] - flipped[:, latter])
        close = np.abs(sums - observed) <= slack
        if close.mean() > _MOST_CLOSE:
            sums = np.abs(totals - 2.0 * (flips.astype(np.float64) @ moving))
        else:
            rows, places = np.nonzero(close)
            exact = np.einsum("ij,ij->i", flips[rows].astype(np.float64), moving.T[places])
            sums[rows, places] = np.abs(totals[places] - 2.0 * exact)
        extreme += (sums >= observed).sum(axis=0)
    return extreme


MOST_CANDIDATES = 100
"""Largest number of candidates to compare; longer rankings are cut."""
MOST_CLUSTERED = 20
"""Maximum number of candidates compared if queries are clustered."""
MOST_WORK = 1.5e11
"""Most multiplications for all pairs: a few seconds."""

NOTHING_SHARED = "share no query"
"""Verdict for two candidates without a common query."""

_FEWER = 0.8


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Comparisons of the top candidates, in the order (0, 1), (0, 2), ..., (1, 2), ..."""

    first: int
    """Number of candidates compared."""
    effect: Floats
    """Mean score of the former minus the latter; NaN if they share no query."""
    low: Floats
    high: Floats
    """Bounds of the effect's interval; NaN if unknown."""
    p_value: Floats
    """NaN if they share no query."""
    wins: Ints
    ties: Ints
    losses: Ints
    verdict: tuple[ComparisonVerdict | str, ...]
    """Verdict on the former against the latter, or `NOTHING_SHARED`."""


def compare_all(
    grid: ScoreGrid,
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    race: RaceResult | None = None,
    scale: tuple[float, float] | None = None,
) -> AllPairs:
    """Compare as many of the top candidates as a few seconds allow.

    `race` is the result of a run that stopped early; intervals and p-values then account for it.
    `scale` is that of the scores, as in `compare`.
    """
    if grid.clusters is not None:
        found = _compare_each(grid, tie_margin, bootstrap, seed, level, scale)
    else:
        found = _compare_together(grid, tie_margin, bootstrap, seed, level, scale)
    return found if race is None else _accounted(found, grid, race, level)


def _accounted(found: AllPairs, grid: ScoreGrid, race: RaceResult, level: float) -> AllPairs:
    """Return comparisons that account for the looks of a race."""
    effects, p_values = [], []
    pairs = combinations(grid.candidates[: found.first], 2)
    for place, names in enumerate(pairs):
        own = (float(column[place]) for column in (found.effect, found.low, found.high))
        effects.append(widen_interval(Interval(*own), race, level, *names))
        p_value = float(found.p_value[place])
        p_values.append(p_value if p_value != p_value else over_looks(race, p_value, *names))
    low, high = (np.array([getattr(one, side) for one in effects]) for side in ("low", "high"))
    adjusted = np.array(p_values)
    return replace(
        found,
        low=low,
        high=high,
        p_value=adjusted,
        verdict=_verdicts(found.effect, low, high, adjusted, level),
    )


def _compare_together(
    grid: ScoreGrid,
    tie_margin: float,
    bootstrap: int,
    seed: int,
    level: float,
    scale: tuple[float, float] | None,
) -> AllPairs:
    """Compare the first candidates, all pairs at once."""
    pairs, first = _affordable(CandidatePairs.of(grid.scores[:, :MOST_CANDIDATES]))
    ends = difference_ends(grid.scores, scale)
    effect, low, high = _effects(pairs, bootstrap, seed, level, ends)
    p_value = np.where(pairs.shared > 0, flip_p_values(pairs, seed), np.nan)
    outcomes = [_outcomes(pairs.scores, column, tie_margin) for column in range(first)]
    wins, losses = (np.concatenate([found[side] for found in outcomes]) for side in (0, 1))
    return AllPairs(
        first=first,
        effect=effect,
        low=low,
        high=high,
        p_value=p_value,
        wins=wins,
        ties=pairs.shared - wins - losses,
        losses=losses,
        verdict=_verdicts(effect, low, high, p_value, level),
    )


def _compare_each(
    grid: ScoreGrid,
    tie_margin: float,
    bootstrap: int,
    seed: int,
    level: float,
    scale: tuple[float, float] | None,
) -> AllPairs:
    """Compare the first candidates one pair at a time, for queries that depend on each other."""
    first = min(len(grid.candidates), MOST_CLUSTERED)
    names = grid.candidates[:first]
    found = [
        _one_pair(grid, *pair, tie_margin, bootstrap, seed, level, scale)
        for pair in combinations(names, 2)
    ]
    columns = list(zip(*found, strict=True)) or [()] * 8
    effect, low, high, p_value = (np.array(column, float) for column in columns[:4])
    wins, ties, losses = (np.array(column, np.int64) for column in columns[4:7])
    return AllPairs(first, effect, low, high, p_value, wins, ties, losses, tuple(columns[7]))


def _one_pair(
    grid: ScoreGrid,
    one: str,
    other: str,
    tie_margin: float,
    bootstrap: int,
    seed: int,
    level: float,
    scale: tuple[float, float] | None,
) -> tuple[float, float, float, float, int, int, int, ComparisonVerdict | str]:
    columns = [grid.candidates.index(name) for name in (one, other)]
    if np.isnan(grid.scores[:, columns]).any(axis=1).all():
        return math.nan, math.nan, math.nan, math.nan, 0, 0, 0, NOTHING_SHARED
    found = compare(
        grid,
        one,
        other,
        tie_margin=tie_margin,
        bootstrap=bootstrap,
        seed=seed,
        level=level,
        scale=scale,
    )
    effect = found.effect
    counts = found.wins, found.ties, found.losses
    return effect.value, effect.low, effect.high, found.p_value, *counts, found.verdict


def _verdicts(
    effect: Floats, low: Floats, high: Floats, p_value: Floats, level: float
) -> tuple[ComparisonVerdict | str, ...]:
    figures = zip(*(column.tolist() for column in (effect, low, high, p_value)), strict=True)
    return tuple(
        NOTHING_SHARED if p != p else find_verdict(Interval(*ends), p, None, level)
        for *ends, p in figures
    )


def _affordable(pairs: CandidatePairs) -> tuple[CandidatePairs, int]:
    """Return the pairs of the top candidates that `MOST_WORK` allows, and their number.

    Missing scores give pairs different numbers of shared queries; each number needs its own signs.
    """
    first: int = pairs.scores.shape[1]
    while first > 2 and work(pairs) > MOST_WORK:
        first = max(2, int(first * _FEWER))
        pairs = pairs.first(first)
    return pairs, first


def _effects(
    pairs: CandidatePairs,
    times: int,
    seed: int,
    level: float,
    ends: tuple[float, float] | None,
) -> tuple[Floats, Floats, Floats]:
    """Return each pair's mean difference and the bounds of its interval, as `compare` does."""
    value, low, high = (np.full(len(pairs.former), np.nan) for _ in range(3))
    for queries, members in pairs.grouped(pairs.shared):
        if queries == 0:
            continue
        differences = pairs.differences(members)
        known = closed_up(differences, ~np.isnan(differences))
        value[members] = means = known.mean(axis=0)
        if queries < least_queries(level):
            continue
        drawn = [counts @ known for counts in resample_queries(queries, times, seed)]
        tail = tail_probability(queries, level)
        below, above = np.quantile(np.concatenate(drawn) / queries, [tail, 1.0 - tail], axis=0)
        below, above = np.minimum(below, means), np.maximum(above, means)
        constant = above - below <= NO_WIDTH * np.maximum(1.0, np.abs(means))
        below[constant], above[constant] = np.nan, np.nan
        if ends is not None:
            exact = interval_without_spread(0.0, queries, level, ends)
            zero = constant & (np.abs(means) < 10.0**-DIGITS)
            below[zero], above[zero] = exact.low, exact.high
        low[members], high[members] = below, above
    return value, low, high


def _outcomes(scores: Floats, column: int, tie_margin: float) -> tuple[Ints, Ints]:
    """Count the queries a candidate wins and loses against each later one."""
    found = compare_scores(scores[:, column : column + 1], scores[:, column + 1 :], tie_margin)
    return (found > 0).sum(axis=0), (found < 0).sum(axis=0)
