"""How far scores follow the length of responses, beside how far gold does.

Everything is measured within queries, where candidates answer the same thing, and then averaged
over queries, which are what intervals resample.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.ballots import find_voted
from rocketeval.audit.by_query import Places, Resampling, renumbered
from rocketeval.audit.within_queries import ranks_within
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
    scores_with_gold: Interval | None
    """The same of score and length, on the queries and responses of `gold`."""
    excess: Interval | None
    """What scores follow length beyond what gold does, on the queries of `gold`."""
    lost_to_longer: Interval | None
    """Of the votes lost, the share that went to the longer response. Below a half, the judge errs
    towards length; above, against it."""
    queries: int
    """Queries of `scores`."""
    gold_queries: int
    """Queries of `gold`, `scores_with_gold` and `excess`."""
    left_out: int
    """Queries with fewer than three scored responses, or with all scores or lengths the same."""
    lost: int
    """Votes whose loser has the higher score, the two responses not being equally long."""


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
    refuse_other_shape(grid, lengths.scores)
    resampling = Resampling(bootstrap, seed, level)
    plain = spearman_by_row(grid.scores, lengths.scores)
    of_gold, beside = np.zeros(0), np.zeros(0)
    if gold is not None:
        refuse_other_shape(grid, gold)
        of_gold = spearman_by_row(np.where(np.isnan(grid.scores), np.nan, gold), lengths.scores)
        beside = spearman_by_row(np.where(np.isnan(gold), np.nan, grid.scores), lengths.scores)
        both = ~np.isnan(of_gold - beside)
        of_gold, beside = of_gold[both], beside[both]
    known = plain[~np.isnan(plain)]
    longer, lost_on = _lost_votes(grid, lengths, votes)
    return LengthBias(
        scores=resampling.mean(known, np.arange(len(known))),
        gold=resampling.mean(of_gold, np.arange(len(of_gold))),
        scores_with_gold=resampling.mean(beside, np.arange(len(beside))),
        excess=resampling.mean(beside - of_gold, np.arange(len(beside))),
        lost_to_longer=resampling.share(longer, lost_on),
        queries=len(known),
        gold_queries=len(beside),
        left_out=len(plain) - len(known),
        lost=len(longer),
    )


def spearman_by_row(one: Floats, two: Floats) -> Floats:
    """Spearman's correlation of two tables row by row, over the cells that both have.

    NaN where a row has fewer than three, or only equal values on a side.
    """
    rows, columns = np.nonzero(~(np.isnan(one) | np.isnan(two)))
    x, y = (ranks_within(side[rows, columns], rows) for side in (one, two))
    count = np.bincount(rows, minlength=len(one))
    middle = ((count + 1) / 2.0)[rows]
    x, y = x - middle, y - middle
    sums = [np.bincount(rows, each, len(one)) for each in (x * y, x * x, y * y)]
    found = np.full(len(one), np.nan)
    told = (count >= FEWEST_RESPONSES) & (sums[1] > 0.0) & (sums[2] > 0.0)
    found[told] = sums[0][told] / np.sqrt(sums[1][told] * sums[2][told])
    return found


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


def refuse_other_shape(grid: ScoreGrid, table: Floats) -> None:
    """ValueError for a table that is not laid out like the scores."""
    if table.shape != grid.scores.shape:
        raise ValueError(f"a table of shape {table.shape} beside scores of {grid.scores.shape}")
