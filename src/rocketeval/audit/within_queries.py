"""Correlation of two columns within every query, for all queries at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.kendall import tau_b

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_FEW_ENOUGH_FOR_PAIRS = 100
_BLOCK_CELLS = 4_000_000


def within_queries(scores: Floats, labels: Floats, places: Places) -> Floats:
    """Pearson, Spearman and Kendall within every query, one row each.

    `places` numbers each response's query from 0 and ascends. NaN where scores or labels are all
    the same, as those of a single response are.
    """
    if not len(places):
        return np.empty((0, 3))
    starts = np.flatnonzero(np.diff(places, prepend=-1))
    varies = np.logical_and(
        *(np.maximum.reduceat(x, starts) > np.minimum.reduceat(x, starts) for x in (scores, labels))
    )
    keep = varies[places]
    _, kept = np.unique(places[keep], return_inverse=True)
    x, y = scores[keep], labels[keep]
    found = np.full((len(starts), 3), np.nan)
    if len(x):
        found[varies, 0] = _pearson_within(x, y, kept)
        found[varies, 1] = _pearson_within(ranks_within(x, kept), ranks_within(y, kept), kept)
        found[varies, 2] = _tau_within(x, y, kept)
    return found


def _pearson_within(x: Floats, y: Floats, places: Places) -> Floats:
    counts = np.bincount(places)
    x, y = (side - (np.bincount(places, weights=side) / counts)[places] for side in (x, y))
    xy, xx, yy = (np.bincount(places, weights=product) for product in (x * y, x * x, y * y))
    scale = np.sqrt(xx * yy)
    # What differs by less than numbers can square is as good as the same.
    found = np.divide(xy, scale, out=np.full(len(counts), np.nan), where=scale > 0.0)
    coefficients: Floats = np.clip(found, -1.0, 1.0)
    return coefficients


def ranks_within(values: Floats, places: Places) -> Floats:
    """Ranks from 1 among the query's own, equal values sharing their mean rank; places ascend.

    >>> ranks_within(np.array([5.0, 7.0, 5.0, 1.0]), np.array([0, 0, 0, 2]))
    array([1.5, 3. , 1.5, 1. ])
    """
    order = np.lexsort((values, places))
    fresh = np.diff(values[order], prepend=np.nan) != 0.0
    fresh |= np.diff(places[order], prepend=-1) != 0
    tied = np.cumsum(fresh) - 1
    counts = np.bincount(tied)
    shared = np.empty(len(values))
    shared[order] = (np.cumsum(counts) - (counts - 1) / 2.0)[tied]
    ranked: Floats = shared - np.searchsorted(places, places)
    return ranked


def _tau_within(x: Floats, y: Floats, places: Places) -> Floats:
    """Tau-b of every query; queries of one size are counted pair by pair, all at once."""
    sizes = np.bincount(places)
    starts = np.cumsum(sizes) - sizes
    found = np.empty(len(sizes))
    for size in np.unique(sizes).tolist():
        alike = np.flatnonzero(sizes == size)
        block = max(1, _BLOCK_CELLS // size**2)
        if size > _FEW_ENOUGH_FOR_PAIRS:
            for query in alike.tolist():
                own = slice(starts[query], starts[query] + size)
                found[query] = tau_b(x[own], y[own])
            continue
        for first in range(0, len(alike), block):
            some = alike[first : first + block]
            own_places = starts[some, None] + np.arange(size)
            found[some] = _tau_of_rows(x[own_places], y[own_places])
    return found


def _tau_of_rows(x: Floats, y: Floats) -> Floats:
    """Tau-b of each row of one table against the same row of the other."""
    x, y = (np.sign(side[:, :, None] - side[:, None, :]) for side in (x, y))
    same, x_apart, y_apart = (np.einsum("qij,qij->q", *pair) for pair in ((x, y), (x, x), (y, y)))
    tau: Floats = same / np.sqrt(x_apart * y_apart)
    return tau
