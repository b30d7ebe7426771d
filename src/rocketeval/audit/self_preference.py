"""Whether a judge scores candidates of its own family higher than gold does.

Everything is measured within queries, where candidates answer the same thing; intervals resample
queries.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.by_query import Resampling, sum_draws
from rocketeval.audit.length_bias import refuse_other_shape
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

NO_OTHERS = "there must be candidates of the judge's family and others"
NO_QUERY = "no query has differing scores and gold of the family and of others"

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """How much better a judge treats its own family than gold does."""

    preference: Interval | None
    """Score minus gold, each in standard deviations within the query, of the family minus that of
    the others; None if no query tells. A judge that hardly follows gold gives all the same, so that
    a family which gold puts last looks preferred."""
    at_equal_gold: Interval | None
    """Score of the family minus that of the others where gold is the same, by regression within
    queries; None if gold alone tells the two apart. Gold that is itself unsure favours a family
    which it puts first. A preference is sure where both figures say so, as long as gold is surer
    than the judge."""
    family: tuple[str, ...]
    """Candidates taken for the judge's family, sorted."""
    queries: int
    left_out: int
    """Queries without scores and gold of both kinds, or with all scores or gold the same."""
    reason: str | None
    """Why there is no figure, if there is none."""


def self_preference(
    grid: ScoreGrid,
    gold: Floats,
    family: AbstractSet[str],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> SelfPreference:
    """Compare what the judge gives its own family beyond gold with what it gives others.

    `gold` is laid out like the scores, with NaN where there is none.
    """
    refuse_other_shape(grid, gold)
    own = np.array([candidate in family for candidate in grid.candidates], dtype=bool)
    named = tuple(sorted(family & set(grid.candidates)))
    both = ~(np.isnan(grid.scores) | np.isnan(gold))
    scored, labelled = (_standard(np.where(both, each, np.nan)) for each in (grid.scores, gold))
    surplus = scored - labelled
    gaps = _mean_by_row(surplus[:, own]) - _mean_by_row(surplus[:, ~own])
    told = ~np.isnan(gaps)
    known, resampling = gaps[told], Resampling(bootstrap, seed, level)
    reason = None
    if not named or own.all():
        reason = NO_OTHERS
    elif not len(known):
        reason = NO_QUERY
    return SelfPreference(
        preference=resampling.mean(known, np.arange(len(known))),
        at_equal_gold=_at_equal_gold(scored[told], labelled[told], own, resampling),
        family=named,
        queries=len(known),
        left_out=len(gaps) - len(known),
        reason=reason,
    )


def _at_equal_gold(
    scored: Floats, labelled: Floats, own: Bools, resampling: Resampling
) -> Interval | None:
    """What being of the family adds to the score of a response that has the same gold."""
    if not len(scored):
        return None
    here = ~np.isnan(scored)
    side = np.where(here, own.astype(np.float64), np.nan)
    side -= _mean_by_row(side)[:, None]
    x, y, z = (np.where(here, each, 0.0) for each in (scored, labelled, side))
    sums = np.stack([(a * b).sum(axis=1) for a, b in ((x, z), (x, y), (y, z), (y, y), (z, z))], 1)
    value = _slope(sums.sum(axis=0, keepdims=True))[0]
    if np.isnan(value):
        return None
    draws = _slope(sum_draws(sums, resampling.times, resampling.seed))
    return resampling.sure(float(value), draws, len(sums))


def _slope(sums: Floats) -> Floats:
    """Of a regression on gold and family, the family's part; NaN where gold tells the family."""
    xz, xy, yz, yy, zz = sums.T
    apart = zz * yy - yz * yz
    slopes = np.full(len(sums), np.nan)
    np.divide(xz * yy - xy * yz, apart, out=slopes, where=apart > _ROUNDING * zz * yy)
    return slopes


def _standard(values: Floats) -> Floats:
    """Each row's distances from its mean in standard deviations; NaN for a row without spread."""
    centred = values - _mean_by_row(values)[:, None]
    spread = np.sqrt(_mean_by_row(centred**2))[:, None]
    highest = np.where(np.isnan(values), -np.inf, values).max(axis=1, initial=-np.inf)
    lowest = np.where(np.isnan(values), np.inf, values).min(axis=1, initial=np.inf)
    scaled = np.full(values.shape, np.nan)
    np.divide(centred, spread, out=scaled, where=(highest > lowest)[:, None] & (spread > 0.0))
    return scaled


def _mean_by_row(values: Floats) -> Floats:
    """The mean of what each row has; NaN if it has nothing."""
    present = ~np.isnan(values)
    counts = present.sum(axis=1)
    means = np.full(len(values), np.nan)
    np.divide(np.where(present, values, 0.0).sum(axis=1), counts, out=means, where=counts > 0)
    return means
