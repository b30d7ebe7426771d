"""Calibration of the judge's probabilities against reference answers to items.

Of items answered with a probability of 0.8, 80% should be yes. A reference answer is 0 or 1, or a
label rescaled to 0..1. Intervals resample queries.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Bools, Floats, Places
from rocketeval.audit.repeatability import refuse_improbable
from rocketeval.errors import ConfigError
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import (
    Groups,
    Resampling,
    interval_without_spread,
    least_queries,
    query_places,
    renumbered,
    resample_queries,
)


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Items with similar `p_yes`."""

    low: float
    high: float
    """The bin covers (low, high]; the first bin includes `low`."""
    items: int
    mean_p: float
    gold: Interval
    """Share of items with reference answer yes, or their mean label."""


@dataclass(frozen=True, slots=True)
class CalibrationCurve:
    """Non-empty bins in ascending order, with the calibration error."""

    bins: tuple[CalibrationBin, ...]
    error: float | None
    """Expected calibration error: the mean distance between a bin's `mean_p` and its reference
    share, weighted by items; None without items. It is biased upward by sampling noise in small
    bins and therefore has no interval; use the intervals of the bins."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Calibration and error rates of answers against reference answers."""

    by_width: CalibrationCurve
    """Bins of equal width."""
    by_count: CalibrationCurve
    """Bins with about equal numbers of items; equal probabilities share a bin."""
    brier: Interval | None
    """Mean squared distance of `p_yes` and reference answer; None without items."""
    auc: Interval | None
    """Probability that an item with reference yes gets a higher `p_yes` than one with no."""
    yes_bias: Interval | None
    """Share of items answered yes (0.5 or more) minus the share with reference yes: above zero, the
    judge says yes too often; None if the reference is not yes or no."""
    false_yes: Interval | None
    """Share of items with reference no that the judge answered yes."""
    false_no: Interval | None
    """Share of items with reference yes that the judge answered no."""
    gold_yes: int | None
    """Items with reference yes; None if the reference is not yes or no."""
    gold_no: int | None
    items: int
    missing: int
    """Items without a probability or without a reference answer."""
    reason: str | None
    """The reason for missing figures, if any."""


def calibration(
    p_yes: Floats,
    gold: Floats | Bools,
    groups: Groups,
    *,
    bins: int = 10,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Calibration:
    """Compare `p_yes` with the reference answers of the same items; `groups` are their queries."""
    if bins < 1:
        raise ConfigError(f"Invalid number of bins: {bins}.", hint="Use at least 1; 10 is usual.")
    truth = np.asarray(gold, dtype=np.float64)
    if len(truth) != len(p_yes):
        raise ValueError(f"{len(truth)} reference answers for {len(p_yes)} probabilities")
    refuse_improbable(p_yes)
    refuse_improbable(truth)
    known = ~(np.isnan(p_yes) | np.isnan(truth))
    p, y = p_yes[known], truth[known]
    places = renumbered(query_places(groups, len(p_yes))[known])
    resampling = Resampling(bootstrap, seed, level)
    binary = bool(((y == 0.0) | (y == 1.0)).all())
    no, yes = (y == 0.0) & binary, (y == 1.0) & binary
    said_yes = (p >= 0.5).astype(np.float64)
    both = bool(no.any() and yes.any())
    return Calibration(
        by_width=_curve(p, y, places, np.linspace(0.0, 1.0, bins + 1), resampling),
        by_count=_curve(p, y, places, _equal_counts(p, bins), resampling),
        brier=resampling.mean((p - y) ** 2, places),
        auc=_sure_area(p, yes, places, resampling) if both else None,
        yes_bias=resampling.mean(said_yes - y, places) if binary else None,
        false_yes=resampling.share(said_yes[no], renumbered(places[no])),
        false_no=resampling.share(1.0 - said_yes[yes], renumbered(places[yes])),
        gold_yes=int(yes.sum()) if binary else None,
        gold_no=int(no.sum()) if binary else None,
        items=len(p),
        missing=int((~known).sum()),
        reason=_why_incomplete(len(p), binary, both),
    )


def area_under_curve(p_yes: Floats, yes: Bools) -> float:
    """Return the probability that an item with reference yes has the higher `p_yes`.

    Ties count half. Both kinds of items must be present.

    >>> area_under_curve(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False]))
    0.875
    """
    order, ties = _ascending(p_yes)
    return _area(yes[order], ties, np.ones(len(order)))


def _ascending(p_yes: Floats) -> tuple[Places, Places]:
    """Return the ascending order, and where each distinct probability begins in it."""
    order = np.argsort(p_yes, kind="stable")
    return order, np.unique(p_yes[order], return_index=True)[1]


def _area(yes: Bools, ties: Places, weights: Floats) -> float:
    """Return the area under the curve of sorted items; NaN if one kind has no weight."""
    ups = np.add.reduceat(weights * yes, ties)
    downs = np.add.reduceat(weights * ~yes, ties)
    pairs = ups.sum() * downs.sum()
    won = (ups * (np.cumsum(downs) - downs / 2.0)).sum()
    return float(won / pairs) if pairs > 0.0 else math.nan


def _sure_area(p: Floats, yes: Bools, places: Places, resampling: Resampling) -> Interval:
    order, ties = _ascending(p)
    answers, drawn_with = yes[order], places[order]
    draws = [
        _area(answers, ties, draw[drawn_with])
        for counts in resample_queries(int(places.max()) + 1, resampling.times, resampling.seed)
        for draw in counts
    ]
    of_each_kind = min(len(np.unique(places[kind])) for kind in (yes, ~yes))
    value, level = area_under_curve(p, yes), resampling.level
    if value in (0.0, 1.0) and of_each_kind >= least_queries(level):
        # Every resample has the same order, too.
        return interval_without_spread(value, of_each_kind, level)
    return resampling.sure(value, np.array(draws), of_each_kind)


def _equal_counts(p: Floats, bins: int) -> Floats:
    """Return bin edges taken from the data, so that equal probabilities share a bin."""
    if not len(p):
        return np.zeros(bins + 1)
    in_order = np.sort(p)
    last = -(-np.arange(1, bins + 1) * len(p) // bins) - 1
    return np.concatenate([in_order[:1], in_order[last]])


def _curve(
    p: Floats, y: Floats, places: Places, edges: Floats, resampling: Resampling
) -> CalibrationCurve:
    if not len(p):
        return CalibrationCurve((), None)
    parts = np.searchsorted(edges[1:-1], p).astype(np.intp)
    count = len(edges) - 1
    items = np.bincount(parts, minlength=count)
    sums = np.bincount(parts, p, count)
    gold = resampling.shares(y, places, parts, count)
    bins = tuple(
        CalibrationBin(
            low=float(edges[part]),
            high=float(edges[part + 1]),
            items=int(items[part]),
            mean_p=float(sums[part] / items[part]),
            gold=share,
        )
        for part, share in enumerate(gold)
        if share is not None
    )
    apart = sum(each.items * abs(each.mean_p - each.gold.value) for each in bins)
    return CalibrationCurve(bins, apart / len(p))


def _why_incomplete(items: int, binary: bool, both: bool) -> str | None:
    if not items:
        return "no item has both a probability and a reference answer"
    if not binary:
        return "reference answers are not yes or no, so there is no AUC and no error rate"
    if not both:
        return "all reference answers are equal, so there is no AUC"
    return None
