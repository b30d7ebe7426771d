"""What moves scores beside quality: the length of a response, and whose response it is.

Everything is measured within queries, where candidates answer the same thing, and then averaged
over queries, which are what intervals resample.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.agreement import find_voted
from rocketeval.audit.by_query import Places, Resampling, renumbered
from rocketeval.grid import ScoreGrid
from rocketeval.outcomes import compare, vote_outcomes
from rocketeval.records import Interval, Vote

Floats = NDArray[np.float64]

FEWEST_RESPONSES = 3
"""Responses to a query below which it says nothing about a correlation."""


@dataclass(frozen=True, slots=True)
class LengthBias:
    """How far scores follow the length of responses."""

    scores: Interval | None
    """Mean over queries of Spearman's correlation of score and length; None without queries."""
    gold: Interval | None
    """The same of gold and length, on queries and responses that have scores too."""
    excess: Interval | None
    """What scores follow length beyond what gold does, on the queries of `gold`."""
    lost_to_longer: Interval | None
    """Of the votes lost, the share that went to the longer response. Below a half, the judge errs
    towards length; above, against it."""
    queries: int
    """Queries of `scores`."""
    gold_queries: int
    """Queries of `gold` and `excess`."""
    left_out: int
    """Queries with fewer than three scored responses, or with all scores or lengths the same."""
    lost: int
    """Votes whose loser has the higher score, the two responses not being equally long."""


@dataclass(frozen=True, slots=True)
class SelfPreference:
    """How much better a judge treats its own family than gold does."""

    preference: Interval | None
    """Score minus gold, each in standard deviations within the query, of the family minus that of
    the others; None if no query tells."""
    family: tuple[str, ...]
    """Candidates taken for the judge's family, sorted."""
    queries: int
    left_out: int
    """Queries without scores and gold of both kinds, or with all scores or gold the same."""
    reason: str | None
    """Why there is no figure, if there is none."""


def length_bias(
    grid: ScoreGrid,
    lengths: ScoreGrid,
    gold: Floats | None = None,
    votes: Sequence[Vote] = (),
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> LengthBias:
    """Correlate scores with lengths, which are laid out alike (`baselines.length_grid`).

    `gold` is laid out like the scores, with NaN where there is none.
    """
    _refuse_other_shape(grid, lengths.scores)
    resampling = Resampling(bootstrap, seed, level)
    plain = spearman_by_row(grid.scores, lengths.scores)
    of_gold, excess = np.zeros(0), np.zeros(0)
    if gold is not None:
        _refuse_other_shape(grid, gold)
        labelled = np.where(np.isnan(gold), np.nan, grid.scores)
        of_gold = spearman_by_row(np.where(np.isnan(grid.scores), np.nan, gold), lengths.scores)
        excess = spearman_by_row(labelled, lengths.scores) - of_gold
        of_gold, excess = of_gold[~np.isnan(excess)], excess[~np.isnan(excess)]
    known = plain[~np.isnan(plain)]
    longer, lost_on = _lost_votes(grid, lengths, votes)
    return LengthBias(
        scores=resampling.mean(known, np.arange(len(known))),
        gold=resampling.mean(of_gold, np.arange(len(of_gold))),
        excess=resampling.mean(excess, np.arange(len(excess))),
        lost_to_longer=resampling.share(longer, lost_on),
        queries=len(known),
        gold_queries=len(excess),
        left_out=len(plain) - len(known),
        lost=len(longer),
    )


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
    _refuse_other_shape(grid, gold)
    own = np.array([candidate in family for candidate in grid.candidates], dtype=bool)
    named = tuple(sorted(family & set(grid.candidates)))
    both = ~(np.isnan(grid.scores) | np.isnan(gold))
    surplus = _standard(np.where(both, grid.scores, np.nan)) - _standard(
        np.where(both, gold, np.nan)
    )
    gaps = _mean_by_row(surplus[:, own]) - _mean_by_row(surplus[:, ~own])
    known = gaps[~np.isnan(gaps)]
    reason = None
    if not named or own.all():
        reason = "there must be candidates of the judge's family and others"
    elif not len(known):
        reason = "no query has differing scores and gold of the family and of others"
    return SelfPreference(
        preference=Resampling(bootstrap, seed, level).mean(known, np.arange(len(known))),
        family=named,
        queries=len(known),
        left_out=len(gaps) - len(known),
        reason=reason,
    )


def spearman_by_row(one: Floats, two: Floats) -> Floats:
    """Spearman's correlation of two tables row by row, over the cells that both have.

    NaN where a row has fewer than three, or only equal values on a side.
    """
    rows, columns = np.nonzero(~(np.isnan(one) | np.isnan(two)))
    x, y = (_ranks_within(side[rows, columns], rows) for side in (one, two))
    count = np.bincount(rows, minlength=len(one))
    middle = ((count + 1) / 2.0)[rows]
    x, y = x - middle, y - middle
    sums = [np.bincount(rows, each, len(one)) for each in (x * y, x * x, y * y)]
    found = np.full(len(one), np.nan)
    told = (count >= FEWEST_RESPONSES) & (sums[1] > 0.0) & (sums[2] > 0.0)
    found[told] = sums[0][told] / np.sqrt(sums[1][told] * sums[2][told])
    return found


def _ranks_within(values: Floats, rows: Places) -> Floats:
    """Ranks from 1 within each row, equal values sharing their mean rank; rows are in order."""
    order = np.lexsort((values, rows))
    sorted_values, sorted_rows = values[order], rows[order]
    fresh = np.ones(len(values), dtype=bool)
    fresh[1:] = (np.diff(sorted_rows) != 0) | (np.diff(sorted_values) != 0.0)
    run = np.cumsum(fresh) - 1
    places = np.arange(1, len(values) + 1, dtype=np.float64)
    shared = np.bincount(run, places)[run] / np.bincount(run)[run]
    before = np.searchsorted(sorted_rows, sorted_rows)
    ranks = np.empty(len(values))
    ranks[order] = shared - before
    return ranks


def _lost_votes(
    grid: ScoreGrid, lengths: ScoreGrid, votes: Sequence[Vote]
) -> tuple[Floats, Places]:
    """Of the votes against the scores, whether the longer response won, and on which query."""
    known, row, a, b = find_voted(grid, votes)
    voted = vote_outcomes(known)
    scored = compare(grid.scores[row, a], grid.scores[row, b], 0.0)
    longer = compare(lengths.scores[row, a], lengths.scores[row, b], 0.0)
    lost = (voted * scored == -1) & (longer != 0)
    return (voted[lost] == longer[lost]).astype(np.float64), renumbered(row[lost])


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


def _refuse_other_shape(grid: ScoreGrid, table: Floats) -> None:
    if table.shape != grid.scores.shape:
        raise ValueError(f"a table of shape {table.shape} beside scores of {grid.scores.shape}")
