"""Correlation of scores with labels, at three levels that answer different questions.

Over all responses: does a higher score mean a better response? Per query: of the responses to one
query, are the better ones scored higher? Over candidates: do mean scores order candidates as mean
labels do? Means hide the misses of single responses, so the third can be high where the others are
not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.by_query import sum_draws
from rocketeval.audit.correlation import Correlation, pearson, why_no_coefficient
from rocketeval.audit.figures import Measured
from rocketeval.audit.kendall import kendall_adds, tau_b
from rocketeval.audit.label_levels import LevelCorrelation, candidate_level, query_level
from rocketeval.audit.labelled_cells import cells_of, moments, pearson_of, ranked
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.bootstrap import interval
from rocketeval.records import Interval, Label
from rocketeval.scoring.labelled import label_cells

Floats = NDArray[np.float64]

RESPONSES, PER_QUERY, CANDIDATES = "responses", "per query", "candidates"
"""The three levels."""


@dataclass(frozen=True, slots=True)
class LabelCorrelation:
    """How closely scores follow labels. Response-level intervals resample queries."""

    pearson: Interval | None
    spearman: Interval | None
    """Its interval keeps each response's rank among all."""
    kendall: Interval | None
    """Tau-b, its interval to first order; bounds are NaN above
    `kendall.MOST_FOR_KENDALL_INTERVAL` responses."""
    rmse: Interval | None
    """Root of the mean squared difference, on the label scale; None without responses, and for
    scores on another scale."""
    responses: int
    """Labelled responses that have a score; several labels of one response are averaged."""
    unusable: int
    """Labelled responses without a score."""
    reason: str | None
    """Why there is no response-level coefficient, if there is none."""
    candidates: Correlation
    """The same for candidate means over those responses."""
    levels: Mapping[str, LevelCorrelation] = field(default_factory=dict)
    """All three levels alike: `responses`, `per query` (the mean over queries of the coefficient
    within each; intervals resample queries) and `candidates` (intervals by Fisher's z, for other
    candidates)."""


def label_correlation(
    grid: ScoreGrid,
    labels: Sequence[Label],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> LabelCorrelation:
    """How closely the grid's scores follow the labels."""
    laid_out, unknown = label_cells(grid, labels)
    return correlate_with_cells(
        grid, laid_out, unknown, bootstrap=bootstrap, seed=seed, level=level
    )


def correlate_with_cells(
    grid: ScoreGrid,
    laid_out: Floats,
    unknown: int,
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> LabelCorrelation:
    """The same for labels that `label_cells` has laid out like the grid, once for many grids."""
    cells, unusable = cells_of(grid, laid_out, unknown)
    responses = len(cells.scores)
    by_candidate, candidates = candidate_level(grid.candidates, cells, seed, level)
    reason = why_no_coefficient(cells.scores, cells.labels, "labelled responses")
    _, places = np.unique(cells.rows, return_inverse=True)

    per_query = query_level(cells, places, bootstrap, seed, level)
    r = rho = tau = rmse = None
    if responses:
        squared = (cells.scores - cells.labels) ** 2
        in_ranks = ranked(cells)
        value = None if reason else tau_b(cells.scores, cells.labels)
        sums = sum_draws(
            np.column_stack(
                [
                    moments(cells, places),
                    moments(in_ranks, places),
                    np.bincount(places, weights=squared),
                    kendall_adds(value, cells.scores, cells.labels, places),
                ]
            ),
            bootstrap,
            seed,
        )

        def sure(value: float, draws: Floats) -> Interval:
            return interval(value, draws, queries=int(places.max()) + 1, level=level)

        rmse = sure(math.sqrt(float(squared.mean())), np.sqrt(sums[:, 12] / sums[:, 0]))
        if value is not None:
            r = sure(pearson(cells.scores, cells.labels), pearson_of(sums[:, :6]))
            rho = sure(pearson(in_ranks.scores, in_ranks.labels), pearson_of(sums[:, 6:12]))
            tau = sure(value, np.clip(value + sums[:, 13], -1.0, 1.0))
    whole = LevelCorrelation(r, rho, tau, responses, 0, reason)
    return LabelCorrelation(
        pearson=r,
        spearman=rho,
        kendall=tau,
        rmse=rmse,
        responses=responses,
        unusable=unusable,
        reason=reason,
        candidates=by_candidate,
        levels={RESPONSES: whole, PER_QUERY: per_query, CANDIDATES: candidates},
    )


def spearman_difference(
    grid: ScoreGrid,
    other: ScoreGrid,
    laid_out: Floats,
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Measured | None:
    """How much more closely `grid` than `other` follows the labels, over all responses.

    On responses that both score; None where either has no coefficient.
    """
    shared = np.where(np.isnan(grid.scores + other.scores), np.nan, laid_out)
    ours, theirs = (cells_of(each, shared, 0)[0] for each in (grid, other))
    for cells in (ours, theirs):
        if why_no_coefficient(cells.scores, cells.labels, "labelled responses") is not None:
            return None
    _, places = np.unique(ours.rows, return_inverse=True)
    queries = int(places.max()) + 1
    one, two = ranked(ours), ranked(theirs)
    value = pearson(one.scores, one.labels) - pearson(two.scores, two.labels)
    both = np.column_stack([moments(one, places), moments(two, places)])
    sums = sum_draws(both, bootstrap, seed)
    draws = pearson_of(sums[:, :6]) - pearson_of(sums[:, 6:])
    known = draws[~np.isnan(draws)]
    return Measured(
        value=interval(value, draws, queries=queries, level=level),
        queries=queries,
        gold=len(ours.scores),
        spread=float(known.std()) * math.sqrt(queries) if known.size else math.nan,
    )
