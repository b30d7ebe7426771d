"""Scores against labels query by query, and candidate by candidate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.correlation import (
    FEWEST_FOR_INTERVAL,
    Coefficient,
    Correlation,
    correlate,
    pearson,
)
from rocketeval.audit.labelled_cells import LabelledCells
from rocketeval.audit.within_queries import within_queries
from rocketeval.ranking.bootstrap import interval, ratio_draws
from rocketeval.records import Interval, Rating

Floats = NDArray[np.float64]
Places = NDArray[np.intp]


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


def candidate_level(
    candidates: Sequence[str], cells: LabelledCells, seed: int, level: float
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


def query_level(
    cells: LabelledCells, places: Places, times: int, seed: int, level: float
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
