"""Sign-flip test of a mean difference, and its statistical power.

If two candidates are equally good, each query's difference is equally likely to have either sign.
The test flips signs: all combinations for few queries, random ones otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.stats.bootstrap import least_queries

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
