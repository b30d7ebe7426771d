"""Scores rounded for the page, so that they take less room and tie exactly where they tied.

A page that lists a tie where the ranking counted a win says two things about one query. Scores are
put on steps that a Float32 holds exactly, so their differences are exact on the page too. In the
few rows where rounding would carry a difference over the tie margin, scores are moved by a step or
two until it does not.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, floor, log2

import numpy as np
from numpy.typing import NDArray

from rocketeval.outcomes import win_threshold

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_BITS = (16, 22)
"""Of the scale: noise beyond the first does not compress; the second is for rows that need it."""
_FARTHEST = 2
"""Steps that a score may be moved by before its row gets finer ones."""
_FLOAT32_BITS = 24


def coarse(scores: Floats, scale: tuple[float, float], tie_margin: float) -> Floats:
    """Return scores to a 65,000th of the scale; who beats whom in a row stays as it is.

    >>> coarse(np.array([[7.123456789, 7.023456789]]), (1.0, 10.0), 0.1).tolist()
    [[7.12353515625, 7.0234375]]
    """
    found = scores.copy()
    steps = list(_steps(scores, scale))
    for row in found:
        present = ~np.isnan(row)
        row[present] = _row(row[present], steps, tie_margin)
    return found


def _steps(scores: Floats, scale: tuple[float, float]) -> Iterator[float]:
    largest = max(*map(abs, scale), float(np.nanmax(np.abs(scores), initial=0.0)))
    exact = ceil(log2(largest)) - _FLOAT32_BITS
    for bits in _BITS:
        yield 2.0 ** max(floor(log2(scale[1] - scale[0])) - bits, exact)


def _row(scores: Floats, steps: list[float], tie_margin: float) -> Floats:
    order = np.argsort(scores, kind="stable")
    rising = scores[order]
    # What a score must reach to beat: a difference of nothing beats nobody, whatever the margin.
    reached = np.minimum(rising - win_threshold(tie_margin), np.nextafter(rising, -np.inf))
    beaten = np.searchsorted(rising, reached, side="right")
    for step in steps:
        apart = max(1, ceil(tie_margin / step))
        nearest = np.round(rising / step).astype(np.int64)
        if _kept(nearest, beaten, apart):
            return _unsorted(nearest, order) * step
        places = _moved(nearest, beaten, apart)
        near = np.abs(places - nearest).max() <= _FARTHEST or step == steps[-1]
        if near and _kept(places, beaten, apart):
            return _unsorted(places, order) * step
    return _unsorted(nearest, order) * step


def _kept(places: Ints, beaten: NDArray[np.intp], apart: int) -> bool:
    return bool((np.searchsorted(places, places - apart, side="right") == beaten).all())


def _moved(nearest: Ints, beaten: NDArray[np.intp], apart: int) -> Ints:
    """Places close to the nearest ones, `apart` or more from those beaten and less from the rest.

    Scores rise, so whoever a score beats are the first ones: the last of these and the first of the
    others bound its place.
    """
    borders = set(beaten.tolist())
    placed: list[int] = []
    for place, wins in zip(nearest.tolist(), beaten.tolist(), strict=True):
        here = len(placed)
        if here:
            place = max(place, placed[-1] + (here in borders))
        if wins:
            place = max(place, placed[wins - 1] + apart)
        if wins < here:
            place = min(place, placed[wins] + apart - 1)
        placed.append(place)
    return np.array(placed, dtype=np.int64)


def _unsorted(places: Ints, order: NDArray[np.intp]) -> Floats:
    found = np.empty(len(places))
    found[order] = places
    return found
