"""Every answer beside the answers that the candidate's neighbours in the ranking got."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.explain.graded import Graded
from rocketeval.explain.neighbours import Neighbourhood, mean_of_others, nearest
from rocketeval.scoring.answers import QueryBlock, sum_rows

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_ROUNDING = 1e-9
# The mean of equal answers differs from them in the last bits, and is no gap.


@dataclass(frozen=True, eq=False)
class Gaps:
    """What every answer costs its candidate, as columns beside the answer table's `p_yes`."""

    others: Floats
    """Mean `p_yes` of the neighbours; NaN without neighbours."""
    weights: Floats
    """The item's weight in the query's score."""
    points: Floats
    """(others - own) * weight, on the score's scale: what the item costs, negative if it gains."""
    neighbourhoods: Mapping[str, Neighbourhood]
    """By query."""

    def per_response(self, offsets: NDArray[np.int64]) -> Floats:
        """What all items together cost each response; NaN where nothing could be compared."""
        known = ~np.isnan(self.points)
        total = sum_rows(np.where(known, self.points, 0.0), offsets)
        return np.where(sum_rows(known, offsets) > 0, total, np.nan)


def find_gaps(graded: Graded, neighbours: int) -> Gaps:
    """Compare every answer with those of its candidate's nearest `neighbours` by rank."""
    answers = graded.answers
    places = {name: place for place, name in enumerate(graded.ranked)}
    place = np.array([places.get(name, -1) for name in answers.candidates], dtype=np.int64)
    others, weights = (np.full(len(answers.p_yes), np.nan) for _ in range(2))
    neighbourhoods = {}
    for block in answers.blocks():
        around = _neighbourhood(block, place, graded.scores, neighbours)
        neighbourhoods[block.query_id] = around
        if not around.rows.size:
            continue
        items = block.p_yes.shape[1]
        own = block.p_yes[around.rows - block.start]
        cells = answers.offsets[around.rows][:, None] + np.arange(items)
        others[cells] = mean_of_others(own, around.first, around.last)
        weights[cells] = graded.weights_of(block.query_id, items)
    points = others - answers.p_yes
    points[np.abs(points) < _ROUNDING] = 0.0
    low, high = graded.scale
    # In place: a million responses have eight million gaps.
    points *= weights
    points *= high - low
    return Gaps(others, weights, points, neighbourhoods)


def _neighbourhood(block: QueryBlock, place: Ints, scores: Floats, most: int) -> Neighbourhood:
    usable = (place[block.rows] >= 0) & ~np.isnan(scores[block.rows])
    rows = block.start + np.flatnonzero(usable)
    rows = rows[np.argsort(place[rows], kind="stable")]
    return Neighbourhood(rows, *nearest(place[rows], most))
