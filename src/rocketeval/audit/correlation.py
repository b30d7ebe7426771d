"""Rank correlation of candidates with ratings from elsewhere, such as an arena's.

A handful of candidates proves little, and this says so: fewer than three give no coefficient,
fewer than ten no interval, and each coefficient carries the chance of one as strong by luck alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import BenchmarkError
from rocketeval.records import Interval, Rating

Floats = NDArray[np.float64]

FEWEST_FOR_COEFFICIENT = 3
FEWEST_FOR_INTERVAL = 10

_ENUMERATED = 8
_SHUFFLES = 9_999
_SHUFFLED_CELLS = 1_000_000


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One correlation coefficient over candidates."""

    value: float
    interval: Interval | None
    """By Fisher's z (Bonett-Wright for Spearman, Fieller for Kendall); None below ten candidates
    or for a perfect order, where the p-value is all there is."""
    p_value: float
    """Two-sided chance of one at least as strong if the order were random.

    Spearman: all orders up to eight candidates, 9,999 shuffles beyond. Kendall: SciPy's."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """How alike two orders of the same candidates are."""

    spearman: Coefficient | None
    kendall: Coefficient | None
    n: int
    """Candidates that have both figures."""
    unmatched: tuple[str, ...]
    """Candidates of ours without a rating (or with no score), sorted."""
    reason: str | None
    """Why there is no coefficient, if there is none."""


def correlate(
    ours: Mapping[str, float], ratings: Sequence[Rating], *, seed: int = 0, level: float = 0.95
) -> Correlation:
    """How our figures order the candidates, against the order of `ratings`."""
    theirs = _by_candidate(ratings)
    matched = sorted(c for c, value in ours.items() if c in theirs and math.isfinite(value))
    unmatched = tuple(sorted(set(ours) - set(matched)))
    x = np.array([ours[candidate] for candidate in matched], dtype=np.float64)
    y = np.array([theirs[candidate] for candidate in matched], dtype=np.float64)
    reason = why_no_coefficient(x, y, "candidates")
    if reason is not None:
        return Correlation(None, None, len(matched), unmatched, reason)
    spearman, kendall = _spearman(x, y, seed, level), _kendall(x, y, level)
    return Correlation(spearman, kendall, len(matched), unmatched, None)


def _by_candidate(ratings: Sequence[Rating]) -> dict[str, float]:
    found: dict[str, float] = {}
    for rating in ratings:
        if found.setdefault(rating.candidate, rating.value) != rating.value:
            raise BenchmarkError(
                f"candidate {rating.candidate!r} has two ratings: "
                f"{found[rating.candidate]} and {rating.value}",
                hint="Keep one rating a candidate.",
            )
    return found


def why_no_coefficient(x: Floats, y: Floats, things: str) -> str | None:
    """A reason not to correlate two columns, or None."""
    if len(x) < FEWEST_FOR_COEFFICIENT:
        return f"only {len(x)} {things} have both figures; {FEWEST_FOR_COEFFICIENT} are needed"
    if np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return f"one of the figures is the same for all {len(x)} {things}"
    return None


def _spearman(x: Floats, y: Floats, seed: int, level: float) -> Coefficient:
    ours, theirs = ranks(x), ranks(y)
    value = pearson(ours, theirs)
    variance = (1.0 + value**2 / 2.0) / max(len(x) - 3, 1)
    return Coefficient(
        value, _fisher(value, variance, len(x), level), _shuffle_p(ours, theirs, seed)
    )


def _kendall(x: Floats, y: Floats, level: float) -> Coefficient:
    from scipy.stats import kendalltau

    outcome = kendalltau(x, y)
    value = float(outcome.statistic)
    variance = 0.437 / max(len(x) - 4, 1)
    return Coefficient(value, _fisher(value, variance, len(x), level), float(outcome.pvalue))


def _fisher(value: float, variance: float, n: int, level: float) -> Interval | None:
    if n < FEWEST_FOR_INTERVAL or abs(value) > 1.0 - 1e-12:
        return None
    from scipy.special import ndtri

    reach = float(ndtri(0.5 + level / 2.0)) * math.sqrt(variance)
    middle = math.atanh(value)
    return Interval(value, math.tanh(middle - reach), math.tanh(middle + reach))


def _shuffle_p(ours: Floats, theirs: Floats, seed: int) -> float:
    """Two-sided p-value of the correlation of two rankings."""
    ours, theirs = ours - ours.mean(), theirs - theirs.mean()
    observed = abs(float(ours @ theirs)) - 1e-9
    if len(ours) <= _ENUMERATED:
        every_order = np.array(list(permutations(theirs)))
        return float(np.mean(np.abs(every_order @ ours) >= observed))
    rng = np.random.default_rng(seed)
    as_strong = 0
    block = max(1, _SHUFFLED_CELLS // len(ours))
    for start in range(0, _SHUFFLES, block):
        orders = np.tile(theirs, (min(block, _SHUFFLES - start), 1))
        as_strong += int((np.abs(rng.permuted(orders, axis=1) @ ours) >= observed).sum())
    return (as_strong + 1) / (_SHUFFLES + 1)


def pearson(x: Floats, y: Floats) -> float:
    """Pearson's correlation of two columns that both vary."""
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / math.sqrt((x @ x) * (y @ y)))


def ranks(values: Floats) -> Floats:
    """Ranks from 1, equal values sharing their mean rank."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Floats = (last - (counts - 1) / 2.0)[place]
    return shared
