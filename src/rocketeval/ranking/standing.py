"""Everything computed about the columns of a grid, before it is sorted into a ranking."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.ranking.anchor import refuse_islands, to_ratings
from rocketeval.ranking.bootstrap import (
    interval,
    least_queries,
    ratio_draws,
    strength_draws,
    tail_probability,
)
from rocketeval.ranking.bradley_terry import fit
from rocketeval.ranking.pairwise import pair_counts, win_totals, wins_and_losses
from rocketeval.records import Interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DIGITS = 6
"""Beyond these, figures differ between machines and equal candidates differ by rounding."""


@dataclass(frozen=True, slots=True)
class Standing:
    """Ratings and means of every candidate (column), with their draws (one row a resample)."""

    ratings: Floats
    rating_draws: Floats
    means: Floats
    mean_draws: Floats
    queries: Ints
    """On how many queries each has a score."""
    islands: Ints
    """Numbered from 1."""
    anchor: int | None
    """Whose rating is given, not measured."""

    def rating(self, column: int, level: float) -> Interval:
        """A candidate's rating with its interval."""
        if column == self.anchor:
            given = float(self.ratings[column])
            return Interval(given, given, given)
        return self._figure(self.ratings, self.rating_draws, column, level)

    def mean(self, column: int, level: float) -> Interval:
        """A candidate's mean score with its interval."""
        return self._figure(self.means, self.mean_draws, column, level)

    def _figure(self, values: Floats, draws: Floats, column: int, level: float) -> Interval:
        queries, value = int(self.queries[column]), float(values[column])
        sure = interval(value, draws[:, column], queries=queries, level=level)
        return Interval(value, round(sure.low, DIGITS), round(sure.high, DIGITS))

    def separable(self, better: int, worse: int, level: float) -> bool:
        """Whether the interval of the rating difference lies above zero."""
        if better == worse or self.islands[better] != self.islands[worse]:
            return False
        queries = int(min(self.queries[better], self.queries[worse]))
        difference = self.ratings[better] - self.ratings[worse]
        draws = self.rating_draws[:, better] - self.rating_draws[:, worse]
        low = interval(float(difference), draws, queries=queries, level=level).low
        return not math.isnan(low) and low > 0.0

    def rank_bounds(self, level: float) -> tuple[Ints, Ints]:
        """The best and worst rank of each candidate that its resampled ratings allow."""
        total = len(self.ratings)
        lows, highs = np.ones(total, np.int64), np.full(total, total, np.int64)
        for island in range(1, int(self.islands.max()) + 1):
            columns = np.flatnonzero(self.islands == island)
            outside = total - len(columns)
            wins, losses = wins_and_losses(self.rating_draws[:, columns], 0.0)
            for place, column in enumerate(columns):
                if self.queries[column] < least_queries(level):
                    continue
                tail = tail_probability(int(self.queries[column]), level)
                best, worst = 1 + losses[:, place], len(columns) - wins[:, place]
                lows[column] = np.quantile(best, tail, method="lower")
                highs[column] = np.quantile(worst, 1.0 - tail, method="higher") + outside
        return lows, highs


def stand(
    scores: Floats,
    queries: Ints,
    candidates: Sequence[str],
    *,
    tie_margin: float,
    times: int,
    seed: int,
    anchor: int | None,
    anchor_rating: float,
) -> Standing:
    """The standing of every column; `queries` says to which query each row belongs.

    Rows of one query (one a judge) are compared each on its own and resampled together.
    """
    present = ~np.isnan(scores)
    wins, meetings = win_totals(scores, tie_margin), pair_counts(scores)
    islands = _islands(meetings)
    refuse_islands(anchor, candidates, islands)
    strengths = fit(wins.sum(axis=0), meetings)
    draws = strength_draws(wins, present, strengths, times=times, seed=seed, queries=queries)
    filled, counted = np.where(present, scores, 0.0), present.astype(np.float64)
    mean_draws = ratio_draws(filled, counted, times=times, seed=seed, queries=queries)
    scale = (islands, anchor, anchor_rating)
    return Standing(
        ratings=to_ratings(strengths[None, :], *scale)[0].round(DIGITS),
        rating_draws=to_ratings(draws, *scale).round(DIGITS),
        means=(filled.sum(axis=0) / counted.sum(axis=0)).round(DIGITS),
        mean_draws=mean_draws.round(DIGITS),
        queries=_queries_with_a_score(present, queries),
        islands=islands,
        anchor=anchor,
    )


def _queries_with_a_score(present: NDArray[np.bool_], queries: Ints) -> Ints:
    scored = np.zeros((int(queries.max()) + 1, present.shape[1]), bool)
    np.logical_or.at(scored, queries, present)
    counts: Ints = scored.sum(axis=0)
    return counts


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
