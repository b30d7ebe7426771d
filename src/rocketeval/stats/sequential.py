"""Group-sequential bounds: look at the scores several times, and keep the error rate.

A test after every few queries that stops at the first significant difference errs far more often
than 5%. Here the looks are fixed before the first score: after `first` independent queries,
then every time a quarter more are scored, then at the last. At each look a paired t statistic is
converted to the normal quantile with the same tail probability and compared with a bound. The bound
is `c * (n / last) ** (shape - 1/2)` (Wang and Tsiatis, 1987). `c` follows from the joint normal
distribution of the looks, so that a true null hypothesis crosses the bound at any look with the
given probability (Armitage, McPherson and Rowe's recursion). The t statistic is corrected for the
skewness of the differences (Johnson, 1978), only toward zero.

**Covered**: a mean over queries like these; queries, or clusters of queries, are drawn in a random
order before the first look. **Not covered**: differences whose distribution is so skewed that the
first look has not seen its tail; `studies/stopping.py` measures how far that goes.

Repeated confidence intervals (Jennison and Turnbull, 1989) use the same bound: all of them, at all
looks, contain the true value with the stated probability, whatever made the race stop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from rocketeval.arrays import Bools, Floats, Ints, Places

FIRST_LOOK = 30
"""Independent queries before the first look."""
GROWTH = 1.25
"""Ratio of the queries at two successive looks."""
SHAPE = 0.45
"""Shape of the bound: 0.5 is constant (Pocock), 0 is strictest at first (O'Brien and Fleming)."""
LEAST_ERROR = 1e-6
"""A smaller standard error is zero up to rounding: the values do not vary."""
_NODES = 64
_BOUNDS = np.linspace(0.0, 12.0, 97)
"""Values of `c` for which crossing probabilities are computed."""


def plan_looks(units: int, first: int = FIRST_LOOK, growth: float = GROWTH) -> tuple[int, ...]:
    """Return the number of independent queries at each look; the last look has all of them.

    >>> plan_looks(60)
    (30, 38, 47, 60)
    """
    found, size = [], float(first)
    while round(size) < units:
        found.append(round(size))
        size *= growth
    # A last step that is too small to matter is merged with the look before it.
    if found and units < found[-1] * (1.0 + (growth - 1.0) / 3.0):
        found.pop()
    return (*found, units)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The bounds of a series of looks."""

    looks: tuple[int, ...]
    """Independent queries at each look."""
    shape: float = SHAPE

    def at(self, look: int, error: float) -> float:
        """Return the bound of a normal statistic at a look, for a one-sided error over all looks.

        >>> round(Bounds((50,)).at(0, 0.025), 2), round(Bounds((25, 50), 0.5).at(0, 0.025), 2)
        (1.96, 2.18)
        """
        logs = _log_crossing(self.looks, self.shape)
        # Close to linear in the square of the bound.
        constant = math.sqrt(float(np.interp(-math.log(error), -logs, _BOUNDS**2)))
        return constant * float(self._weights()[look])

    def p_value(self, statistics: Floats, look: int) -> Floats:
        """Return the one-sided p-value over all looks of normal statistics at one look."""
        constants = np.maximum(statistics, 0.0) / self._weights()[look]
        logs = np.interp(constants**2, _BOUNDS**2, _log_crossing(self.looks, self.shape))
        found: Floats = np.exp(logs)
        return found

    def widening(self, look: int, level: float) -> float:
        """Return how much wider a two-sided interval at a look is than one without earlier looks.

        >>> round(Bounds((50,)).widening(0, 0.95), 2)
        1.0
        """
        error = (1.0 - level) / 2.0
        return max(1.0, self.at(look, error) / _normal_quantile(error))

    def chance_to_cross(self, statistics: Floats, look: int, error: float) -> Floats:
        """Return the chance that a statistic at a look ends beyond the last look's bound.

        Optimistic: the true difference is taken to be one standard error larger than it looks.
        """
        from scipy.special import ndtr

        share = self.looks[look] / self.looks[-1]
        if share >= 1.0:
            return np.zeros_like(statistics)
        reached = statistics * math.sqrt(share)
        drift = (statistics + 1.0) / math.sqrt(share)
        last = self.at(len(self.looks) - 1, error)
        left = 1.0 - share
        chance: Floats = ndtr((reached + drift * left - last) / math.sqrt(left))
        return chance

    def _weights(self) -> Floats:
        return _weights(self.looks, self.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Means:
    """Means over queries with their standard errors, of any shape."""

    values: Floats
    errors: Floats
    """Standard errors; 0 if the values do not vary."""
    tilts: Floats
    """Skewness over six times the root of the number of clusters, as in Johnson's corrected t."""
    units: Floats
    """Independent queries, or clusters of queries, with a score."""

    def statistics(self, margin: float = 0.0) -> Floats:
        """Return corrected t statistics of `value + margin`; 0 where they are not defined.

        A long tail on the side of zero lowers a statistic, by half at most; one on the other side
        does not raise it.
        """
        known = (self.units >= 2.0) & (self.errors > 0.0)
        ratios = np.zeros_like(self.values)
        np.divide(self.values + margin, self.errors, out=ratios, where=known)
        size = np.abs(ratios)
        moved = size + np.sign(ratios) * self.tilts * (2.0 * size**2 + 1.0)
        found: Floats = np.sign(ratios) * np.clip(moved, size / 2.0, size)
        return found

    def sign_statistics(self) -> Floats:
        """Return normal statistics of the sign-flip test where values do not vary; 0 elsewhere.

        Of the `2**n` ways to flip `n` equal values other than zero, only one has so large a mean.
        """
        from scipy.special import ndtri

        same = (self.errors == 0.0) & (np.abs(self.values) >= LEAST_ERROR)
        tails = np.maximum(0.5**self.units, 1e-290)
        found: Floats = np.where(same, -np.sign(self.values) * ndtri(tails), 0.0)
        return found

    def beyond(self, statistics: Floats, bound: float, least: int) -> Bools:
        """Return which t statistics reach a normal bound, on `least` clusters or more."""
        sizes, places = np.unique(self.units, return_inverse=True)
        bounds = np.array([t_bound(bound, max(1, int(size) - 1)) for size in sizes.tolist()])
        found: Bools = statistics >= bounds[places].reshape(statistics.shape)
        return found & (self.units >= least)

    def interval(self, place: int | tuple[int, int], bound: float) -> tuple[float, float]:
        """Return the interval of values whose statistics stay within plus or minus the bound.

        NaN if the values do not vary.
        """
        value, error = float(self.values[place]), float(self.errors[place]) or math.nan
        quantile = t_bound(bound, int(self.units[place]) - 1)
        tilt = float(self.tilts[place])
        return value - error * _untilted(quantile, tilt), value + error * _untilted(quantile, -tilt)

    def put(self, other: Means, places: Places | tuple[Places, ...]) -> None:
        """Replace some of the means by others."""
        for ours, theirs in zip(self._arrays(), other._arrays(), strict=True):
            ours[places] = theirs

    def _arrays(self) -> tuple[Floats, Floats, Floats, Floats]:
        return self.values, self.errors, self.tilts, self.units


def no_means(*shape: int) -> Means:
    """Return means of nothing, to be replaced."""
    return Means(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape))


def column_means(scores: Floats, clusters: Ints) -> Means:
    """Return the mean of every column over its rows with a score.

    `clusters` numbers the cluster of each row; rows of one cluster are adjacent.
    """
    present = ~np.isnan(scores)
    starts = _starts(clusters)
    sums = _summed(np.where(present, scores, 0.0), starts)
    sizes = _summed(present.astype(np.float64), starts)
    totals, units = np.maximum(sizes.sum(axis=0), 1.0), (sizes > 0).sum(axis=0).astype(np.float64)
    means = sums.sum(axis=0) / totals
    rest = sums - sizes * means
    squares = (rest**2).sum(axis=0)
    return _means(means, squares, (rest * rest * rest).sum(axis=0), units, totals)


def paired_means(scores: Floats, clusters: Ints) -> Means:
    """Return the mean difference of every two columns, the row's minus the column's."""
    if np.isnan(scores).any():
        columns = [
            column_means(scores[:, [column]] - scores, clusters)
            for column in range(scores.shape[1])
        ]
        found = no_means(scores.shape[1], scores.shape[1])
        for column, own in enumerate(columns):
            found.put(own, (np.array([column]),))
        return found
    starts = _starts(clusters)
    sums = _summed(scores - scores.mean(axis=1, keepdims=True), starts)
    sizes = np.diff(np.r_[starts, len(scores)]).astype(np.float64)
    means = sums.sum(axis=0) / len(scores)
    rest = sums - sizes[:, None] * means
    # Sums of (x - y)^2 and (x - y)^3 over clusters, for all pairs at once.
    products, skewed = rest.T @ rest, (rest**2).T @ rest
    squares = np.diag(products)[:, None] + np.diag(products) - 2.0 * products
    cubes = np.diag(skewed)[:, None] - np.diag(skewed) - 3.0 * (skewed - skewed.T)
    units = np.full_like(products, float(len(starts)))
    differences = means[:, None] - means
    totals = np.full_like(products, float(len(scores)))
    return _means(differences, np.maximum(squares, 0.0), cubes, units, totals)


def _means(values: Floats, squares: Floats, cubes: Floats, units: Floats, totals: Floats) -> Means:
    """Return means from the sums of squared and cubed residuals of clusters."""
    errors = np.sqrt(squares * units / np.maximum(units - 1.0, 1.0)) / totals
    errors = np.where(errors >= LEAST_ERROR, errors, 0.0)
    tilts = np.zeros_like(squares)
    np.divide(cubes, 6.0 * squares**1.5, out=tilts, where=squares > 1e-60)
    return Means(values, errors, tilts, units)


def _starts(clusters: Ints) -> Places:
    starts: Places = np.flatnonzero(np.r_[True, np.diff(clusters) != 0])
    return starts


def _summed(values: Floats, starts: Places) -> Floats:
    if len(starts) == len(values):
        return values
    sums: Floats = np.add.reduceat(values, starts, axis=0)
    return sums


def _untilted(quantile: float, tilt: float) -> float:
    """Return the t statistic that a tilt lowers to the quantile; twice the quantile at most."""
    if tilt >= 0.0:
        return quantile
    root = 1.0 - 8.0 * tilt * (tilt - quantile)
    if root < 0.0:
        return 2.0 * quantile
    return min(2.0 * quantile, max(quantile, (math.sqrt(root) - 1.0) / (4.0 * tilt)))


def normal_statistics(statistics: Floats, freedom: Floats | Ints | int) -> Floats:
    """Return the normal quantiles with the tail probabilities of t statistics."""
    from scipy.special import ndtri, stdtr

    tails = stdtr(freedom, -np.abs(statistics))
    found: Floats = np.sign(statistics) * -ndtri(np.maximum(tails, 1e-290))
    return found


def t_bound(bound: float, freedom: int) -> float:
    """Return the t quantile with the tail probability of a normal bound."""
    from scipy.special import stdtrit

    return float(-stdtrit(freedom, normal_tail(bound)))


def normal_tail(bound: float) -> float:
    """Return the probability that a normal statistic exceeds a bound."""
    from scipy.special import ndtr

    return float(ndtr(-bound))


def _normal_quantile(error: float) -> float:
    from scipy.special import ndtri

    return float(-ndtri(error))


def _weights(looks: tuple[int, ...], shape: float) -> Floats:
    weights: Floats = (np.array(looks) / looks[-1]) ** (shape - 0.5)
    return weights


@lru_cache(maxsize=64)
def _log_crossing(looks: tuple[int, ...], shape: float) -> Floats:
    """Return the log probability, per value of `_BOUNDS`, that the bound is crossed at any look.

    The density of the statistic that has not crossed yet is carried from look to look, on a grid of
    Gauss-Legendre nodes for each bound.
    """
    from scipy.special import ndtr

    shares = np.array(looks) / looks[-1]
    ends = _BOUNDS[:, None] * (_weights(looks, shape) * np.sqrt(shares))
    nodes, sizes = np.polynomial.legendre.leggauss(_NODES)
    crossed = ndtr(-ends[:, 0] / math.sqrt(shares[0]))
    places, density = np.zeros((len(_BOUNDS), 1)), np.ones((len(_BOUNDS), 1))
    for look in range(1, len(looks)):
        start = -9.0 * math.sqrt(shares[look - 1])
        half = (ends[:, look - 1, None] - start) / 2.0
        fresh = start + half * (nodes + 1.0)
        step = shares[look - 1] - (shares[look - 2] if look > 1 else 0.0)
        moved = (fresh[:, :, None] - places[:, None, :]) / math.sqrt(step)
        kernel = np.exp(-0.5 * moved**2) / math.sqrt(2.0 * math.pi * step)
        density = np.einsum("bij,bj->bi", kernel, density) * half * sizes
        places = fresh
        gap = math.sqrt(shares[look] - shares[look - 1])
        beyond = ndtr((places - ends[:, look, None]) / gap)
        crossed = crossed + (density * beyond).sum(axis=1)
    logs: Floats = np.log(np.minimum(crossed, 1.0))
    logs.setflags(write=False)
    return logs
