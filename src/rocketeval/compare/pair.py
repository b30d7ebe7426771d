"""Paired comparison of two candidates: verdict, interval, p-value and statistical power.

Both are scored on the same queries, so differences are taken per query and the difficulty of the
query cancels out. The interval resamples queries, as in the ranking; the p-value flips signs.

**The rule**: `better` or `worse` needs both an interval without zero and a p-value of at most
`1 - level`. With a smallest effect that matters, an interval within plus or minus that effect is
`equal enough`, even if it excludes zero. Everything else is `can't tell`, including any comparison
on fewer than six queries (at 95%).

**Without spread**: resamples of equal differences do not vary, which proves nothing about other
queries. A difference of zero on all queries has an exact interval if the ends of the scale are
known. Any other constant difference has no interval, and the p-value alone decides.

**Hardly any spread**: if half of the differences are zero, or at most a tenth of the effect that
matters, resamples say nothing about rare large ones. `equal enough` then needs room for them, too:
the whole scale, times the largest share of queries that may differ by so much although none of
these does.

Queries of one cluster, such as the turns of one conversation, are resampled and flipped together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from rocketeval.arrays import Floats, Ints
from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.grid import compare as compare_scores
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import (
    hardly_varies,
    interval_without_spread,
    known_interval,
    least_queries,
    ratio_draws,
)
from rocketeval.stats.permutation import FARTHEST, detectable_effect, queries_needed, sign_flip_p
from rocketeval.stats.prediction_powered import column_of
from rocketeval.store.codec import OPTIONAL

DIGITS = 6
"""Differences are rounded to this many digits, so that equal differences compare equal."""


class ComparisonVerdict(StrEnum):
    """Verdict on the first candidate against the second."""

    BETTER = "better"
    WORSE = "worse"
    EQUAL = "equal enough"
    """Any difference is smaller than the one that matters."""
    UNKNOWN = "can't tell"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two candidates of one run, query by query."""

    first: str
    second: str
    verdict: ComparisonVerdict
    """Verdict on the first candidate."""
    effect: Interval
    """Mean of first minus second over queries with both scores."""
    p_value: float
    """Two-sided p-value of the sign-flip test."""
    wins: int
    """Queries where the first wins by the tie margin or more."""
    ties: int
    losses: int
    queries: int
    """Queries with both scores."""
    missing: int
    """Queries where one or both have no score."""
    clusters: int
    """Independent queries, or clusters of queries that depend on each other."""
    queries_needed: int | None
    """Estimated total number of queries to detect the observed difference with 80% power. None if
    the difference is too close to zero."""
    detectable: float
    """Smallest difference that this many queries detect with 80% power, estimated. NaN with too few
    queries, or if the difference is the same on all of them."""
    min_effect: float | None
    """The smallest difference that matters, if given."""
    tie_margin: float
    level: float
    bootstrap: int
    seed: int
    tied_in_ranking: bool | None = None
    """Whether the ranking, which corrects for all its pairs, shows the two as tied; None if it does
    not say."""
    doubt: str = ""
    """Why the judge's scores prove nothing about quality, if so."""
    contradicts_ranking: bool = field(default=False, metadata=OPTIONAL)
    """Whether the ranking, which counts wins, places the better one below the other, and the two
    are not tied in it."""
    unseen: float = field(default=0.0, metadata=OPTIONAL)
    """How far rare large differences on other queries may move the interval; 0 unless most
    differences are nearly zero."""

    @property
    def may_be_worse(self) -> bool:
        """Whether the first may be worse by more than the smallest difference that matters."""
        if math.isnan(self.effect.low):
            # Without an interval, only a significantly higher mean score counts.
            return not (self.effect.value > 0.0 and self.p_value <= 1.0 - self.level)
        better = self.verdict is ComparisonVerdict.BETTER
        low = self.effect.low - (0.0 if better else self.unseen)
        return low < -(self.min_effect or 0.0)


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
    scale: tuple[float, float] | None = None,
) -> Comparison:
    """Test whether `first` is better than `second` on queries like the grid's.

    With the `scale` of the scores, the interval is exact if all differences are zero.
    """
    ours, theirs = _two_columns(grid, first, second)
    both = ~(np.isnan(ours) | np.isnan(theirs))
    # Round so that equal differences do not differ in the last bit.
    differences = (ours - theirs)[both].round(DIGITS)
    queries = len(differences)
    if queries == 0:
        raise ConfigError(
            f"{first!r} and {second!r} have no query with scores for both.",
            hint="Grade the same queries for both, then score again.",
        )
    outcomes = compare_scores(ours[both], theirs[both], tie_margin)
    places: Ints = np.unique(grid.places()[both], return_inverse=True)[1]
    clusters = int(places.max()) + 1
    effect = _effect(differences, places, bootstrap, seed, level)
    ends = difference_ends(grid.scores, scale)
    sums: Floats = np.bincount(places, differences).astype(np.float64)
    unseen = 0.0
    if ends is not None and is_zero_without_interval(effect, clusters, level):
        effect = interval_without_spread(0.0, clusters, level, ends)
    elif ends is not None and hardly_varies(sums / np.bincount(places), min_effect or 0.0):
        unseen = interval_without_spread(0.0, clusters, level, ends).high
    p_value = sign_flip_p(sums.round(DIGITS), seed)
    spread = _spread(differences, places)
    return Comparison(
        first=first,
        second=second,
        verdict=find_verdict(effect, p_value, min_effect, level, unseen),
        effect=effect,
        p_value=p_value,
        wins=int((outcomes > 0).sum()),
        ties=int((outcomes == 0).sum()),
        losses=int((outcomes < 0).sum()),
        queries=queries,
        missing=len(grid.query_ids) - queries,
        clusters=clusters,
        queries_needed=_needed(effect.value, spread, queries, clusters, level),
        detectable=detectable_effect(spread or math.nan, clusters, level),
        min_effect=min_effect,
        tie_margin=tie_margin,
        level=level,
        bootstrap=bootstrap,
        seed=seed,
        unseen=unseen,
    )


def _two_columns(grid: ScoreGrid, first: str, second: str) -> tuple[Floats, Floats]:
    if first == second:
        raise ConfigError(
            f"Cannot compare {first!r} with itself.", hint="Name two different candidates."
        )
    return grid.scores[:, column_of(grid, first)], grid.scores[:, column_of(grid, second)]


def _effect(differences: Floats, places: Ints, times: int, seed: int, level: float) -> Interval:
    """Return the mean difference; bounds are NaN without spread."""
    column = differences[:, None]
    draws = ratio_draws(column, np.ones_like(column), times=times, seed=seed, queries=places)
    clusters = int(places.max()) + 1
    return known_interval(float(column.mean()), draws[:, 0], queries=clusters, level=level)


def difference_ends(
    scores: Floats, scale: tuple[float, float] | None
) -> tuple[float, float] | None:
    """Return the ends of a difference of two scores; None without a scale.

    Scores that lie outside the scale, as points may, widen it.
    """
    known = scores[~np.isnan(scores)]
    if scale is None or not known.size:
        return None
    width = max(scale[1], float(known.max())) - min(scale[0], float(known.min()))
    return -width, width


def is_zero_without_interval(effect: Interval, clusters: int, level: float) -> bool:
    """Return whether only the missing spread of a zero difference leaves it without bounds."""
    enough = clusters >= least_queries(level)
    return enough and math.isnan(effect.low) and abs(effect.value) < 10.0**-DIGITS


def _spread(differences: Floats, places: Ints) -> float:
    """Return the standard deviation that clusters of average size would have if independent.

    Divided by the root of the number of clusters, it is the standard error of the mean difference.
    Zero if it is below the digits of the differences.
    """
    clusters = int(places.max()) + 1
    if clusters < 2:
        return math.nan
    centered = np.bincount(places, differences - differences.mean())
    average = len(differences) / clusters
    spread = math.sqrt(float(centered @ centered) / (clusters - 1)) / average
    return spread if spread >= 10.0**-DIGITS else 0.0


def find_verdict(
    effect: Interval, p_value: float, min_effect: float | None, level: float, unseen: float = 0.0
) -> ComparisonVerdict:
    """Return the verdict for an effect and its p-value, by the module's rule.

    `unseen` is how far rare differences on other queries may move each end of the interval.
    """
    low, high = effect.low - unseen, effect.high + unseen
    if min_effect is not None and -min_effect <= low and high <= min_effect:
        return ComparisonVerdict.EQUAL
    if p_value > 1.0 - level:
        return ComparisonVerdict.UNKNOWN
    # With such a p-value the queries are enough, so that missing bounds mean no spread.
    if math.isnan(effect.low) and abs(effect.value) <= (min_effect or 0.0):
        return ComparisonVerdict.UNKNOWN
    low, high = (effect.value if math.isnan(end) else end for end in (effect.low, effect.high))
    if low > 0.0:
        return ComparisonVerdict.BETTER
    return ComparisonVerdict.WORSE if high < 0.0 else ComparisonVerdict.UNKNOWN


def _needed(effect: float, spread: float, queries: int, clusters: int, level: float) -> int | None:
    if not spread > 0.0 or abs(effect) < 10.0**-DIGITS:
        return None
    needed = queries_needed(effect, spread, level)
    if needed is None or needed > FARTHEST * clusters:
        return None
    return math.ceil(needed * queries / clusters)
