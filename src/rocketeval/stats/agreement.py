"""Chance-corrected agreement of raters: Fleiss' kappa, Cohen's kappa, Krippendorff's alpha.

Also the rank correlations of several judges.

Every distinct rating is a category. Identical ratings have no kappa, since chance alone would give
the same agreement; a reason is returned instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Places
from rocketeval.records import Interval, Rating
from rocketeval.stats.bootstrap import (
    Groups,
    Resampling,
    interval_without_spread,
    least_queries,
    query_places,
    renumbered,
    resample_queries,
    sums_at,
)
from rocketeval.stats.correlation import Correlation, correlate, ranks

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Weights = Literal["linear", "quadratic"]


@dataclass(frozen=True, slots=True)
class Statistic:
    """One figure over units, or the reason for its absence."""

    value: float | None
    reason: str | None
    used: int
    """Number of units in the figure."""
    dropped: int
    """Units left out because they have too few ratings."""


@dataclass(frozen=True, slots=True, eq=False)
class CategoryCounts:
    """Sparse counts of ratings per unit and category."""

    units: Places
    """Unit of each count, numbered from 0."""
    categories: Places
    """Category of each count, numbered from 0."""
    counts: Floats
    sizes: Floats
    """Number of ratings per unit."""

    @property
    def agreeing(self) -> Floats:
        """Return the number of ordered pairs of equal ratings per unit."""
        return sums_at(self.units, self.counts * (self.counts - 1.0), len(self.sizes))


def rated_twice(ratings: Floats) -> NDArray[np.bool_]:
    """Return which units (columns) have ratings by at least two raters (rows)."""
    if ratings.ndim != 2:
        raise ValueError(f"ratings have {ratings.ndim} dimensions, not raters by units")
    if np.isinf(ratings).any():
        raise ValueError("a rating is infinite")
    enough: NDArray[np.bool_] = (~np.isnan(ratings)).sum(axis=0) >= 2
    return enough


def why_no_figure(ratings: Floats) -> str | None:
    """Return a reason not to measure agreement on units that are rated twice, or None."""
    if not ratings.size:
        return "no unit has ratings by two raters"
    low, high = np.nanmin(ratings), np.nanmax(ratings)
    if low == high:
        return f"every rating is {low:g}, so chance agreement is perfect"
    return None


def statistic_of(ratings: Floats, measure: Callable[[Floats], float]) -> Statistic:
    """Apply `measure` to the units that are rated twice, or return why there is no figure."""
    enough = rated_twice(ratings)
    kept = ratings[:, enough]
    reason = why_no_figure(kept)
    value = measure(kept) if reason is None else None
    return Statistic(value, reason, kept.shape[1], int((~enough).sum()))


def count_categories(ratings: Floats) -> CategoryCounts:
    """Count the ratings of each unit."""
    units = np.nonzero(~np.isnan(ratings.T))[0]
    values = ratings.T[~np.isnan(ratings.T)]
    _, categories = np.unique(values, return_inverse=True)
    width = int(categories.max(initial=0)) + 1
    cells, counts = np.unique(units * width + categories, return_counts=True)
    return CategoryCounts(
        units=(cells // width).astype(np.intp),
        categories=(cells % width).astype(np.intp),
        counts=counts.astype(np.float64),
        sizes=np.bincount(units, minlength=ratings.shape[1]).astype(np.float64),
    )


def fleiss_kappa(ratings: Floats) -> Statistic:
    """Fleiss' kappa of raters (rows) over units (columns); NaN is a missing rating.

    Every unit counts once, even with different numbers of ratings: chance agreement uses the mean
    over units of their category shares.

    >>> fleiss_kappa(np.array([[1.0, 2.0, 2.0], [1.0, 2.0, 1.0]])).value
    0.333...
    """

    def beyond_chance(kept: Floats) -> float:
        table = count_categories(kept)
        agreeing = float((table.agreeing / (table.sizes * (table.sizes - 1.0))).mean())
        weights = table.counts / table.sizes[table.units]
        shares = np.bincount(table.categories, weights) / kept.shape[1]
        by_chance = float(shares @ shares)
        return (agreeing - by_chance) / (1.0 - by_chance)

    return statistic_of(ratings, beyond_chance)


def cohen_kappa(one: Floats, two: Floats, weights: Weights | None = None) -> Statistic:
    """Return Cohen's kappa of two raters; units with a missing rating are dropped.

    With `weights`, a disagreement counts by the distance of the two ratings, or its square. The
    distance uses the values, so unused levels in between count.

    >>> cohen_kappa(np.array([1.0, 2.0, 2.0, 1.0]), np.array([1.0, 2.0, 1.0, 1.0])).value
    0.5
    """

    def beyond_chance(kept: Floats) -> float:
        seen, expected = _apart(kept[0], kept[1], weights)
        return 1.0 - seen / expected

    return statistic_of(np.stack([one, two]), beyond_chance)


def _apart(first: Floats, second: Floats, weights: Weights | None) -> tuple[float, float]:
    """Return the mean distance of ratings within units, and the one expected by chance."""
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


Level = Literal["nominal", "ordinal", "interval"]

_BLOCK_CELLS = 4_000_000
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class Reliability:
    """Agreement figures of several raters."""

    raters: tuple[str, ...]
    level: Level
    """Scale level for alpha: categories, ordered levels, or amounts."""
    alpha: Interval | None
    """Krippendorff's alpha: 1 is perfect, 0 is chance. The interval of an ordinal alpha keeps each
    rating's rank fixed; that of a perfect alpha is exact, because resamples do not vary."""
    reason: str | None
    """The reason for a missing alpha, if any."""
    fleiss: Statistic
    """Fleiss' kappa; every distinct rating is a category at any level."""
    cohen: tuple[tuple[Statistic, ...], ...]
    """Cohen's kappa, row by column, in the order of `raters`."""
    variance: Interval | None
    """Mean over units of the variance of their ratings (n - 1)."""
    units: int
    """Units with two or more ratings."""
    dropped: int
    """Units with fewer ratings."""
    queries: int
    """Number of queries of these units."""


def reliability(
    ratings: Floats,
    groups: Groups,
    raters: Sequence[str],
    *,
    level: Level = "nominal",
    weights: Weights | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Reliability:
    """Measure the agreement of raters (rows) over units (columns); `groups` are the queries.

    NaN is a missing rating. `weights` are for Cohen's kappa.
    """
    if len(raters) != len(ratings):
        raise ValueError(f"{len(raters)} names for {len(ratings)} raters")
    enough = rated_twice(ratings)
    kept = ratings[:, enough]
    places = renumbered(query_places(groups, ratings.shape[1])[enough])
    resampling = Resampling(bootstrap, seed, confidence)
    reason = why_no_figure(kept)
    alpha = None
    if reason is None:
        parts = _parts(kept, level, places)
        draws = np.concatenate(
            [parts.alphas(c) for c in resample_queries(parts.queries, bootstrap, seed)]
        )
        alpha = resampling.sure(parts.value, draws, parts.queries)
        if not parts.within.any() and parts.queries >= least_queries(confidence):
            ends = (parts.lowest, 1.0)
            alpha = interval_without_spread(1.0, parts.queries, confidence, ends)
    return Reliability(
        raters=tuple(raters),
        level=level,
        alpha=alpha,
        reason=reason,
        fleiss=fleiss_kappa(ratings),
        cohen=_cohen_matrix(ratings, weights),
        variance=resampling.mean(_variances(kept), places),
        units=kept.shape[1],
        dropped=int((~enough).sum()),
        queries=len(np.unique(places)),
    )


def krippendorff_alpha(ratings: Floats, level: Level = "nominal") -> Statistic:
    """Krippendorff's alpha of raters (rows) over units (columns); NaN is a missing rating.

    >>> krippendorff_alpha(np.array([[1.0, 2.0, np.nan], [1.0, 2.0, 2.0]])).value
    1.0
    """

    def alpha(kept: Floats) -> float:
        return _parts(kept, level, np.zeros(kept.shape[1], dtype=np.intp)).value

    return statistic_of(ratings, alpha)


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Sums by query from which alpha follows on any resample."""

    ratings: Floats
    """Number of ratings per query."""
    within: Floats
    """Sum of distances between ratings of a unit, both ways, over its ratings minus one."""
    sums: Floats | None
    """Sum and sum of squares of the values; None for categories."""
    categories: csr_array | None
    """Ratings by category and query; None for values."""
    farthest: float
    """The largest distance of two ratings: 1 for categories."""

    @property
    def queries(self) -> int:
        return len(self.ratings)

    @property
    def value(self) -> float:
        return float(self.alphas(np.ones((1, self.queries)))[0])

    @property
    def lowest(self) -> float:
        """Return alpha if the ratings of every unit were as far apart as any are."""
        size = float(self.ratings.sum())
        between = float(self._between(np.ones((1, self.queries)), np.array([size]))[0])
        return 1.0 - self.farthest * size * (size - 1.0) / between

    def alphas(self, counts: Floats) -> Floats:
        """Return alpha per row of query counts; NaN without variation."""
        size = counts @ self.ratings
        between = self._between(counts, size)
        alphas = np.full(len(size), np.nan)
        within = (counts @ self.within) * (size - 1.0)
        np.divide(within, between, out=alphas, where=between > 0.0)
        return 1.0 - alphas

    def _between(self, counts: Floats, size: Floats) -> Floats:
        """Return the sum of distances between all ratings of each resample, both ways."""
        if self.sums is not None:
            total, squares = (counts @ self.sums).T
            spread = 2.0 * (size * squares - total**2)
            return np.where(spread > _ROUNDING * size * squares, spread, 0.0)
        assert self.categories is not None
        same = np.zeros(len(size))
        step = max(1, _BLOCK_CELLS // len(size))
        for start in range(0, self.categories.shape[0], step):
            same += ((self.categories[start : start + step] @ counts.T) ** 2).sum(axis=0)
        apart: Floats = size**2 - same
        return apart


def _parts(ratings: Floats, level: Level, places: Places) -> _Parts:
    present = ~np.isnan(ratings)
    sizes = present.sum(axis=0).astype(np.float64)
    queries = int(places.max()) + 1
    by_query = sums_at(places, sizes, queries)
    if level == "nominal":
        from scipy.sparse import csr_array

        table = count_categories(ratings)
        within = (sizes * (sizes - 1.0) - table.agreeing) / (sizes - 1.0)
        cells = (table.categories, places[table.units])
        categories = csr_array((table.counts, cells))
        return _Parts(by_query, sums_at(places, within, queries), None, categories, 1.0)
    values = ratings.copy()
    if level == "ordinal":
        values[present] = ranks(ratings[present])
    elif level != "interval":
        raise ValueError(f"the level is {level!r}, not 'nominal', 'ordinal' or 'interval'")
    values -= values[present].mean()
    values /= np.abs(values[present]).max()
    within = 2.0 * sizes * _variances(values)
    filled = np.where(present, values, 0.0)
    moments = [sums_at(places, each.sum(axis=0), queries) for each in (filled, filled**2)]
    sums = np.stack(moments, axis=1)
    farthest = float(np.ptp(values[present]) ** 2)
    return _Parts(by_query, sums_at(places, within, queries), sums, None, farthest)


def _variances(ratings: Floats) -> Floats:
    """Return the variance of each unit's ratings (at least two)."""
    if not ratings.shape[1]:
        return np.zeros(0)
    variances: Floats = np.nanvar(ratings, axis=0, ddof=1)
    return variances


def _cohen_matrix(ratings: Floats, weights: Weights | None) -> tuple[tuple[Statistic, ...], ...]:
    upper = [
        [cohen_kappa(one, two, weights) for two in ratings[first:]]
        for first, one in enumerate(ratings)
    ]
    span = range(len(ratings))
    return tuple(
        tuple(upper[min(row, column)][abs(row - column)] for column in span) for row in span
    )


POSTERIOR_DRAWS = 2_000


def best_prediction(counts: Floats, seed: int = 0) -> Floats:
    """Return, per row of vote counts, the expected share of the most frequent outcome.

    A predictor that knows what people think of a pair can at best predict the outcome that most of
    them choose. Its share among few votes is an overestimate, so it is the posterior mean under a
    symmetric Dirichlet prior (first and last column alike) that fits all rows best.

    >>> best_prediction(np.array([[9.0, 0.0, 0.0], [0.0, 0.0, 9.0], [4.0, 1.0, 4.0]])).round(1)
    array([1. , 1. , 0.6])
    """
    prior = _fitted_prior(counts)
    distinct, places = np.unique(counts, axis=0, return_inverse=True)
    rng = np.random.default_rng(seed)
    largest = [
        float(rng.dirichlet(row + prior, POSTERIOR_DRAWS).max(axis=1).mean()) for row in distinct
    ]
    found: Floats = np.array(largest)[places.reshape(-1)]
    return found


def _fitted_prior(counts: Floats) -> Floats:
    """Return the Dirichlet prior, symmetric in the first and last column, of highest likelihood."""
    from scipy.optimize import minimize
    from scipy.special import gammaln

    total = counts.sum(axis=1)

    def prior_of(logs: Floats) -> Floats:
        shares = np.exp(np.clip(logs, -7.0, 7.0))
        return np.array([shares[0], *shares[1:], shares[0]])

    def loss(logs: Floats) -> float:
        prior = prior_of(logs)
        rows = gammaln(counts + prior).sum(axis=1) - gammaln(total + prior.sum())
        return -float((rows - gammaln(prior).sum() + gammaln(prior.sum())).mean())

    start = np.zeros(counts.shape[1] - 1)
    return prior_of(np.asarray(minimize(loss, start, method="Nelder-Mead").x))


@dataclass(frozen=True, slots=True)
class RankMatrix:
    """Rank correlations of each pair of judges, on the candidates that all judges have.

    A cell has a reason if there are too few candidates, or if a judge ranks all equally.
    """

    judges: tuple[str, ...]
    candidates: tuple[str, ...]
    """Candidates with a figure by every judge, sorted."""
    left_out: tuple[str, ...]
    """Candidates without a figure by some judge, sorted."""
    cells: tuple[tuple[Correlation, ...], ...]
    """Spearman and Kendall, row by column, in the order of `judges`."""


def rank_matrix(
    figures: Mapping[str, Mapping[str, float]], *, seed: int = 0, level: float = 0.95
) -> RankMatrix:
    """Correlate the judges' figures of candidates, such as ratings or mean scores.

    >>> matrix = rank_matrix({"one": {"a": 1, "b": 2, "c": 3}, "two": {"a": 9, "b": 8, "c": 7}})
    >>> matrix.cells[0][1].spearman.value
    -1.0
    """
    finite = [
        {candidate for candidate, value in given.items() if math.isfinite(value)}
        for given in figures.values()
    ]
    common = sorted(set.intersection(*finite)) if finite else []
    columns = [{name: float(given[name]) for name in common} for given in figures.values()]
    upper = [
        [correlate(one, _ratings(two), seed=seed, level=level) for two in columns[first:]]
        for first, one in enumerate(columns)
    ]
    span = range(len(columns))
    return RankMatrix(
        judges=tuple(figures),
        candidates=tuple(common),
        left_out=tuple(sorted(set().union(*figures.values()) - set(common))),
        cells=tuple(
            tuple(upper[min(row, column)][abs(row - column)] for column in span) for row in span
        ),
    )


def _ratings(figures: Mapping[str, float]) -> list[Rating]:
    return [Rating(candidate, value) for candidate, value in figures.items()]
