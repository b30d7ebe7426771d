"""Who stands next to whom: the candidates a candidate is compared with, query by query."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """The responses to one query in the ranking's order, each with its window of neighbours."""

    rows: Ints
    """Rows of the answer table, best candidate first; only candidates with a rank and a score."""
    first: Ints
    """For each, the place in `rows` at which its window begins."""
    last: Ints
    """The place at which it ends; the response itself lies within and is no neighbour."""

    def neighbours_of(self, row: int) -> list[int]:
        """Rows of the neighbours, best first."""
        place = int(np.flatnonzero(self.rows == row)[0])
        window = range(int(self.first[place]), int(self.last[place]) + 1)
        return [int(self.rows[other]) for other in window if other != place]


def nearest(places: Ints, most: int) -> tuple[Ints, Ints]:
    """For each of some ascending places, where the window of its `most` nearest begins and ends.

    At equal distance the better place is taken.

    >>> [side.tolist() for side in nearest(np.array([0, 1, 2, 9]), 2)]
    [[0, 0, 0, 1], [2, 2, 2, 3]]
    """
    ends = np.concatenate([[-np.inf], places, [np.inf]])
    first, last = np.arange(len(places)), np.arange(len(places))
    for _ in range(min(most, len(places) - 1)):
        better = places - ends[first] <= ends[last + 2] - places
        first, last = first - better, last + ~better
    return first, last


def mean_of_others(p_yes: Floats, first: Ints, last: Ints) -> Floats:
    """For each answer (rows are responses) the mean of the others in its window; NaN without any.

    >>> window = np.array([0, 0]), np.array([1, 1])
    >>> mean_of_others(np.array([[0.25, np.nan], [0.75, 0.5]]), *window).tolist()
    [[0.75, 0.5], [0.25, nan]]
    """
    present = ~np.isnan(p_yes)
    filled = np.where(present, p_yes, 0.0)
    total = _window_sums(filled, first, last) - filled
    count = _window_sums(present.astype(np.float64), first, last) - present
    means: Floats = np.full(total.shape, np.nan)
    return np.divide(total, count, out=means, where=count > 0.5)


def _window_sums(values: Floats, first: Ints, last: Ints) -> Floats:
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    within: Floats = sums[last + 1] - sums[first]
    return within
