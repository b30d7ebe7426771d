"""Is one candidate better than another: the verdict, how sure it is, and what it would take.

Both are scored on the same queries, so the difference is taken query by query: how hard a query is
falls out. The interval comes from resampled queries, as in the ranking; the p-value from flipped
signs.

**The rule**: `better` or `worse` needs both, an interval without zero and a p-value of at most
`1 - level`. With a smallest effect that matters, an interval wholly within plus or minus that
effect is `equal enough`, also when it excludes zero. Everything else is `can't tell`, and so is
everything that rests on fewer than six queries (at 95 %).

Queries of one cluster, such as the turns of one conversation, are resampled and flipped together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from rocketeval.arrays import Floats, Ints
from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.grid import compare as compare_scores
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import interval, ratio_draws
from rocketeval.stats.permutation import detectable_effect, queries_needed, sign_flip_p
from rocketeval.stats.prediction_powered import column_of

FARTHEST = 100
"""Where it would take more than so many times the queries there are, no number is given."""

DIGITS = 6
"""Differences are rounded to so many: equal ones must be equal whatever they are made from."""


class ComparisonVerdict(StrEnum):
    """What the scores say of the first candidate against the second."""

    BETTER = "better"
    WORSE = "worse"
    EQUAL = "equal enough"
    """No difference that matters, if there is any."""
    UNKNOWN = "can't tell"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two candidates of one run, query by query."""

    first: str
    second: str
    verdict: ComparisonVerdict
    """Of the first against the second."""
    effect: Interval
    """Mean of first minus second over the queries that both have a score on."""
    p_value: float
    """Two-sided chance of a mean difference as large if neither were better."""
    wins: int
    """Queries that the first wins by the tie margin or more."""
    ties: int
    losses: int
    queries: int
    """Queries with both scores."""
    missing: int
    """Queries on which one of the two, or both, has no score."""
    clusters: int
    """Independent queries, or clusters of queries that depend on each other."""
    queries_needed: int | None
    """Queries in all that would tell a difference as large as the one seen, with 80 % power: an
    estimate. None when the difference is so close to zero that no number makes sense."""
    detectable: float
    """The smallest difference that this many queries tell, with 80 % power: an estimate."""
    min_effect: float | None
    """The smallest difference that matters, where one was given."""
    tie_margin: float
    level: float
    bootstrap: int
    seed: int


def compare(
    grid: ScoreGrid,
    first: str,
    second: str,
    *,
    min_effect: float | None = None,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Comparison:
    """Whether `first` is better than `second` on queries like the grid's."""
    ours, theirs = _two_columns(grid, first, second)
    both = ~(np.isnan(ours) | np.isnan(theirs))
    # Equal differences in another order, or from 0.3 - 0.1, must not differ in the last bit.
    differences = (ours - theirs)[both].round(DIGITS)
    queries = len(differences)
    if queries == 0:
        raise ConfigError(
            f"{first!r} and {second!r} have no query on which both have a score.",
            hint="Grade the same queries for both, then score again.",
        )
    outcomes = compare_scores(ours[both], theirs[both], tie_margin)
    places: Ints = np.unique(grid.places()[both], return_inverse=True)[1]
    clusters = int(places.max()) + 1
    effect = _effect(differences, places, bootstrap, seed, level)
    sums: Floats = np.bincount(places, differences).astype(np.float64)
    p_value = sign_flip_p(sums.round(DIGITS), seed)
    spread = _spread(differences, places)
    return Comparison(
        first=first,
        second=second,
        verdict=find_verdict(effect, p_value, min_effect, level),
        effect=effect,
        p_value=p_value,
        wins=int((outcomes > 0).sum()),
        ties=int((outcomes == 0).sum()),
        losses=int((outcomes < 0).sum()),
        queries=queries,
        missing=len(grid.query_ids) - queries,
        clusters=clusters,
        queries_needed=_needed(effect.value, spread, queries, clusters, level),
        detectable=detectable_effect(spread, clusters, level),
        min_effect=min_effect,
        tie_margin=tie_margin,
        level=level,
        bootstrap=bootstrap,
        seed=seed,
    )


def _two_columns(grid: ScoreGrid, first: str, second: str) -> tuple[Floats, Floats]:
    if first == second:
        raise ConfigError(
            f"{first!r} would be compared with itself.", hint="Name two different candidates."
        )
    return grid.scores[:, column_of(grid, first)], grid.scores[:, column_of(grid, second)]


def _effect(differences: Floats, places: Ints, times: int, seed: int, level: float) -> Interval:
    column = differences[:, None]
    ones = np.ones_like(column)
    draws = ratio_draws(column, ones, times=times, seed=seed, queries=places)[:, 0]
    clusters = int(places.max()) + 1
    return interval(float(differences.mean()), draws, queries=clusters, level=level)


def _spread(differences: Floats, places: Ints) -> float:
    """Return the standard deviation that clusters of average size would have if independent.

    Divided by the root of the number of clusters, it is the standard error of the mean difference.
    """
    clusters = int(places.max()) + 1
    if clusters < 2:
        return math.nan
    centered = np.bincount(places, differences - differences.mean())
    average = len(differences) / clusters
    return math.sqrt(float(centered @ centered) / (clusters - 1)) / average


def find_verdict(
    effect: Interval, p_value: float, min_effect: float | None, level: float
) -> ComparisonVerdict:
    """What an effect and its p-value say, by the rule above."""
    if math.isnan(effect.low):
        return ComparisonVerdict.UNKNOWN
    if min_effect is not None and -min_effect <= effect.low and effect.high <= min_effect:
        return ComparisonVerdict.EQUAL
    if p_value > 1.0 - level:
        return ComparisonVerdict.UNKNOWN
    if effect.low > 0.0:
        return ComparisonVerdict.BETTER
    return ComparisonVerdict.WORSE if effect.high < 0.0 else ComparisonVerdict.UNKNOWN


def _needed(effect: float, spread: float, queries: int, clusters: int, level: float) -> int | None:
    if math.isnan(spread) or abs(effect) < 10.0**-DIGITS:
        return None
    needed = queries_needed(effect, spread, level)
    if needed is None or needed > FARTHEST * clusters:
        return None
    return math.ceil(needed * queries / clusters)
