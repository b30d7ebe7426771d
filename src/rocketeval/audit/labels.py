"""Correlation of scores with labels, at three levels that answer different questions.

Over all responses: does a higher score mean a better response? Per query: of the responses to one
query, are the better ones scored higher? Over candidates: do mean scores order candidates as mean
labels do? Means average out errors on single responses, so the third can be high when the others
are low.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.audit.figures import MeasuredFigure
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval, Label, Rating
from rocketeval.scoring.learning import label_cells
from rocketeval.stats.bootstrap import (
    interval,
    mean_interval,
    ratio_draws,
    renumbered,
    sum_draws,
)
from rocketeval.stats.correlation import (
    Coefficient,
    Correlation,
    correlate,
    kendall_adds,
    moments,
    pearson,
    pearson_interval,
    pearson_of,
    ranks,
    tau_b,
    why_no_coefficient,
    within_queries,
)

Places = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class LabelledCells:
    """Labeled responses with a score, as columns in query order."""

    rows: Places
    columns: Places
    scores: Floats
    labels: Floats


def cells_of(grid: ScoreGrid, laid_out: Floats, unknown: int) -> tuple[LabelledCells, int]:
    """Return the cells with a label and a score, and the number with a label only.

    `laid_out` and `unknown` come from `label_cells`.
    """
    labelled = ~np.isnan(laid_out)
    rows, columns = np.nonzero(labelled & ~np.isnan(grid.scores))
    cells = LabelledCells(rows, columns, grid.scores[rows, columns], laid_out[rows, columns])
    return cells, unknown + int(labelled.sum()) - len(rows)


def ranked(cells: LabelledCells) -> LabelledCells:
    """Replace scores and labels with their ranks."""
    return LabelledCells(cells.rows, cells.columns, ranks(cells.scores), ranks(cells.labels))


@dataclass(frozen=True, slots=True)
class LevelCorrelation:
    """Correlation of scores with labels at one level; unknown bounds are NaN."""

    pearson: Interval | None
    spearman: Interval | None
    kendall: Interval | None
    """Tau-b."""
    n: int
    """Number of responses, queries or candidates."""
    left_out: int
    """Per query: labeled queries with identical scores or labels; otherwise 0."""
    reason: str | None
    """The reason for missing coefficients, if any."""

    @property
    def coefficients(self) -> dict[str, Interval | None]:
        """Return all three by name."""
        return {"Pearson": self.pearson, "Spearman": self.spearman, "Kendall": self.kendall}


def candidate_level(
    candidates: Sequence[str], cells: LabelledCells, seed: int, level: float
) -> tuple[Correlation, LevelCorrelation]:
    """Correlate mean scores with mean labels of candidates."""
    found, places = np.unique(cells.columns, return_inverse=True)
    counts = np.maximum(np.bincount(places), 1)
    scores, labels = (
        np.bincount(places, weights=side) / counts for side in (cells.scores, cells.labels)
    )
    names = [candidates[column] for column in found.tolist()]
    theirs = [Rating(name, mean) for name, mean in zip(names, labels.tolist(), strict=True)]
    ours = dict(zip(names, scores.tolist(), strict=True))
    correlation = correlate(ours, theirs, seed=seed, level=level)
    r = None if correlation.reason else pearson_interval(scores, labels, level)
    rho, tau = (_bounded(each) for each in (correlation.spearman, correlation.kendall))
    return correlation, LevelCorrelation(r, rho, tau, correlation.n, 0, correlation.reason)


def _bounded(found: Coefficient | None) -> Interval | None:
    if found is None:
        return None
    return found.interval or Interval(found.value, math.nan, math.nan)


def query_level(
    cells: LabelledCells, places: Places, units: Places, times: int, seed: int, level: float
) -> LevelCorrelation:
    """Return the mean over queries of the within-query coefficients.

    `places` numbers the query of each cell, `units` its cluster. If a coefficient is the same in
    every resample, its interval is exact.
    """
    labelled = len(np.unique(places))
    found = within_queries(cells.scores, cells.labels, places)
    known = ~np.isnan(found[:, 0])
    varying, n = found[known], int(known.sum())
    if not n:
        reason = (
            "no query has both differing scores and differing labels" if labelled else "no labels"
        )
        return LevelCorrelation(None, None, None, 0, labelled, reason)
    cluster_of = np.zeros(len(found), np.intp)
    cluster_of[places] = units
    own = renumbered(cluster_of[known])
    draws = ratio_draws(varying, np.ones_like(varying), times=times, seed=seed, queries=own)
    clusters, means = int(own.max()) + 1, varying.mean(axis=0).tolist()
    r, rho, tau = (
        mean_interval(mean, draws[:, place], queries=clusters, level=level, ends=(-1.0, 1.0))
        for place, mean in enumerate(means)
    )
    return LevelCorrelation(r, rho, tau, n, labelled - n, None)


RESPONSES, PER_QUERY, CANDIDATES = "responses", "per query", "candidates"
LEVELS = (RESPONSES, PER_QUERY, CANDIDATES)


@dataclass(frozen=True, slots=True)
class LabelCorrelation:
    """Correlation of scores with labels. Response-level intervals resample queries."""

    pearson: Interval | None
    spearman: Interval | None
    """Its interval keeps each response's rank fixed."""
    kendall: Interval | None
    """Tau-b with a first-order interval; bounds are NaN above
    `correlation.MOST_FOR_KENDALL_INTERVAL` responses."""
    rmse: Interval | None
    """Root mean squared error on the label scale; None without responses, or if scores are on
    another scale."""
    responses: int
    """Labeled responses with a score; several labels of one response are averaged."""
    unusable: int
    """Labeled responses without a score."""
    reason: str | None
    """The reason for missing response-level coefficients, if any."""
    candidates: Correlation
    """Correlation of candidate means over those responses."""
    levels: Mapping[str, LevelCorrelation] = field(default_factory=dict)
    """By level: `responses`, `per query` (mean over queries of the within-query coefficient;
    intervals resample queries) and `candidates` (intervals by Fisher's z, for other candidates)."""


def label_correlation(
    grid: ScoreGrid,
    labels: Sequence[Label],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> LabelCorrelation:
    """Correlate the grid's scores with the labels."""
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
    """Correlate scores with labels that `label_cells` has laid out like the grid."""
    cells, unusable = cells_of(grid, laid_out, unknown)
    responses = len(cells.scores)
    by_candidate, candidates = candidate_level(grid.candidates, cells, seed, level)
    reason = why_no_coefficient(cells.scores, cells.labels, "labeled responses")
    queries = renumbered(cells.rows)
    places = renumbered(grid.places()[cells.rows])
    per_query = query_level(cells, queries, places, bootstrap, seed, level)
    r = rho = tau = rmse = None
    if responses:
        squared = (cells.scores - cells.labels) ** 2
        in_ranks = ranked(cells)
        value = None if reason else tau_b(cells.scores, cells.labels)
        sums = sum_draws(
            np.column_stack(
                [
                    moments(cells.scores, cells.labels, places),
                    moments(in_ranks.scores, in_ranks.labels, places),
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


def query_difference(
    grid: ScoreGrid,
    other: ScoreGrid,
    laid_out: Floats,
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> MeasuredFigure | None:
    """Return the mean within-query Spearman of `grid` with labels minus that of `other`.

    Equal scores of a query have a correlation of zero. None if no query has differing labels, and
    differing scores on a side.
    """
    shared = np.where(np.isnan(grid.scores + other.scores), np.nan, laid_out)
    ours, theirs = (cells_of(each, shared, 0)[0] for each in (grid, other))
    places = renumbered(ours.rows)
    one, two = (within_queries(each.scores, each.labels, places)[:, 1] for each in (ours, theirs))
    known = ~(np.isnan(one) & np.isnan(two))
    if not known.any():
        return None
    adds = (np.nan_to_num(one) - np.nan_to_num(two))[known]
    clusters = grid.places()[np.unique(ours.rows)][known]
    own = renumbered(clusters)
    draws = ratio_draws(
        adds[:, None], np.ones((len(adds), 1)), times=bootstrap, seed=seed, queries=own
    )[:, 0]
    queries, value = int(own.max()) + 1, float(adds.mean())
    return MeasuredFigure(
        value=mean_interval(value, draws, queries=queries, level=level, ends=(-2.0, 2.0)),
        queries=queries,
        gold=int(np.isin(places, np.flatnonzero(known)).sum()),
        spread=float(adds.std(ddof=1)) if len(adds) > 1 else math.nan,
    )


def spearman_difference(
    grid: ScoreGrid,
    other: ScoreGrid,
    laid_out: Floats,
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> MeasuredFigure | None:
    """Return the Spearman correlation of `grid` with labels minus that of `other`.

    Only responses scored by both count; None if either has no coefficient.
    """
    shared = np.where(np.isnan(grid.scores + other.scores), np.nan, laid_out)
    ours, theirs = (cells_of(each, shared, 0)[0] for each in (grid, other))
    for cells in (ours, theirs):
        if why_no_coefficient(cells.scores, cells.labels, "labeled responses") is not None:
            return None
    places = renumbered(grid.places()[ours.rows])
    queries = int(places.max()) + 1
    one, two = ranked(ours), ranked(theirs)
    value = pearson(one.scores, one.labels) - pearson(two.scores, two.labels)
    both = np.column_stack([moments(each.scores, each.labels, places) for each in (one, two)])
    sums = sum_draws(both, bootstrap, seed)
    draws = pearson_of(sums[:, :6]) - pearson_of(sums[:, 6:])
    known = draws[~np.isnan(draws)]
    return MeasuredFigure(
        value=interval(value, draws, queries=queries, level=level),
        queries=queries,
        gold=len(ours.scores),
        spread=float(known.std()) * math.sqrt(queries) if known.size else math.nan,
    )
