"""Several grids cut to the responses that all of them score, so that they can be compared."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rocketeval.grid import ScoreGrid

Floats = NDArray[np.float64]


def common_cells(grids: Mapping[str, ScoreGrid]) -> tuple[dict[str, ScoreGrid], int]:
    """Return the grids cut to the cells that all of them score, and how many cells fell out."""
    first = next(iter(grids.values()))
    laid_out = [laid_out_like(first, grid) for grid in grids.values()]
    scored = np.isfinite(np.stack(laid_out))
    everywhere, anywhere = scored.all(axis=0), scored.any(axis=0)
    cut = {
        name: ScoreGrid(first.query_ids, first.candidates, np.where(everywhere, scores, np.nan))
        for name, scores in zip(grids, laid_out, strict=True)
    }
    return cut, int(anywhere.sum() - everywhere.sum())


def mean_scores(grid: ScoreGrid) -> dict[str, float]:
    """The mean score of every candidate that has any."""
    means = grid.mean_by_candidate()
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}


def laid_out_like(first: ScoreGrid, grid: ScoreGrid) -> Floats:
    """The scores of `grid` in the rows and columns of `first`."""
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    scores = np.full(first.scores.shape, np.nan)
    here = [(place, rows[query]) for place, query in enumerate(first.query_ids) if query in rows]
    there = [
        (place, columns[candidate])
        for place, candidate in enumerate(first.candidates)
        if candidate in columns
    ]
    if here and there:
        to_row, from_row = map(list, zip(*here, strict=True))
        to_column, from_column = map(list, zip(*there, strict=True))
        scores[np.ix_(to_row, to_column)] = grid.scores[np.ix_(from_row, from_column)]
    return scores
