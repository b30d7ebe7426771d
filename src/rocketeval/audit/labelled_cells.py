"""The labelled responses of a grid as columns, and their correlation on resampled queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.correlation import ranks
from rocketeval.grid import ScoreGrid

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_ROUNDING = 1e-12
"""A spread that is a smaller part of what it is the difference of is the error of subtracting."""


@dataclass(frozen=True, slots=True)
class LabelledCells:
    """The labelled responses that have a score, as columns in the order of queries."""

    rows: Places
    columns: Places
    scores: Floats
    labels: Floats


def cells_of(grid: ScoreGrid, laid_out: Floats, unknown: int) -> tuple[LabelledCells, int]:
    """The cells with a label and a score, and how many have a label only.

    `laid_out` and `unknown` are what `label_cells` makes of the labels.
    """
    labelled = ~np.isnan(laid_out)
    rows, columns = np.nonzero(labelled & ~np.isnan(grid.scores))
    cells = LabelledCells(rows, columns, grid.scores[rows, columns], laid_out[rows, columns])
    return cells, unknown + int(labelled.sum()) - len(rows)


def ranked(cells: LabelledCells) -> LabelledCells:
    """Ranks in the place of scores and labels."""
    return LabelledCells(cells.rows, cells.columns, ranks(cells.scores), ranks(cells.labels))


def moments(cells: LabelledCells, places: Places) -> Floats:
    """Six sums per query, from which Pearson follows."""
    x = cells.scores - cells.scores.mean()
    y = cells.labels - cells.labels.mean()
    summed = (np.ones_like(x), x, y, x * x, y * y, x * y)
    return np.stack([np.bincount(places, weights=each) for each in summed], axis=1)


def pearson_of(sums: Floats) -> Floats:
    """Pearson from the six sums of each row; NaN where a side does not vary."""
    n, sx, sy, sxx, syy, sxy = sums.T
    x_spread, y_spread = n * sxx - sx * sx, n * syy - sy * sy
    found = np.full(len(n), np.nan)
    varies = (x_spread > _ROUNDING * n * sxx) & (y_spread > _ROUNDING * n * syy)
    scale = np.sqrt(x_spread[varies]) * np.sqrt(y_spread[varies])
    found[varies] = np.clip((n * sxy - sx * sy)[varies] / scale, -1.0, 1.0)
    return found
