"""The ranking: ratings, ranks and which candidates cannot be told apart.

**Rating**: Bradley-Terry on every pair of scores of every query, on the Elo scale, mean 1000.
**Intervals**: percentiles over resampled queries (`bootstrap`). A figure that rests on fewer than
six queries (at 95 %) has no interval: its bounds are NaN and its rank may be any.
**Group**: walking down the ranking, the first candidate opens group 1. The next one joins as long
as the interval of its rating difference to the group's *first* candidate holds zero; otherwise it
opens the next group. So two neighbours in different groups need not be far apart, and each group's
first candidate is clearly better than the next group's first. The intervals are pairwise, with no
correction for how many there are.
**Islands**: candidates that share no query, not even through others, cannot be compared. Each such
set is rated around its own mean, never separated from the others, and its ranks allow for every
candidate outside it.
**Unranked**: candidates without a single score.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import RocketEvalError
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.bootstrap import (
    interval,
    least_queries,
    ratio_draws,
    strength_draws,
    tail_probability,
)
from rocketeval.ranking.bradley_terry import elo, fit
from rocketeval.ranking.pairwise import pair_counts, win_totals, wins_and_losses
from rocketeval.ranking.threads import one_blas_thread
from rocketeval.records import Interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_DIGITS = 6
# Beyond these, figures differ between machines and equal candidates differ by rounding.


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """One row of a ranking."""

    candidate: str
    rank: int
    """1 is best; equal ratings share the better rank."""
    rank_low: int
    """The best rank that the scores allow."""
    rank_high: int
    """The worst rank that the scores allow."""
    rating: Interval
    """Elo scale, mean 1000."""
    mean_score: Interval
    """Mean over the queries with a score."""
    queries: int
    """How many queries have a score."""
    missing: int
    """How many have none."""
    group: int
    """Equal for neighbours that cannot be separated; 1 holds the best."""
    island: int
    """Ratings compare only within an island; a single 1 everywhere is the usual case."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates, best first, and how the ranking was made."""

    rows: tuple[RankedCandidate, ...]
    """By rating, equal ratings by name."""
    unranked: tuple[str, ...]
    """Candidates without a single score."""
    tie_margin: float
    bootstrap: int
    """How many times the queries were resampled."""
    seed: int
    level: float
    """Confidence level of every interval."""
    queries: int
    """Queries on which at least one candidate has a score."""
    islands: int
    """1 when every candidate can be compared with every other."""


def rank(
    grid: ScoreGrid,
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Ranking:
    """The ranking of a grid's candidates; the same grid and settings give the same ranking."""
    present = ~np.isnan(grid.scores)
    ranked, answered = present.any(axis=0), present.any(axis=1)
    if not ranked.any():
        raise RocketEvalError(
            f"none of {len(grid.candidates)} candidates has a score on any query",
            hint="See failures.jsonl in the run for what went wrong, and grade again.",
        )
    scores = grid.scores[np.ix_(answered, ranked)]
    names = [grid.candidates[column] for column in np.flatnonzero(ranked)]
    with one_blas_thread():
        standing = _standing(scores, tie_margin, bootstrap, seed)
    rows = _rows(names, standing, len(grid.query_ids), level)
    unranked = tuple(grid.candidates[column] for column in np.flatnonzero(~ranked))
    islands = int(standing.islands.max())
    queries = len(scores)
    return Ranking(rows, unranked, tie_margin, bootstrap, seed, level, queries, islands)


@dataclass(frozen=True, slots=True)
class _Standing:
    """Everything computed about the columns of a grid, before it is sorted into rows."""

    ratings: Floats
    rating_draws: Floats
    means: Floats
    mean_draws: Floats
    queries: Ints
    islands: Ints


def _standing(scores: Floats, tie_margin: float, times: int, seed: int) -> _Standing:
    present = ~np.isnan(scores)
    wins, meetings = win_totals(scores, tie_margin), pair_counts(scores)
    islands = _islands(meetings)
    strengths = fit(wins.sum(axis=0), meetings)
    draws = strength_draws(wins, present, strengths, times=times, seed=seed)
    filled, counted = np.where(present, scores, 0.0), present.astype(np.float64)
    return _Standing(
        ratings=elo(_around_island_mean(strengths[None, :], islands)[0]).round(_DIGITS),
        rating_draws=elo(_around_island_mean(draws, islands)).round(_DIGITS),
        means=(filled.sum(axis=0) / counted.sum(axis=0)).round(_DIGITS),
        mean_draws=ratio_draws(filled, counted, times=times, seed=seed).round(_DIGITS),
        queries=present.sum(axis=0),
        islands=islands,
    )


def _rows(
    names: list[str], standing: _Standing, grid_queries: int, level: float
) -> tuple[RankedCandidate, ...]:
    ratings = standing.ratings
    ranks = 1 + wins_and_losses(ratings[None, :], 0.0)[1][0]
    lows, highs = _rank_bounds(standing, level)
    order = sorted(range(len(names)), key=lambda column: (-ratings[column], names[column]))
    groups = _groups(order, standing, level)

    def figure(values: Floats, draws: Floats, column: int) -> Interval:
        queries, value = int(standing.queries[column]), float(values[column])
        sure = interval(value, draws[:, column], queries=queries, level=level)
        return Interval(value, round(sure.low, _DIGITS), round(sure.high, _DIGITS))

    return tuple(
        RankedCandidate(
            candidate=names[column],
            rank=int(ranks[column]),
            rank_low=min(int(lows[column]), int(ranks[column])),
            rank_high=max(int(highs[column]), int(ranks[column])),
            rating=figure(ratings, standing.rating_draws, column),
            mean_score=figure(standing.means, standing.mean_draws, column),
            queries=int(standing.queries[column]),
            missing=grid_queries - int(standing.queries[column]),
            group=groups[column],
            island=int(standing.islands[column]),
        )
        for column in order
    )


def _rank_bounds(standing: _Standing, level: float) -> tuple[Ints, Ints]:
    """The best and worst rank of each column that its resampled ratings allow."""
    total = len(standing.ratings)
    lows, highs = np.ones(total, np.int64), np.full(total, total, np.int64)
    for island in range(1, int(standing.islands.max()) + 1):
        columns = np.flatnonzero(standing.islands == island)
        outside = total - len(columns)
        wins, losses = wins_and_losses(standing.rating_draws[:, columns], 0.0)
        for place, column in enumerate(columns):
            if standing.queries[column] < least_queries(level):
                continue
            tail = tail_probability(int(standing.queries[column]), level)
            best, worst = 1 + losses[:, place], len(columns) - wins[:, place]
            lows[column] = np.quantile(best, tail, method="lower")
            highs[column] = np.quantile(worst, 1.0 - tail, method="higher") + outside
    return lows, highs


def _groups(order: list[int], standing: _Standing, level: float) -> dict[int, int]:
    """Group number of each column, walking down the ranking."""
    groups: dict[int, int] = {}
    first, group = order[0], 1
    for column in order:
        if _separable(first, column, standing, level):
            first, group = column, group + 1
        groups[column] = group
    return groups


def _separable(better: int, worse: int, standing: _Standing, level: float) -> bool:
    if better == worse or standing.islands[better] != standing.islands[worse]:
        return False
    queries = int(min(standing.queries[better], standing.queries[worse]))
    difference = standing.ratings[better] - standing.ratings[worse]
    draws = standing.rating_draws[:, better] - standing.rating_draws[:, worse]
    low = interval(float(difference), draws, queries=queries, level=level).low
    return not math.isnan(low) and low > 0.0


def _islands(meetings: Floats) -> Ints:
    """Numbers the sets of columns that meet, directly or through others, from 1."""
    islands = np.zeros(len(meetings), np.int64)
    for column in range(len(meetings)):
        if islands[column]:
            continue
        number = int(islands.max()) + 1
        frontier = np.zeros(len(meetings), bool)
        frontier[column] = True
        while frontier.any():
            islands[frontier] = number
            frontier = (meetings[frontier] > 0).any(axis=0) & (islands == 0)
    return islands


def _around_island_mean(strengths: Floats, islands: Ints) -> Floats:
    """Strengths (one row a fit) with every island's mean at zero."""
    members = (islands[:, None] == np.arange(1, islands.max() + 1)).astype(np.float64)
    means = (strengths @ members) / members.sum(axis=0)
    centred: Floats = strengths - means @ members.T
    return centred
