"""The chance of a mean difference as large as the one seen, if neither side were better.

If two candidates are equally good on queries like these, each query's difference is as likely to
have the other sign. So the signs are flipped, all ways when there are few, at random otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.stats.bootstrap import least_queries

ENUMERATED = 14
"""Up to this many differences other than zero, every combination of signs is counted."""
FLIPS = 9_999
"""Random combinations otherwise."""
ROUNDING = 1e-9
"""A sum so much smaller, as a share of all differences, is as large as the one seen."""

_BLOCK_CELLS = 4_000_000


def sign_flip_p(differences: Floats, seed: int = 0) -> float:
    """The two-sided p-value of the mean difference; 1 when all differences are zero.

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
    """Every combination of signs with the first one fixed: the others mirror these."""
    places = np.arange(2 ** (count - 1))[:, None] >> np.arange(count - 1)
    others = 1.0 - 2.0 * (places & 1)
    return np.column_stack([np.ones(len(others)), others])


def random_flips(count: int, seed: int) -> Iterator[NDArray[np.int8]]:
    """Blocks of rows, `FLIPS` in all, of which signs are flipped: 1 where one is, else 0."""
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK_CELLS // count)
    for start in range(0, FLIPS, block):
        rows = min(block, FLIPS - start)
        yield rng.integers(0, 2, size=(rows, count), dtype=np.int8)


POWER = 0.8
"""The chance of telling a difference that is really there."""


def detectable_effect(spread: float, queries: int, level: float) -> float:
    """The smallest mean difference that `queries` tell at `level` four times in five.

    `spread` is the standard deviation of the difference over queries. NaN for too few queries.
    """
    if queries < least_queries(level):
        return math.nan
    return _standard_errors(queries, level) * spread / math.sqrt(queries)


def queries_needed(effect: float, spread: float, level: float) -> int | None:
    """The fewest queries that tell `effect` at `level` four times in five; None if it is zero."""
    if effect == 0.0:
        return None
    ratio = spread / abs(effect)
    least = least_queries(level)
    needed = max(least, math.floor((_normal(level) * ratio) ** 2))
    while _standard_errors(needed, level) * ratio > math.sqrt(needed):
        needed += 1
    return needed


def _standard_errors(queries: int, level: float) -> float:
    """How many standard errors an effect must measure to be told with that chance."""
    from scipy.special import stdtrit

    tail = (1.0 - level) / 2.0
    return float(stdtrit(queries - 1, 1.0 - tail) + stdtrit(queries - 1, POWER))


def _normal(level: float) -> float:
    """The same for endlessly many queries."""
    from scipy.special import ndtri

    return float(ndtri(1.0 - (1.0 - level) / 2.0) + ndtri(POWER))
