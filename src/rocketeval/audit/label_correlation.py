"""Correlation of scores with labels, response by response and candidate by candidate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.correlation import (
    Correlation,
    correlate,
    pearson,
    ranks,
    why_no_coefficient,
)
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.bootstrap import interval, ratio_draws, resample_queries
from rocketeval.records import Interval, Label, Rating
from rocketeval.scoring.labelled import label_cells

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

MOST_FOR_KENDALL_INTERVAL = 5_000
"""Labelled responses above which Kendall's tau is not computed again on every resample."""


@dataclass(frozen=True, slots=True)
class LabelCorrelation:
    """How closely scores follow labels. Response-level intervals resample queries."""

    pearson: Interval | None
    spearman: Interval | None
    """Its interval keeps each response's rank among all."""
    kendall: Interval | None
    """Tau-b; its bounds are NaN above `MOST_FOR_KENDALL_INTERVAL` responses."""
    rmse: Interval | None
    """Root of the mean squared difference, on the label scale; None without responses."""
    responses: int
    """Labelled responses that have a score; several labels of one response are averaged."""
    unusable: int
    """Labelled responses without a score."""
    reason: str | None
    """Why there is no response-level coefficient, if there is none."""
    candidates: Correlation
    """The same for candidate means over those responses."""


@dataclass(frozen=True, slots=True)
class _Cells:
    """The labelled responses that have a score, as columns."""

    rows: Places
    columns: Places
    scores: Floats
    labels: Floats


def label_correlation(
    grid: ScoreGrid,
    labels: Sequence[Label],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> LabelCorrelation:
    """How closely the grid's scores follow the labels."""
    cells, unusable = _labelled_cells(grid, labels)
    responses = len(cells.scores)
    by_candidate = _correlate_means(grid.candidates, cells, seed, level)
    reason = why_no_coefficient(cells.scores, cells.labels, "labelled responses")
    _, places = np.unique(cells.rows, return_inverse=True)

    def sure(value: float, draws: Floats) -> Interval:
        return interval(value, draws, queries=int(places.max()) + 1, level=level)

    rmse = None
    if responses:
        squared = (cells.scores - cells.labels) ** 2
        draws = _root_mean_draws(squared, places, bootstrap, seed)
        rmse = sure(math.sqrt(float(squared.mean())), draws)
    if reason is not None:
        return LabelCorrelation(None, None, None, rmse, responses, unusable, reason, by_candidate)
    ranked = _Cells(cells.rows, cells.columns, ranks(cells.scores), ranks(cells.labels))
    return LabelCorrelation(
        pearson=sure(
            pearson(cells.scores, cells.labels), _pearson_draws(cells, places, bootstrap, seed)
        ),
        spearman=sure(
            pearson(ranked.scores, ranked.labels), _pearson_draws(ranked, places, bootstrap, seed)
        ),
        kendall=sure(
            _tau(cells.scores, cells.labels), _kendall_draws(cells, places, bootstrap, seed)
        ),
        rmse=rmse,
        responses=responses,
        unusable=unusable,
        reason=None,
        candidates=by_candidate,
    )


def _labelled_cells(grid: ScoreGrid, labels: Sequence[Label]) -> tuple[_Cells, int]:
    """The cells with a label and a score, and how many have a label only."""
    laid_out, unknown = label_cells(grid, labels)
    labelled = ~np.isnan(laid_out)
    rows, columns = np.nonzero(labelled & ~np.isnan(grid.scores))
    cells = _Cells(rows, columns, grid.scores[rows, columns], laid_out[rows, columns])
    return cells, unknown + int(labelled.sum()) - len(rows)


def _correlate_means(
    candidates: Sequence[str], cells: _Cells, seed: int, level: float
) -> Correlation:
    ours: dict[str, float] = {}
    theirs: list[Rating] = []
    for column in np.unique(cells.columns):
        mine = cells.columns == column
        ours[candidates[column]] = float(cells.scores[mine].mean())
        theirs.append(Rating(candidates[column], float(cells.labels[mine].mean())))
    return correlate(ours, theirs, seed=seed, level=level)


def _pearson_draws(cells: _Cells, places: Places, times: int, seed: int) -> Floats:
    """Pearson on each resample, from sums per query: no resample is ever laid out."""
    x = cells.scores - cells.scores.mean()
    y = cells.labels - cells.labels.mean()
    moments = [np.bincount(places, weights=w) for w in (np.ones_like(x), x, y, x * x, y * y, x * y)]
    per_query = np.stack(moments, axis=1)
    blocks = []
    for counts in resample_queries(len(per_query), times, seed):
        n, sx, sy, sxx, syy, sxy = (counts @ per_query).T
        spread = (n * sxx - sx * sx) * (n * syy - sy * sy)
        drawn = np.full(len(n), np.nan)
        varies = spread > 1e-12
        drawn[varies] = (n * sxy - sx * sy)[varies] / np.sqrt(spread[varies])
        blocks.append(drawn)
    return np.concatenate(blocks)


def _root_mean_draws(values: Floats, places: Places, times: int, seed: int) -> Floats:
    totals = np.bincount(places, weights=values).astype(np.float64)[:, None]
    counts = np.bincount(places).astype(np.float64)[:, None]
    return np.sqrt(ratio_draws(totals, counts, times=times, seed=seed)[:, 0])


def _kendall_draws(cells: _Cells, places: Places, times: int, seed: int) -> Floats:
    if len(places) > MOST_FOR_KENDALL_INTERVAL:
        return np.array([math.nan])
    queries = int(places.max()) + 1
    drawn = []
    for counts in resample_queries(queries, times, seed):
        for draw in counts.astype(np.intp):
            again = np.repeat(np.arange(len(places)), draw[places])
            drawn.append(_tau(cells.scores[again], cells.labels[again]))
    return np.array(drawn)


def _tau(x: Floats, y: Floats) -> float:
    from scipy.stats import kendalltau

    return float(kendalltau(x, y).statistic)
