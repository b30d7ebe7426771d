"""A mean predicted for all queries and corrected where there are labels, with its variance."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.certainty.sample import Sample
from rocketeval.records import Interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SYMMETRIC = 1e-6
_ROUNDING = 1e-12
_MOST_LEVERAGE = 0.999


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A mean label, before it becomes an interval."""

    predicted: Floats
    """The label predicted for every query, labelled or not."""
    slope: float
    """Labels per unit of score; 0 when the scores are not used."""
    within: Floats
    """Variance for want of labels, by stratum."""
    third_moment: float
    """Of the mean label's error, about its mean."""
    freedom: float
    """Degrees of freedom of the variance: Satterthwaite's, less one for a slope."""

    @property
    def value(self) -> float:
        """The mean label."""
        return float(self.predicted.mean())

    @property
    def variance(self) -> float:
        """Of the mean label: for want of labels, and for want of queries."""
        return float(self.within.sum()) + float(self.predicted.var()) / len(self.predicted)


def fit_mean(sample: Sample, strata: Ints, *, use_scores: bool = True) -> Fit:
    """The mean of the labels predicted for all queries; every stratum needs a label.

    The prediction is a line with one slope for all strata, through the labelled queries of each.
    """
    known = sample.labelled
    here, shares = strata[known], np.bincount(strata) / len(strata)
    counts = np.bincount(here, minlength=len(shares)).astype(np.float64)

    def centred(values: Floats) -> tuple[Floats, Floats]:
        means = np.bincount(here, weights=values, minlength=len(shares)) / counts
        return values - means[here], means

    x, x_means = centred(sample.scores[known])
    y, y_means = centred(sample.labels[known])
    x_squared = float(x @ x)
    # Equal scores less their mean are seldom exactly zero, and would give any slope.
    rounding = _ROUNDING * max(1.0, float(np.abs(sample.scores).max()))
    sloped = use_scores and x_squared > len(x) * rounding**2
    slope = float(x @ y) / x_squared if sloped else 0.0
    from_centre = sample.scores - x_means[strata]
    predicted: Floats = y_means[strata] + slope * from_centre

    share, leverage = (shares / counts)[here], 1.0 / counts[here]
    if sloped:
        share = share + x * from_centre.mean() / x_squared
        leverage = leverage + x * x / x_squared
    # How far the estimate moves when a label is left out and everything is fitted again.
    moves = share * (y - slope * x) / (1.0 - np.minimum(leverage, _MOST_LEVERAGE))
    moves, _ = centred(moves)
    within = np.bincount(here, weights=moves**2, minlength=len(shares)) * (1.0 - 1.0 / counts)
    freedom = satterthwaite(within, counts - 1.0) - (1.0 if sloped else 0.0)
    return Fit(
        predicted=predicted,
        slope=slope,
        within=within,
        third_moment=float((moves**3).sum()) + _third_moment(predicted),
        freedom=max(freedom, 1.0),
    )


def hall_interval(fit: Fit, level: float) -> Interval:
    """Student's t interval, its ends moved for skewness by Hall's cubic transformation.

    The bounds are NaN when nothing varies: equal labels do not prove that all labels are equal.
    """
    error = math.sqrt(fit.variance)
    if error <= _ROUNDING * max(1.0, abs(fit.value)):
        return Interval(fit.value, math.nan, math.nan)
    quantile, skewness = half_width(fit, level) / error, fit.third_moment / error**3
    low, high = (fit.value - error * _unskewed(x, skewness) for x in (quantile, -quantile))
    return Interval(fit.value, low, high)


def half_width(fit: Fit, level: float) -> float:
    """Half the width of Student's t interval, skewness aside."""
    from scipy.special import stdtrit

    return float(stdtrit(fit.freedom, (1.0 + level) / 2.0)) * math.sqrt(fit.variance)


def _unskewed(quantile: float, skewness: float) -> float:
    """The quantile of a mean in standard errors, from that of a symmetric one."""
    if abs(skewness) < _SYMMETRIC:
        return quantile
    return 3.0 / skewness * (math.cbrt(1.0 + skewness * (quantile - skewness / 6.0)) - 1.0)


def _third_moment(values: Floats) -> float:
    """Of the mean of values, about its mean."""
    return float(((values - values.mean()) ** 3).mean()) / len(values) ** 2


def satterthwaite(parts: Floats, freedoms: Floats) -> float:
    """Satterthwaite's degrees of freedom of a sum of variances."""
    total = float(parts.sum())
    if total == 0.0:
        return float(freedoms.sum())
    moving = parts > 0.0
    return total**2 / float((parts[moving] ** 2 / freedoms[moving]).sum())
