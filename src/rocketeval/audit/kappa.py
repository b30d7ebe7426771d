"""Agreement of raters beyond chance, category by category: Fleiss' and Cohen's kappa.

Every distinct rating is a category. Ratings that are all the same have no kappa: chance alone would
make them agree, and a reason stands where the figure would.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.by_query import sums_at

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Weights = Literal["linear", "quadratic"]


@dataclass(frozen=True, slots=True)
class Statistic:
    """One figure over units, or the reason why there is none."""

    value: float | None
    reason: str | None
    used: int
    """Units that enter the figure."""
    dropped: int
    """Units left out because too few ratings of them are there."""


@dataclass(frozen=True, slots=True, eq=False)
class Tally:
    """How often each unit got each category, with nothing stored for those it never got."""

    units: Places
    """Unit of each count, numbered from 0."""
    categories: Places
    """Category of each count, numbered from 0."""
    counts: Floats
    sizes: Floats
    """Ratings of each unit."""

    @property
    def agreeing(self) -> Floats:
        """Ordered pairs of equal ratings in each unit."""
        return sums_at(self.units, self.counts * (self.counts - 1.0), len(self.sizes))


def rated_twice(ratings: Floats) -> NDArray[np.bool_]:
    """Which units (columns) have ratings by two raters (rows) or more."""
    if ratings.ndim != 2:
        raise ValueError(f"ratings have {ratings.ndim} dimensions, not raters by units")
    if np.isinf(ratings).any():
        raise ValueError("a rating is infinite")
    enough: NDArray[np.bool_] = (~np.isnan(ratings)).sum(axis=0) >= 2
    return enough


def why_no_figure(ratings: Floats) -> str | None:
    """A reason not to measure agreement on units that are rated twice, or None."""
    if not ratings.size:
        return "no unit has ratings by two raters"
    low, high = np.nanmin(ratings), np.nanmax(ratings)
    if low == high:
        return f"every rating is {low:g}: chance would agree as well"
    return None


def statistic_of(ratings: Floats, measure: Callable[[Floats], float]) -> Statistic:
    """What `measure` makes of the units that are rated twice, or why there is no figure."""
    enough = rated_twice(ratings)
    kept = ratings[:, enough]
    reason = why_no_figure(kept)
    value = measure(kept) if reason is None else None
    return Statistic(value, reason, kept.shape[1], int((~enough).sum()))


def tally(ratings: Floats) -> Tally:
    """Count the ratings of each unit."""
    units = np.nonzero(~np.isnan(ratings.T))[0]
    values = ratings.T[~np.isnan(ratings.T)]
    _, categories = np.unique(values, return_inverse=True)
    width = int(categories.max(initial=0)) + 1
    cells, counts = np.unique(units * width + categories, return_counts=True)
    return Tally(
        units=(cells // width).astype(np.intp),
        categories=(cells % width).astype(np.intp),
        counts=counts.astype(np.float64),
        sizes=np.bincount(units, minlength=ratings.shape[1]).astype(np.float64),
    )


def fleiss_kappa(ratings: Floats) -> Statistic:
    """Fleiss' kappa of raters (rows) over units (columns); NaN is a missing rating.

    Where units have different numbers of ratings every unit still counts once: chance is made from
    the mean over units of the shares of the categories in each.

    >>> fleiss_kappa(np.array([[1.0, 2.0, 2.0], [1.0, 2.0, 1.0]])).value
    0.333...
    """

    def beyond_chance(kept: Floats) -> float:
        table = tally(kept)
        agreeing = float((table.agreeing / (table.sizes * (table.sizes - 1.0))).mean())
        weights = table.counts / table.sizes[table.units]
        shares = np.bincount(table.categories, weights) / kept.shape[1]
        by_chance = float(shares @ shares)
        return (agreeing - by_chance) / (1.0 - by_chance)

    return statistic_of(ratings, beyond_chance)


def cohen_kappa(one: Floats, two: Floats, weights: Weights | None = None) -> Statistic:
    """Cohen's kappa of two raters; units that one of them did not rate are dropped.

    With `weights` a disagreement counts by the distance of the two ratings, or its square. The
    distance is that of the values themselves: a level that nobody gave still lies between.

    >>> cohen_kappa(np.array([1.0, 2.0, 2.0, 1.0]), np.array([1.0, 2.0, 1.0, 1.0])).value
    0.5
    """

    def beyond_chance(kept: Floats) -> float:
        seen, expected = _apart(kept[0], kept[1], weights)
        return 1.0 - seen / expected

    return statistic_of(np.stack([one, two]), beyond_chance)


def _apart(first: Floats, second: Floats, weights: Weights | None) -> tuple[float, float]:
    """The mean distance of the two ratings of a unit, and of any rating of one and of the other."""
    if weights == "quadratic":
        spread = first.var() + second.var() + (first.mean() - second.mean()) ** 2
        return float(((first - second) ** 2).mean()), float(spread)
    values, places = np.unique(np.concatenate([first, second]), return_inverse=True)
    shares = [np.bincount(side, minlength=len(values)) / len(first) for side in np.split(places, 2)]
    if weights is None:
        return float((first != second).mean()), float(1.0 - shares[0] @ shares[1])
    if weights != "linear":
        raise ValueError(f"weights are {weights!r}, not 'linear' or 'quadratic'")
    below, under = (np.cumsum(share)[:-1] for share in shares)
    crossing = below * (1.0 - under) + under * (1.0 - below)
    return float(np.abs(first - second).mean()), float(crossing @ np.diff(values))
