"""Bootstrap intervals from resampled queries.

Queries are resampled with everything measured on them, because a benchmark is a sample of queries.
The comparisons within a query are not independent: resampling them would make intervals several
times too narrow. A given seed always draws the same queries.

If several rows belong to one query (one per judge), `queries` numbers each row's query from 0, and
the rows of a query are drawn together.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Ints, Places
from rocketeval.errors import ConfigError
from rocketeval.records import Interval
from rocketeval.stats.bradley_terry import (
    VIRTUAL_TIES,
    centered,
    fit,
    information,
    win_probabilities,
)

EXACT_CANDIDATES = 30
"""Up to this many candidates, an incomplete grid is refitted on every resample."""

NO_WIDTH = 1e-9
"""An interval at most this wide, for a figure near 1, has no width."""
LEAST_DIFFERENCE = 1e-6
"""Smaller differences of scores are rounding errors, which may all have the same sign."""

_BLOCK_CELLS = 4_000_000
_MOST_KEPT = 256_000_000
"""Maximum number of counts to keep; above, queries are drawn again for each pass."""


def resample_queries(queries: int, times: int, seed: int) -> Iterator[Floats]:
    """Yield blocks of query counts, one row per resample."""
    if times < 1:
        raise ConfigError(f"Invalid bootstrap: {times}.", hint="Use at least 1; 1000 is usual.")
    rng = np.random.default_rng(seed)
    chances = np.full(queries, 1.0 / queries)
    block = max(1, _BLOCK_CELLS // queries)
    for start in range(0, times, block):
        size = min(block, times - start)
        yield rng.multinomial(queries, chances, size=size).astype(np.float64)


def resample_rows(
    rows: int, times: int, seed: int, queries: Ints | None = None
) -> Iterator[Floats]:
    """Yield blocks of row counts; without `queries`, each row is its own query."""
    if queries is None:
        yield from resample_queries(rows, times, seed)
        return
    for counts in resample_queries(int(queries.max()) + 1, times, seed):
        yield counts[:, queries]


class Resamples:
    """Reusable blocks of `resample_queries`, drawn once and kept as small integers."""

    def __init__(self, queries: int, times: int, seed: int) -> None:
        self._drawn = (queries, times, seed)
        self._kept: list[NDArray[np.unsignedinteger]] | None = None

    def __iter__(self) -> Iterator[Floats]:
        queries, times, _ = self._drawn
        if queries * times > _MOST_KEPT:
            yield from resample_queries(*self._drawn)
            return
        if self._kept is None:
            self._kept = [_smallest(counts) for counts in resample_queries(*self._drawn)]
        for counts in self._kept:
            yield counts.astype(np.float64)


def _smallest(counts: Floats) -> NDArray[np.unsignedinteger]:
    small: NDArray[np.unsignedinteger] = counts.astype(np.min_scalar_type(int(counts.max())))
    return small


def ratio_draws(
    numerators: Floats, denominators: Floats, *, times: int, seed: int, queries: Ints | None = None
) -> Floats:
    """Return, per resample and column, the sum of numerators over the sum of denominators.

    NaN if a resample's denominators sum to zero.
    """
    return ratios(resample_rows(len(numerators), times, seed, queries), numerators, denominators)


def ratios(resamples: Iterable[Floats], numerators: Floats, denominators: Floats) -> Floats:
    """Return the ratios of `ratio_draws` for given resamples."""
    blocks = []
    for counts in resamples:
        below = counts @ denominators
        share = np.full(below.shape, np.nan)
        np.divide(counts @ numerators, below, out=share, where=below > 0)
        blocks.append(share)
    return np.concatenate(blocks)


def strength_draws(
    wins: Floats,
    present: NDArray[np.bool_],
    strengths: Floats,
    *,
    times: int,
    seed: int,
    queries: Ints | None = None,
) -> Floats:
    """Return strengths per resample: `wins` are per row, `strengths` is the fit to all rows.

    One Newton step is enough if nothing is missing or candidates are many. With few candidates and
    missing scores, a step can be too short and refitting is cheap, so every resample is refitted.
    """
    few = present.shape[1] <= EXACT_CANDIDATES
    draw = exact_draws if few and not present.all() else one_step_draws
    return draw(wins, present, strengths, resample_rows(len(wins), times, seed, queries))


def one_step_draws(
    wins: Floats, present: NDArray[np.bool_], strengths: Floats, resamples: Iterable[Floats]
) -> Floats:
    """Return strengths per resample by one Newton step from the full fit.

    The gradient is the resample's own. The curvature is the full fit's, scaled per candidate to the
    resample, so that one matrix serves all resamples.
    """
    here = present.astype(np.float64)
    chances = win_probabilities(strengths)
    surplus = wins - here * (here @ chances.T)
    known = here * (here @ (chances * (1.0 - chances)))
    curvature = information(strengths, _meetings(here, np.ones(len(here))))
    virtual = VIRTUAL_TIES / 4.0
    blocks = []
    for counts in resamples:
        scale = np.sqrt((counts @ known + virtual) / (known.sum(axis=0) + virtual))
        slope = (counts - 1.0) @ surplus
        blocks.append(np.linalg.solve(curvature, (slope / scale).T).T / scale)
    return centered(strengths + np.concatenate(blocks))


def exact_draws(
    wins: Floats, present: NDArray[np.bool_], strengths: Floats, resamples: Iterable[Floats]
) -> Floats:
    """Return strengths refitted per resample, starting from the full fit."""
    here = present.astype(np.float64)
    draws = (draw for counts in resamples for draw in counts)
    return np.array([fit(draw @ wins, _meetings(here, draw), start=strengths) for draw in draws])


def interval(value: float, draws: Floats, *, queries: int, level: float) -> Interval:
    """Return the figure with its interval; NaN bounds with too few queries.

    NaN draws are left out. If the draws do not vary, the interval has no width: use
    `known_interval`, or `mean_interval` for a mean whose ends are known.
    """
    usable = draws[~np.isnan(draws)]
    if queries < least_queries(level) or usable.size == 0:
        return Interval(value, math.nan, math.nan)
    tail = tail_probability(queries, level)
    low, high = np.quantile(usable, [tail, 1.0 - tail])
    return Interval(value, min(float(low), value), max(float(high), value))


def known_interval(value: float, draws: Floats, *, queries: int, level: float) -> Interval:
    """Return `interval`, with NaN bounds if the draws do not vary."""
    return without_zero_width(interval(value, draws, queries=queries, level=level))


def mean_interval(
    value: float, draws: Floats, *, queries: int, level: float, ends: tuple[float, float]
) -> Interval:
    """Return `interval` of a mean of values between `ends`; exact if the draws do not vary."""
    found = interval(value, draws, queries=queries, level=level)
    return _exact_without_width(found, queries, level, ends)


def _exact_without_width(
    found: Interval, queries: int, level: float, ends: tuple[float, float]
) -> Interval:
    if math.isnan(found.low) or not math.isnan(without_zero_width(found).low):
        return found
    return interval_without_spread(found.value, queries, level, ends)


def without_zero_width(found: Interval) -> Interval:
    """Return the figure with NaN bounds if its interval has no width.

    Resamples that do not vary show that these queries agree, not that all others would.

    >>> without_zero_width(Interval(1.0, 1.0, 1.0))
    Interval(value=1.0, low=nan, high=nan)
    """
    if found.high - found.low > NO_WIDTH * max(1.0, abs(found.value)):
        return found
    return Interval(found.value, math.nan, math.nan)


def intervals(values: Floats, draws: Floats, queries: Ints, level: float) -> list[Interval]:
    """Return `known_interval` of each column of `draws`; `queries` counts those of its figure.

    Columns with the same number of queries are sorted together, which is several times faster.
    """
    found: list[Interval | None] = [None] * len(values)
    whole = ~np.isnan(draws).any(axis=0)
    for count in np.unique(queries).tolist():
        columns = np.flatnonzero(whole & (queries == count))
        if count < least_queries(level) or not len(columns):
            continue
        tail = tail_probability(count, level)
        # One row per figure, so that the draws of a figure are next to each other.
        rows = np.array(draws.T[columns], order="C")
        ends = np.quantile(rows, [tail, 1.0 - tail], axis=1, overwrite_input=True)
        own = zip(columns.tolist(), values[columns].tolist(), *ends.tolist(), strict=True)
        for column, value, low, high in own:
            found[column] = without_zero_width(Interval(value, min(low, value), max(high, value)))
    counts = queries.tolist()
    return [
        known_interval(float(values[column]), draws[:, column], queries=counts[column], level=level)
        if one is None
        else one
        for column, one in enumerate(found)
    ]


def least_queries(level: float) -> int:
    """Return the minimum number of queries for an interval at `level`.

    One of two equal candidates wins all of `n` queries with probability `2 * 0.5**n`; then every
    resample agrees, so with fewer queries an interval would be too narrow.

    >>> least_queries(0.95)
    6
    """
    _refuse_odd_level(level)
    return math.ceil(math.log2(2.0 / (1.0 - level)))


def _refuse_odd_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ConfigError(f"Invalid confidence level: {level}.", hint="Use a value such as 0.95.")


def tail_probability(queries: int, level: float) -> float:
    """Return the share of draws to cut on each side for coverage at `level`.

    Slightly less than `(1 - level) / 2`: plain percentiles are too narrow for few queries by the
    factor between Student's t and the normal (Hesterberg's expanded percentiles).
    """
    _refuse_odd_level(level)
    from scipy.special import ndtr, stdtrit

    quantile = stdtrit(queries - 1, (1.0 - level) / 2.0)
    return float(ndtr(math.sqrt(queries / (queries - 1)) * quantile))


def interval_without_spread(
    value: float, queries: int, level: float, ends: tuple[float, float] = (0.0, 1.0)
) -> Interval:
    """Return the mean of values that are equal on all queries, with an exact interval.

    Resamples of such values do not vary. The share of other queries with another value is bounded
    as by Clopper and Pearson, and such a value lies anywhere between `ends`.

    >>> interval_without_spread(1.0, 6, 0.95)
    Interval(value=1.0, low=0.540..., high=1.0)
    >>> interval_without_spread(1.0, 6, 0.95, (-1.0, 1.0))
    Interval(value=1.0, low=0.081..., high=1.0)
    """
    others = 1.0 - ((1.0 - level) / 2.0) ** (1.0 / queries)
    low, high = (value + others * (end - value) for end in ends)
    return Interval(value, min(low, value), max(high, value))


NEARLY = 0.1
"""A difference of at most this share of the effect that matters is nearly zero."""


def hardly_varies(differences: Floats, effect: float) -> bool:
    """Return whether half of the differences are zero, or small next to the effect that matters.

    Resamples of such differences say nothing about rare large ones.

    >>> hardly_varies(np.array([0.0, 0.0, 0.0, -5.0]), 0.0)
    True
    >>> hardly_varies(np.array([0.3, -0.2, 0.1]), 0.2)
    False
    """
    return float(np.median(np.abs(differences))) <= max(LEAST_DIFFERENCE, NEARLY * effect)


def wilson(share: float, reach: float) -> Interval:
    """Return a share with Wilson's interval; `reach` is the squared quantile over the cases.

    >>> wilson(0.5, 1.96**2 / 24)
    Interval(value=0.5, low=0.314..., high=0.685...)
    """
    middle = (share + reach / 2.0) / (1.0 + reach)
    half = math.sqrt(reach * (share * (1.0 - share) + reach / 4.0)) / (1.0 + reach)
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def _meetings(here: Floats, weights: Floats) -> Floats:
    counts: Floats = here.T @ (weights[:, None] * here)
    np.fill_diagonal(counts, 0.0)
    return counts


Groups = Sequence[str] | Ints
"""Query of each element, by name or number."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """Settings of bootstrap intervals: number of resamples, seed and level."""

    times: int
    seed: int
    level: float

    def mean(
        self, values: Floats, places: Places, ends: tuple[float, float] | None = None
    ) -> Interval | None:
        """Return the mean of the values, whose queries are `places`; None without values.

        If the values do not vary, the interval is exact with `ends`, and has no width without.
        """
        found = self.means(values, places, np.zeros(len(values), dtype=np.intp), 1)[0]
        if found is None or ends is None:
            return found
        return _exact_without_width(found, int(places.max()) + 1, self.level, ends)

    def means(
        self, values: Floats, places: Places, parts: Places, count: int
    ) -> list[Interval | None]:
        """Return the mean of each part, numbered below `count`; None for an empty part.

        If the values do not vary, the interval has no width: see `without_zero_width`.
        """
        if not len(values):
            return [None] * count
        queries = int(places.max()) + 1
        cells = places * count + parts
        sizes = np.bincount(cells, minlength=queries * count).reshape(queries, count)
        totals = sums_at(cells, values, queries * count).reshape(queries, count)
        draws = ratio_draws(totals, sizes.astype(np.float64), times=self.times, seed=self.seed)
        met, size = (sizes > 0).sum(axis=0).tolist(), sizes.sum(axis=0).tolist()
        return [
            interval(
                float(totals[:, part].sum()) / size[part],
                draws[:, part],
                queries=met[part],
                level=self.level,
            )
            if size[part]
            else None
            for part in range(count)
        ]

    def share(self, hits: Floats, places: Places) -> Interval | None:
        """Return the mean of values in 0..1."""
        return self.shares(hits, places, np.zeros(len(hits), dtype=np.intp), 1)[0]

    def shares(
        self, hits: Floats, places: Places, parts: Places, count: int
    ) -> list[Interval | None]:
        """Return the mean of each part, for values in 0..1.

        If all values are 0 or all are 1, resamples do not vary; then the interval is the
        Clopper-Pearson interval for as many independent values as there are queries.
        """
        found = self.means(hits, places, parts, count)
        for part, share in enumerate(found):
            if share is not None and share.value in (0.0, 1.0) and share.low == share.high:
                queries = len(np.unique(places[parts == part]))
                found[part] = interval_without_spread(share.value, queries, self.level)
        return found

    def sure(self, value: float, draws: Floats, queries: int) -> Interval:
        """Return the figure with its interval; without bounds if its draws do not vary."""
        return known_interval(value, draws, queries=queries, level=self.level)


def sums_at(places: Places, values: Floats, count: int) -> Floats:
    """Return the sum of the values at each place below `count`."""
    return np.bincount(places, values, count).astype(np.float64)


def sum_draws(per_query: Floats, times: int, seed: int) -> Floats:
    """Return the sums over queries, per resample."""
    drawn = [counts @ per_query for counts in resample_queries(len(per_query), times, seed)]
    return np.concatenate(drawn)


def query_places(groups: Groups, things: int) -> Places:
    """Return the query number of each element, from 0.

    >>> query_places(["b", "a", "b"], 3).tolist()
    [1, 0, 1]
    """
    if len(groups) != things:
        raise ValueError(f"{len(groups)} queries for {things} elements")
    places: Places = np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.intp)
    return places


def renumbered(places: Places) -> Places:
    """Renumber queries without gaps."""
    fresh: Places = np.unique(places, return_inverse=True)[1].astype(np.intp)
    return fresh
