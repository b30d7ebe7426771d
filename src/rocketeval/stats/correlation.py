"""Pearson, Spearman and Kendall correlation: of candidates, within queries, and on resamples.

Fewer than three candidates give no coefficient, fewer than ten no interval, and each coefficient
has a p-value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Bools, Floats, Ints, Places
from rocketeval.errors import BenchmarkError
from rocketeval.records import Interval, Rating

FEWEST_FOR_COEFFICIENT = 3
FEWEST_FOR_INTERVAL = 10

_ENUMERATED = 8
_SHUFFLES = 9_999
_SHUFFLED_CELLS = _RANKED_CELLS = 1_000_000
_ROUNDING = 1e-12
"""A relative spread below this is rounding error."""


@dataclass(frozen=True, slots=True)
class Coefficient:
    """One correlation coefficient over candidates."""

    value: float
    interval: Interval | None
    """By Fisher's z (Bonett-Wright for Spearman, Fieller for Kendall); None below ten candidates
    or for a perfect correlation."""
    p_value: float
    """Two-sided p-value. Spearman: all permutations up to eight candidates, 9,999 random ones
    above. Kendall: from SciPy."""


@dataclass(frozen=True, slots=True)
class Correlation:
    """Rank correlations of two figures of the same candidates."""

    spearman: Coefficient | None
    kendall: Coefficient | None
    n: int
    """Candidates with both figures."""
    unmatched: tuple[str, ...]
    """Our candidates without a rating or a score, sorted."""
    reason: str | None
    """The reason for missing coefficients, if any."""


def correlate(
    ours: Mapping[str, float], ratings: Sequence[Rating], *, seed: int = 0, level: float = 0.95
) -> Correlation:
    """Correlate our figures of candidates with `ratings`."""
    theirs = _by_candidate(ratings)
    matched = sorted(c for c, value in ours.items() if c in theirs and math.isfinite(value))
    unmatched = tuple(sorted(set(ours) - set(matched)))
    x = np.array([ours[candidate] for candidate in matched], dtype=np.float64)
    y = np.array([theirs[candidate] for candidate in matched], dtype=np.float64)
    reason = why_no_coefficient(x, y, "candidates")
    if reason is not None:
        return Correlation(None, None, len(matched), unmatched, reason)
    spearman, kendall = _spearman(x, y, seed, level), _kendall(x, y, level)
    return Correlation(spearman, kendall, len(matched), unmatched, None)


def _by_candidate(ratings: Sequence[Rating]) -> dict[str, float]:
    found: dict[str, float] = {}
    for rating in ratings:
        if found.setdefault(rating.candidate, rating.value) != rating.value:
            raise BenchmarkError(
                f"Candidate {rating.candidate!r} has two ratings: "
                f"{found[rating.candidate]} and {rating.value}.",
                hint="Keep one rating per candidate.",
            )
    return found


def why_no_coefficient(x: Floats, y: Floats, things: str) -> str | None:
    """Return a reason not to correlate two columns, or None."""
    if len(x) < FEWEST_FOR_COEFFICIENT:
        found = f"1 {things.removesuffix('s')} has" if len(x) == 1 else f"{len(x)} {things} have"
        return f"only {found} both figures; {FEWEST_FOR_COEFFICIENT} are needed"
    if np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return f"one of the figures is equal for all {len(x)} {things}"
    return None


def _spearman(x: Floats, y: Floats, seed: int, level: float) -> Coefficient:
    ours, theirs = ranks(x), ranks(y)
    value = pearson(ours, theirs)
    reach = _quantile(level) * math.sqrt((1.0 + value**2 / 2.0) / max(len(x) - 3, 1))
    return Coefficient(value, _fisher(value, reach, len(x)), _shuffle_p(ours, theirs, seed))


def _kendall(x: Floats, y: Floats, level: float) -> Coefficient:
    from scipy.stats import kendalltau

    outcome = kendalltau(x, y)
    value = float(outcome.statistic)
    reach = _quantile(level) * math.sqrt(0.437 / max(len(x) - 4, 1))
    return Coefficient(value, _fisher(value, reach, len(x)), float(outcome.pvalue))


def pearson_interval(x: Floats, y: Floats, level: float) -> Interval:
    """Return Pearson's correlation with its interval by Fisher's z; NaN bounds with few rows."""
    value, reach = pearson(x, y), _quantile(level) / math.sqrt(max(len(x) - 3, 1))
    return _fisher(value, reach, len(x)) or Interval(value, math.nan, math.nan)


def _fisher(value: float, reach: float, n: int) -> Interval | None:
    if n < FEWEST_FOR_INTERVAL or abs(value) > 1.0 - 1e-12:
        return None
    middle = math.atanh(value)
    return Interval(value, math.tanh(middle - reach), math.tanh(middle + reach))


def _quantile(level: float) -> float:
    from scipy.special import ndtri

    return float(ndtri(0.5 + level / 2.0))


def _shuffle_p(ours: Floats, theirs: Floats, seed: int) -> float:
    """Return the two-sided p-value of the correlation of two rankings."""
    ours, theirs = ours - ours.mean(), theirs - theirs.mean()
    observed = abs(float(ours @ theirs)) - 1e-9
    if len(ours) <= _ENUMERATED:
        every_order = np.array(list(permutations(theirs)))
        return float(np.mean(np.abs(every_order @ ours) >= observed))
    rng = np.random.default_rng(seed)
    as_strong = 0
    block = max(1, _SHUFFLED_CELLS // len(ours))
    for start in range(0, _SHUFFLES, block):
        orders = np.tile(theirs, (min(block, _SHUFFLES - start), 1))
        as_strong += int((np.abs(rng.permuted(orders, axis=1) @ ours) >= observed).sum())
    return (as_strong + 1) / (_SHUFFLES + 1)


def pearson(x: Floats, y: Floats) -> float:
    """Return Pearson's correlation of two columns that both vary."""
    x, y = x - x.mean(), y - y.mean()
    return float((x @ y) / math.sqrt((x @ x) * (y @ y)))


def moments(x: Floats, y: Floats, places: Places) -> Floats:
    """Return six sums per query, from which Pearson's correlation follows on any resample."""
    x, y = x - x.mean(), y - y.mean()
    summed = (np.ones_like(x), x, y, x * x, y * y, x * y)
    return np.stack([np.bincount(places, weights=each) for each in summed], axis=1)


def pearson_of(sums: Floats) -> Floats:
    """Return Pearson's correlation from six sums per row; NaN if a side is constant."""
    n, sx, sy, sxx, syy, sxy = sums.T
    x_spread, y_spread = n * sxx - sx * sx, n * syy - sy * sy
    found = np.full(len(n), np.nan)
    varies = (x_spread > _ROUNDING * n * sxx) & (y_spread > _ROUNDING * n * syy)
    scale = np.sqrt(x_spread[varies]) * np.sqrt(y_spread[varies])
    found[varies] = np.clip((n * sxy - sx * sy)[varies] / scale, -1.0, 1.0)
    return found


def ranks(values: Floats) -> Floats:
    """Return ranks from 1; equal values share their mean rank."""
    from scipy.stats import rankdata

    shared: Floats = rankdata(values)
    return shared


MOST_FOR_KENDALL_INTERVAL = 5_000
"""Above this many labeled responses, Kendall's tau has no interval."""

_BLOCK_CELLS = 4_000_000


def tau_b(x: Floats, y: Floats) -> float:
    """Return Kendall's tau-b of two columns that both vary."""
    from scipy.stats import kendalltau

    return float(kendalltau(x, y).statistic)


def kendall_adds(value: float | None, x: Floats, y: Floats, places: Places) -> Floats:
    """Return the first-order contribution of each query to tau-b; NaN if unknown."""
    responses, queries = len(places), int(places.max()) + 1
    if value is None or responses > MOST_FOR_KENDALL_INTERVAL:
        return np.full(queries, np.nan)
    same, x_apart, y_apart = (np.bincount(places, weights=part) for part in _pairs_of_each(x, y))
    x_all, y_all = float(x_apart.sum()), float(y_apart.sum())
    adds = 2.0 * same / math.sqrt(x_all * y_all) - value * (x_apart / x_all + y_apart / y_all)
    return adds.astype(np.float64)


def _pairs_of_each(x: Floats, y: Floats) -> tuple[Floats, Floats, Floats]:
    """Return, per response, concordant minus discordant pairs, and untied pairs on each side."""
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
    """Return how many elements share the value of each, including itself."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    alike: Floats = counts[place].astype(np.float64)
    return alike


_FEW_ENOUGH_FOR_PAIRS = 100


def within_queries(scores: Floats, labels: Floats, places: Places) -> Floats:
    """Return Pearson, Spearman and Kendall within each query, one row per query.

    `places` numbers each response's query from 0 and ascends. NaN if scores or labels are constant,
    as for a single response.
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
        found[varies, 1] = _pearson_within(ranks_within(x, kept), ranks_within(y, kept), kept)
        found[varies, 2] = _tau_within(x, y, kept)
    return found


def spearman_by_row(one: Floats, two: Floats, fewest: int = FEWEST_FOR_COEFFICIENT) -> Floats:
    """Return Spearman's correlation of two tables row by row, over cells known in both.

    NaN if a row has fewer than `fewest` such cells, or is constant on a side.
    """
    rows, columns = np.nonzero(~(np.isnan(one) | np.isnan(two)))
    x, y = (ranks_within(side[rows, columns], rows) for side in (one, two))
    found = _pearson_within(x, y, rows, len(one))
    found[np.bincount(rows, minlength=len(one)) < fewest] = np.nan
    return found


def _pearson_within(x: Floats, y: Floats, places: Places, queries: int = 0) -> Floats:
    counts = np.maximum(np.bincount(places, minlength=queries), 1)
    x, y = (side - (np.bincount(places, side, queries) / counts)[places] for side in (x, y))
    xy, xx, yy = (np.bincount(places, product, queries) for product in (x * y, x * x, y * y))
    scale = np.sqrt(xx * yy)
    # Differences that underflow when squared count as zero.
    found = np.divide(xy, scale, out=np.full(len(counts), np.nan), where=scale > 0.0)
    coefficients: Floats = np.clip(found, -1.0, 1.0)
    return coefficients


def ranks_within(values: Floats, places: Places) -> Floats:
    """Return ranks from 1 within each query; equal values share their mean rank; places ascend.

    >>> ranks_within(np.array([5.0, 7.0, 5.0, 1.0]), np.array([0, 0, 0, 2]))
    array([1.5, 3. , 1.5, 1. ])
    """
    order = np.lexsort((values, places))
    fresh = np.diff(values[order], prepend=np.nan) != 0.0
    fresh |= np.diff(places[order], prepend=-1) != 0
    tied = np.cumsum(fresh) - 1
    counts = np.bincount(tied)
    shared = np.empty(len(values))
    shared[order] = (np.cumsum(counts) - (counts - 1) / 2.0)[tied]
    ranked: Floats = shared - np.searchsorted(places, places)
    return ranked


def _tau_within(x: Floats, y: Floats, places: Places) -> Floats:
    """Return tau-b of each query; small queries of one size are computed together."""
    sizes = np.bincount(places)
    starts = np.cumsum(sizes) - sizes
    found = np.empty(len(sizes))
    for size in np.unique(sizes).tolist():
        alike = np.flatnonzero(sizes == size)
        block = max(1, _BLOCK_CELLS // size**2)
        if size > _FEW_ENOUGH_FOR_PAIRS:
            for query in alike.tolist():
                own = slice(starts[query], starts[query] + size)
                found[query] = tau_b(x[own], y[own])
            continue
        for first in range(0, len(alike), block):
            some = alike[first : first + block]
            own_places = starts[some, None] + np.arange(size)
            found[some] = _tau_of_rows(x[own_places], y[own_places])
    return found


def _tau_of_rows(x: Floats, y: Floats) -> Floats:
    """Return tau-b of each row of one table with the same row of the other."""
    x, y = (np.sign(side[:, :, None] - side[:, None, :]) for side in (x, y))
    same, x_apart, y_apart = (np.einsum("qij,qij->q", *pair) for pair in ((x, y), (x, x), (y, y)))
    tau: Floats = same / np.sqrt(x_apart * y_apart)
    return tau


def rho_of_counts(counts: Floats) -> Floats:
    """Return Spearman's rho of each contingency table."""
    given, found, total = counts.sum(axis=2), counts.sum(axis=1), counts.sum(axis=(1, 2))
    one, two = (
        np.cumsum(side, axis=1) - side / 2.0 - total[:, None] / 2.0 for side in (given, found)
    )
    together = np.einsum("ni,nij,nj->n", one, counts, two)
    apart = (given * one**2).sum(axis=1) * (found * two**2).sum(axis=1)
    return _quotient(together, np.sqrt(apart))


def tau_of_counts(counts: Floats) -> Floats:
    """Return Kendall's tau-b of each contingency table."""
    surplus, total = np.zeros(len(counts)), counts.sum(axis=(1, 2))
    for row, column in np.ndindex(counts.shape[1:]):
        later = counts[:, row + 1 :, column + 1 :].sum(axis=(1, 2))
        other = counts[:, row + 1 :, :column].sum(axis=(1, 2))
        surplus += counts[:, row, column] * (later - other)
    apart = [(total**2 - (counts.sum(axis=side) ** 2).sum(axis=1)) / 2.0 for side in (2, 1)]
    return _quotient(surplus, np.sqrt(apart[0] * apart[1]))


def resampled_rho(x: Floats, y: Floats, drawn: Floats, places: Places) -> Floats:
    """Return Spearman's rho of each resample, with ranks computed in the resample.

    `drawn` holds query counts, one row per resample.
    """
    found, block = [], max(1, _RANKED_CELLS // len(x))
    for start in range(0, len(drawn), block):
        times = drawn[start : start + block][:, places]
        one, two = (_drawn_ranks(side, times) for side in (x, y))
        together = (times * one * two).sum(axis=1)
        apart = (times * one**2).sum(axis=1) * (times * two**2).sum(axis=1)
        found.append(_quotient(together, np.sqrt(apart)))
    return np.concatenate(found)


def _drawn_ranks(values: Floats, drawn: Floats) -> Floats:
    """Return each row's centered rank in the resample."""
    _, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    alike = np.add.reduceat(drawn[:, order], starts, axis=1)
    middle = np.cumsum(alike, axis=1) - alike / 2.0 - drawn.sum(axis=1, keepdims=True) / 2.0
    ranked: Floats = middle[:, place]
    return ranked


def _quotient(above: Floats, below: Floats) -> Floats:
    found = np.full(len(above), np.nan)
    np.divide(above, below, out=found, where=below > 0.0)
    return found


FEWEST = 10
"""Minimum number of responses for a correlation."""
CHANCE = 0.01
"""Family-wise error rate of negative items; divided by the number of items."""
_STILL = 1e-9


def paired_correlations(x: Floats, y: Floats, fewest: int = FEWEST) -> tuple[Floats, Ints]:
    """Return Pearson of each column of `x` with that of `y`, and the number of common rows.

    NaN with fewer than `fewest` rows, or if either is constant.

    >>> x = np.array([[1.0, 1.0], [2.0, 5.0], [3.0, np.nan]])
    >>> found, count = paired_correlations(x, x, fewest=2)
    >>> found.round(6).tolist(), count.tolist()
    ([1.0, 1.0], [3, 2])
    """
    x, y, count = _centered(x, y)
    least = np.maximum(count, 1)
    xy, xx, yy = ((a * b).sum(axis=0) for a, b in ((x, y), (x, x), (y, y)))
    moving = (xx > _STILL * least) & (yy > _STILL * least) & (count >= fewest)
    size = np.sqrt(np.where(moving, xx * yy, 1.0))
    return np.where(moving, np.clip(xy / size, -1.0, 1.0), np.nan), count


def _centered(x: Floats, y: Floats) -> tuple[Floats, Floats, Ints]:
    """Return both sides minus their means on each column's common rows, and the number of these.

    0 in all other rows.
    """
    both = ~(np.isnan(x) | np.isnan(y))
    count = both.sum(axis=0).astype(np.int64)
    least = np.maximum(count, 1)
    x, y = (np.where(both, side, 0.0) for side in (x, y))
    x, y = (np.where(both, side - side.sum(axis=0) / least, 0.0) for side in (x, y))
    return x, y, count


def correlations(x: Floats, x_known: Bools, y: Floats, y_known: Bools, fewest: int) -> Floats:
    """Return Pearson's correlation of each column of `x` with each of `y`, on common rows.

    Unknown values are 0. NaN with fewer than `fewest` rows, or if either is constant.
    """
    here, there = x_known.astype(np.float64), y_known.astype(np.float64)
    count = here.T @ there
    x_sum, y_sum = x.T @ there, here.T @ y
    least = np.maximum(count, 1.0)
    both = x.T @ y - x_sum * y_sum / least
    x_square = (x**2).T @ there - x_sum**2 / least
    y_square = here.T @ (y**2) - y_sum**2 / least
    moving = (x_square > _STILL * least) & (y_square > _STILL * least) & (count >= fewest)
    size = np.sqrt(np.where(moving, x_square * y_square, 1.0))
    return np.where(moving, np.clip(both / size, -1.0, 1.0), np.nan)


def surely_negative(
    correlation: float, responses: int, items: int = 1, skewness: float = 0.0
) -> bool:
    """Return whether a correlation is significantly negative, among `items` tested.

    Uses Fisher's z with Bonferroni's correction. If a few responses decide the correlation, its
    chance distribution has a long tail: `skewness` is that of its permutations, and their Pearson
    type III distribution must be sure as well.

    >>> surely_negative(-0.3, 20), surely_negative(-0.6, 40), surely_negative(-0.6, 20, 1000)
    (False, True, False)
    >>> surely_negative(-0.45, 40), surely_negative(-0.45, 40, skewness=-1.5)
    (True, False)
    """
    if math.isnan(correlation) or responses <= 3 or correlation >= 0.0:
        return False
    chance = CHANCE / max(1, items)
    if correlation > -1.0 + 1e-12:
        sure = NormalDist().inv_cdf(1.0 - chance)
        if math.atanh(correlation) + sure / math.sqrt(responses - 3) >= 0.0:
            return False
    return _permuted_below(correlation * math.sqrt(responses - 1), skewness) < chance


def _permuted_below(statistic: float, skewness: float) -> float:
    """Return the probability of a smaller value of a Pearson type III variable.

    Of mean 0, variance 1 and a skewness of at most 0.
    """
    from scipy.special import gammaincc, ndtr

    if skewness > -1e-6:
        return float(ndtr(statistic))
    shape = 4.0 / skewness**2
    return float(gammaincc(shape, max(0.0, shape - statistic * math.sqrt(shape))))


def permutation_skewness(x: Floats, y: Floats) -> Floats:
    """Return the skewness of each column's correlation over all permutations of its common rows.

    0 if a column is constant, or with fewer than 3 rows.

    >>> rare = np.repeat([0.0, 1.0], [27, 3])[:, None]
    >>> permutation_skewness(rare, -rare).round(2).tolist()
    [-1.37]
    """
    x, y, count = _centered(x, y)
    cubes, squares = ((x**power).sum(axis=0) * (y**power).sum(axis=0) for power in (3, 2))
    usable = (squares > _STILL**2) & (count >= 3)
    n = np.where(usable, count, 3)
    skewed = n * np.sqrt(n - 1) / (n - 2) * cubes / np.where(usable, squares, 1.0) ** 1.5
    return np.where(usable, skewed, 0.0)
