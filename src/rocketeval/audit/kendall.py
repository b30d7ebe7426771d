"""Kendall's tau-b, and what each query adds to it."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

MOST_FOR_KENDALL_INTERVAL = 5_000
"""Labelled responses above which Kendall's tau over all of them has no interval."""

_BLOCK_CELLS = 4_000_000


def tau_b(x: Floats, y: Floats) -> float:
    """Kendall's tau-b of two columns that both vary."""
    from scipy.stats import kendalltau

    return float(kendalltau(x, y).statistic)


def kendall_adds(value: float | None, x: Floats, y: Floats, places: Places) -> Floats:
    """What each query adds to tau-b each time it is drawn, to first order; NaN if not known."""
    responses, queries = len(places), int(places.max()) + 1
    if value is None or responses > MOST_FOR_KENDALL_INTERVAL:
        return np.full(queries, np.nan)
    same, x_apart, y_apart = (np.bincount(places, weights=part) for part in _pairs_of_each(x, y))
    x_all, y_all = float(x_apart.sum()), float(y_apart.sum())
    adds = 2.0 * same / math.sqrt(x_all * y_all) - value * (x_apart / x_all + y_apart / y_all)
    return adds.astype(np.float64)


def _pairs_of_each(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Per response: pairs in the same order less those in the other, and pairs apart in each."""
    responses = len(x)
    in_order = np.empty(responses)
    block = max(1, _BLOCK_CELLS // responses)
    for start in range(0, responses, block):
        some = slice(start, start + block)
        above = (x[some, None] > x) & (y[some, None] > y)
        below = (x[some, None] < x) & (y[some, None] < y)
        in_order[some] = np.count_nonzero(above | below, axis=1)
    x_place, y_place = (np.unique(side, return_inverse=True)[1] for side in (x, y))
    x_apart, y_apart = (responses - _alike(place) for place in (x_place, y_place))
    apart = x_apart + y_apart - responses + _alike(x_place * responses + y_place)
    return 2.0 * in_order - apart, x_apart, y_apart


def _alike(values: NDArray[np.int64]) -> Floats:
    """How many have the same value as each, itself included."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    alike: Floats = counts[place].astype(np.float64)
    return alike
