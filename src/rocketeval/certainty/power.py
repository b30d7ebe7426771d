"""How many queries it takes to tell a difference, and how small a difference so many can tell.

Both are estimates: they take the spread seen so far for the true one, and Student's t for the
distribution of a mean.
"""

from __future__ import annotations

import math

from rocketeval.ranking.bootstrap import least_queries

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
