"""Whether probabilities mean what they say: of items answered with 0.8, four in five should be yes.

Gold is the true answer of each item, 0 or 1, or a label rescaled to 0..1. Intervals resample
queries.
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
    query_places,
    renumbered,
    resample_queries,
)


@dataclass(frozen=True, slots=True)
class CalibrationBin:
    """Items with about the same `p_yes`."""

    low: float
    high: float
    """Its `p_yes` are above `low` (the first bin's from `low` on) and not above `high`."""
    items: int
    mean_p: float
    gold: Interval
    """Share of them that gold says yes to, or their mean label."""


@dataclass(frozen=True, slots=True)
class CalibrationCurve:
    """Bins that have items, from low to high."""

    bins: tuple[CalibrationBin, ...]
    error: float | None
    """Expected calibration error: the mean distance of a bin's `mean_p` and gold, each item
    counted once; None without items. It is never below what luck makes of bins this small, so it
    has no honest interval: look at those of the bins."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """Probabilities against gold, item by item."""

    by_width: CalibrationCurve
    """Bins of equal width."""
    by_count: CalibrationCurve
    """Bins of about equally many items; equal probabilities stay together."""
    brier: Interval | None
    """Mean squared distance of `p_yes` and gold; None without items."""
    auc: Interval | None
    """Chance that an item with gold yes has the higher `p_yes` than one with gold no."""
    yes_bias: Interval | None
    """Share answered yes (0.5 and more) less the share that gold says yes to: above zero, the judge
    says yes too easily; None where gold is not yes or no."""
    false_yes: Interval | None
    """Share answered yes of the items that gold says no to."""
    false_no: Interval | None
    """Share answered no of the items that gold says yes to."""
    gold_yes: int | None
    """Items that gold says yes to; None where gold is not yes or no."""
    gold_no: int | None
    items: int
    missing: int
    """Items without a probability or without gold."""
    reason: str | None
    """Why figures are missing, if any are."""


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
    """Hold `p_yes` against the gold of the same items; `groups` are their queries."""
    if bins < 1:
        raise ConfigError(f"{bins} bins", hint="Use at least 1; 10 is usual.")
    truth = np.asarray(gold, dtype=np.float64)
    if len(truth) != len(p_yes):
        raise ValueError(f"gold for {len(truth)} items, probabilities for {len(p_yes)}")
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
    """Chance that an item with gold yes has the higher `p_yes` than one with gold no, ties half.

    There are items of both kinds.

    >>> area_under_curve(np.array([0.9, 0.5, 0.5, 0.1]), np.array([True, True, False, False]))
    0.875
    """
    order, ties = _ascending(p_yes)
    return _area(yes[order], ties, np.ones(len(order)))


def _ascending(p_yes: Floats) -> tuple[Places, Places]:
    """The order from low to high, and where in it each distinct probability begins."""
    order = np.argsort(p_yes, kind="stable")
    return order, np.unique(p_yes[order], return_index=True)[1]


def _area(yes: Bools, ties: Places, weights: Floats) -> float:
    """The area of items from low to high; NaN where items of one kind have no weight."""
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
    return resampling.sure(area_under_curve(p, yes), np.array(draws), of_each_kind)


def _equal_counts(p: Floats, bins: int) -> Floats:
    """Edges that are probabilities found, so that equal ones stay together."""
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
        return "no item has both a probability and gold"
    if not binary:
        return "gold is not yes or no, so there is no AUC and no share of wrong answers"
    if not both:
        return "gold says the same of every item, so there is no AUC"
    return None
