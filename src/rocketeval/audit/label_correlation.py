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

from rocketeval.audit.agreement import Measured
from rocketeval.audit.correlation import (
    FEWEST_FOR_INTERVAL,
    Coefficient,
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
"""Labelled responses above which Kendall's tau over all of them has no interval."""
RESPONSES, PER_QUERY, CANDIDATES = "responses", "per query", "candidates"
"""The three levels."""

_FEW_ENOUGH_FOR_PAIRS = 100
_BLOCK_CELLS = 4_000_000


@dataclass(frozen=True, slots=True)
class LevelCorrelation:
    """How closely scores follow labels at one level; bounds are NaN where they are unknown."""

    pearson: Interval | None
    spearman: Interval | None
    kendall: Interval | None
    """Tau-b."""
    n: int
    """Responses, queries or candidates that the coefficients rest on."""
    left_out: int
    """Per query: labelled queries whose scores or labels are all the same; otherwise 0."""
    reason: str | None
    """Why there is no coefficient, if there is none."""


@dataclass(frozen=True, slots=True)
class LabelCorrelation:
    """How closely scores follow labels. Response-level intervals resample queries."""

    pearson: Interval | None
    spearman: Interval | None
    """Its interval keeps each response's rank among all."""
    kendall: Interval | None
    """Tau-b, its interval to first order; bounds are NaN above `MOST_FOR_KENDALL_INTERVAL`
    responses."""
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


@dataclass(frozen=True, slots=True)
class _Cells:
    """The labelled responses that have a score, as columns in the order of queries."""

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
    cells, unusable = _cells_of(grid, laid_out, unknown)
    responses = len(cells.scores)
    by_candidate, candidates = _candidate_level(grid.candidates, cells, seed, level)
    reason = why_no_coefficient(cells.scores, cells.labels, "labelled responses")
    _, places = np.unique(cells.rows, return_inverse=True)

    per_query = _query_level(cells, places, bootstrap, seed, level)
    r = rho = tau = rmse = None
    if responses:
        squared = (cells.scores - cells.labels) ** 2
        ranked = _ranked(cells)
        value = None if reason else _tau(cells.scores, cells.labels)
        sums = _sum_draws(
            np.column_stack(
                [
                    _moments(cells, places),
                    _moments(ranked, places),
                    np.bincount(places, weights=squared),
                    _kendall_adds(value, cells, places),
                ]
            ),
            bootstrap,
            seed,
        )

        def sure(value: float, draws: Floats) -> Interval:
            return interval(value, draws, queries=int(places.max()) + 1, level=level)

        rmse = sure(math.sqrt(float(squared.mean())), np.sqrt(sums[:, 12] / sums[:, 0]))
        if value is not None:
            r = sure(pearson(cells.scores, cells.labels), _pearson_of(sums[:, :6]))
            rho = sure(pearson(ranked.scores, ranked.labels), _pearson_of(sums[:, 6:12]))
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
    ours, theirs = (_cells_of(each, shared, 0)[0] for each in (grid, other))
    for cells in (ours, theirs):
        if why_no_coefficient(cells.scores, cells.labels, "labelled responses") is not None:
            return None
    _, places = np.unique(ours.rows, return_inverse=True)
    queries = int(places.max()) + 1
    one, two = _ranked(ours), _ranked(theirs)
    value = pearson(one.scores, one.labels) - pearson(two.scores, two.labels)
    moments = np.column_stack([_moments(one, places), _moments(two, places)])
    sums = _sum_draws(moments, bootstrap, seed)
    draws = _pearson_of(sums[:, :6]) - _pearson_of(sums[:, 6:])
    known = draws[~np.isnan(draws)]
    return Measured(
        value=interval(value, draws, queries=queries, level=level),
        queries=queries,
        gold=len(ours.scores),
        spread=float(known.std()) * math.sqrt(queries) if known.size else math.nan,
    )


def _labelled_cells(grid: ScoreGrid, labels: Sequence[Label]) -> tuple[_Cells, int]:
    """The cells with a label and a score, and how many have a label only."""
    return _cells_of(grid, *label_cells(grid, labels))


def _cells_of(grid: ScoreGrid, laid_out: Floats, unknown: int) -> tuple[_Cells, int]:
    labelled = ~np.isnan(laid_out)
    rows, columns = np.nonzero(labelled & ~np.isnan(grid.scores))
    cells = _Cells(rows, columns, grid.scores[rows, columns], laid_out[rows, columns])
    return cells, unknown + int(labelled.sum()) - len(rows)


def _ranked(cells: _Cells) -> _Cells:
    return _Cells(cells.rows, cells.columns, ranks(cells.scores), ranks(cells.labels))


def _candidate_level(
    candidates: Sequence[str], cells: _Cells, seed: int, level: float
) -> tuple[Correlation, LevelCorrelation]:
    """Means of candidates over their labelled responses, against each other."""
    found, places = np.unique(cells.columns, return_inverse=True)
    counts = np.maximum(np.bincount(places), 1)
    scores, labels = (
        np.bincount(places, weights=side) / counts for side in (cells.scores, cells.labels)
    )
    names = [candidates[column] for column in found.tolist()]
    theirs = [Rating(name, mean) for name, mean in zip(names, labels.tolist(), strict=True)]
    ours = dict(zip(names, scores.tolist(), strict=True))
    correlation = correlate(ours, theirs, seed=seed, level=level)
    r = None if correlation.reason else _fisher_pearson(scores, labels, level)
    rho, tau = (_bounded(each) for each in (correlation.spearman, correlation.kendall))
    return correlation, LevelCorrelation(r, rho, tau, correlation.n, 0, correlation.reason)


def _bounded(found: Coefficient | None) -> Interval | None:
    if found is None:
        return None
    return found.interval or Interval(found.value, math.nan, math.nan)


def _fisher_pearson(x: Floats, y: Floats, level: float) -> Interval:
    from scipy.special import ndtri

    value = pearson(x, y)
    if len(x) < FEWEST_FOR_INTERVAL or abs(value) > 1.0 - 1e-12:
        return Interval(value, math.nan, math.nan)
    reach = float(ndtri(0.5 + level / 2.0)) / math.sqrt(len(x) - 3)
    middle = math.atanh(value)
    return Interval(value, math.tanh(middle - reach), math.tanh(middle + reach))


def _query_level(
    cells: _Cells, places: Places, times: int, seed: int, level: float
) -> LevelCorrelation:
    """The mean over queries of the coefficients within each."""
    labelled = len(np.unique(places))
    found = within_queries(cells.scores, cells.labels, places)
    varying = found[~np.isnan(found[:, 0])]
    n = len(varying)
    if not n:
        reason = "in no query do both scores and labels differ" if labelled else "no labels"
        return LevelCorrelation(None, None, None, 0, labelled, reason)
    draws = ratio_draws(varying, np.ones_like(varying), times=times, seed=seed)
    means = varying.mean(axis=0).tolist()
    r, rho, tau = (
        interval(mean, draws[:, place], queries=n, level=level) for place, mean in enumerate(means)
    )
    return LevelCorrelation(r, rho, tau, n, labelled - n, None)


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
        found[varies, 1] = _pearson_within(_ranks_within(x, kept), _ranks_within(y, kept), kept)
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


def _ranks_within(values: Floats, places: Places) -> Floats:
    """Ranks among the query's own, equal values sharing their mean rank."""
    order = np.lexsort((values, places))
    ahead = np.flatnonzero(np.diff(places, prepend=-1))[places]
    fresh = np.diff(values[order], prepend=np.nan) != 0.0
    fresh |= np.diff(places[order], prepend=-1) != 0
    tied = np.cumsum(fresh) - 1
    counts = np.bincount(tied)
    shared = np.empty(len(values))
    shared[order] = (np.cumsum(counts) - (counts - 1) / 2.0)[tied]
    ranked: Floats = shared - ahead
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
                found[query] = _tau(x[own], y[own])
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


def _pearson_draws(cells: _Cells, places: Places, times: int, seed: int) -> Floats:
    """Pearson on each resample, from sums per query: no resample is ever laid out."""
    return _pearson_of(_sum_draws(_moments(cells, places), times, seed))


def _moments(cells: _Cells, places: Places) -> Floats:
    """Six sums per query, from which Pearson follows."""
    x = cells.scores - cells.scores.mean()
    y = cells.labels - cells.labels.mean()
    summed = (np.ones_like(x), x, y, x * x, y * y, x * y)
    return np.stack([np.bincount(places, weights=each) for each in summed], axis=1)


def _sum_draws(per_query: Floats, times: int, seed: int) -> Floats:
    """Per resample, the sums over its queries."""
    drawn = [counts @ per_query for counts in resample_queries(len(per_query), times, seed)]
    return np.concatenate(drawn)


def _pearson_of(sums: Floats) -> Floats:
    n, sx, sy, sxx, syy, sxy = sums.T
    spread = (n * sxx - sx * sx) * (n * syy - sy * sy)
    found = np.full(len(n), np.nan)
    varies = spread > 1e-12
    found[varies] = (n * sxy - sx * sy)[varies] / np.sqrt(spread[varies])
    return found


def _kendall_adds(value: float | None, cells: _Cells, places: Places) -> Floats:
    """What each query adds to tau-b each time it is drawn, to first order; NaN if not known."""
    responses, queries = len(places), int(places.max()) + 1
    if value is None or responses > MOST_FOR_KENDALL_INTERVAL:
        return np.full(queries, np.nan)
    same, x_apart, y_apart = (
        np.bincount(places, weights=part) for part in _pairs_of_each(cells.scores, cells.labels)
    )
    x_all, y_all = float(x_apart.sum()), float(y_apart.sum())
    adds = 2.0 * same / math.sqrt(x_all * y_all) - value * (x_apart / x_all + y_apart / y_all)
    return adds.astype(np.float64)


def _pairs_of_each(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Per response: pairs in the same order less those in the other, and pairs apart in each."""
    responses = len(x)
    in_order = np.empty(responses)
    block = max(1, _BLOCK_CELLS // responses)
    for start in range(0, responses, block):
        some = slice(start, start + block)
        above = (x[some, None] > x) & (y[some, None] > y)
        below = (x[some, None] < x) & (y[some, None] < y)
        in_order[some] = np.count_nonzero(above | below, axis=1)
    x_place, y_place = (np.unique(side, return_inverse=True)[1] for side in (x, y))
    x_apart, y_apart = (responses - _alike(place) for place in (x_place, y_place))
    apart = x_apart + y_apart - responses + _alike(x_place * responses + y_place)
    return 2.0 * in_order - apart, x_apart, y_apart


def _alike(values: NDArray[np.int64]) -> Floats:
    """How many have the same value as each, itself included."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    alike: Floats = counts[place].astype(np.float64)
    return alike


def _tau(x: Floats, y: Floats) -> float:
    from scipy.stats import kendalltau

    return float(kendalltau(x, y).statistic)
