"""Labels beside scores, for the report."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from rocketeval.grid import ScoreGrid
from rocketeval.records import Label
from rocketeval.report.source import Floats
from rocketeval.scoring.labelled import label_cells
from rocketeval.stages.report.cells import Cells

MOST_LABELS = 5_000
"""Dots that a scatter still shows; of more, every second, third and so on is taken."""


def label_grid(cells: Cells, labels: Iterable[Label]) -> Floats:
    """Return the mean label of each cell; NaN without one."""
    grid = ScoreGrid(cells.query_ids, cells.candidates, cells.scores)
    return label_cells(grid, labels)[0]


def labels_of(labels: Floats, place: int) -> list[list[float]]:
    """Return the labels of one query's responses, as candidate and label."""
    row = labels[place]
    return [
        [int(column), round(float(row[column]), 4)] for column in np.flatnonzero(~np.isnan(row))
    ]


def labels_block(labels: Floats, scores: Floats) -> dict[str, Any] | None:
    """Return the labelled responses that have a score; None without any."""
    both = np.argwhere(~np.isnan(labels) & ~np.isnan(scores))
    if not len(both):
        return None
    shown = both[:: -(-len(both) // MOST_LABELS)]
    queries, candidates = shown.T
    return {
        "query": queries.tolist(),
        "candidate": candidates.tolist(),
        "score": scores[queries, candidates].round(4).tolist(),
        "label": labels[queries, candidates].round(4).tolist(),
        "left_out": len(both) - len(shown),
    }
