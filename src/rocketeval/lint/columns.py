"""Correlation of the columns of two tables with gaps, column by column."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

FEWEST = 10
"""Responses below which nothing is said of a correlation."""
CHANCE = 0.01
"""That any item at all is called negative by chance: the more items, the surer each must be."""
_STILL = 1e-9


def paired_correlations(x: Floats, y: Floats, fewest: int = FEWEST) -> tuple[Floats, Ints]:
    """Pearson of each column of `x` with the same of `y`, and on how many rows both are known.

    NaN on fewer than `fewest` rows, or where either does not vary.

    >>> x = np.array([[1.0, 1.0], [2.0, 5.0], [3.0, np.nan]])
    >>> found, count = paired_correlations(x, x, fewest=2)
    >>> found.round(6).tolist(), count.tolist()
    ([1.0, 1.0], [3, 2])
    """
    both = ~(np.isnan(x) | np.isnan(y))
    count = both.sum(axis=0)
    least = np.maximum(count, 1)
    x, y = (np.where(both, side, 0.0) for side in (x, y))
    x, y = (np.where(both, side - side.sum(axis=0) / least, 0.0) for side in (x, y))
    xy, xx, yy = ((a * b).sum(axis=0) for a, b in ((x, y), (x, x), (y, y)))
    moving = (xx > _STILL * least) & (yy > _STILL * least) & (count >= fewest)
    size = np.sqrt(np.where(moving, xx * yy, 1.0))
    return np.where(moving, np.clip(xy / size, -1.0, 1.0), np.nan), count.astype(np.int64)


def surely_negative(correlation: float, responses: int, items: int = 1) -> bool:
    """Whether a correlation is below zero by more than chance, as one of so many items.

    By Fisher's z, with Bonferroni's correction.

    >>> surely_negative(-0.3, 20), surely_negative(-0.6, 40), surely_negative(-0.6, 20, 1000)
    (False, True, False)
    """
    if math.isnan(correlation) or responses <= 3 or correlation >= 0.0:
        return False
    if correlation <= -1.0 + 1e-12:
        return True
    sure = NormalDist().inv_cdf(1.0 - CHANCE / max(1, items))
    return math.atanh(correlation) + sure / math.sqrt(responses - 3) < 0.0
