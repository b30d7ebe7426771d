"""The ranking: ratings, ranks and which candidates cannot be told apart.

**Rating**: Bradley-Terry on every pair of scores of every query, on the Elo scale, mean 1000, or
with one candidate held at a rating of your own (`anchor`).
**Intervals**: percentiles over resampled queries (`bootstrap`). A figure that rests on fewer than
six queries (at 95 %) has no interval: its bounds are NaN and its rank may be any.
**Group**: walking down the ranking, the first candidate opens group 1. The next one joins as long
as the interval of its rating difference to the group's *first* candidate holds zero; otherwise it
opens the next group. So two neighbours in different groups need not be far apart (`beats_next`
says whether they are), and each group's first candidate is clearly better than the next group's
first. The intervals are pairwise, with no correction for how many there are.
**Islands**: candidates that share no query, not even through others, cannot be compared. Each such
set is rated around its own mean, never separated from the others, and its ranks allow for every
candidate outside it. An anchor refuses them.
**Unranked**: candidates without a single score.
**Wins**: for each two candidates, the share of their shared queries that one wins.


Everything computed about the columns of a grid, before it is sorted into a ranking.
The zero of the rating scale: the mean of an island, or one candidate that is held fixed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Ints
from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import (
    interval,
    least_queries,
    ratio_draws,
    strength_draws,
    tail_probability,
)
from rocketeval.stats.bradley_terry import (
    ELO_PER_STRENGTH,
    fit,
    pair_counts,
    win_matrix,
    win_totals,
    wins_and_losses,
)
from rocketeval.text import did_you_mean, join_words
from rocketeval.workers import one_blas_thread


def find_anchor(
    anchor: str | None, candidates: Sequence[str], unranked: Sequence[str] = ()
) -> int | None:
    """The anchor's place among the candidates; ConfigError when it is not one of them."""
    if anchor is None:
        return None
    if anchor in unranked:
        raise ConfigError(
            f"`ranking.anchor` is {anchor!r}, which has no score on any query.",
            hint="Choose another anchor, or see failures.jsonl in the run for what went wrong.",
        )
    if anchor not in candidates:
        raise ConfigError(
            f"`ranking.anchor` is {anchor!r}, which is none of the {len(candidates)} candidates.",
            hint=did_you_mean(anchor, candidates),
        )
    return candidates.index(anchor)


def refuse_islands(anchor: int | None, candidates: Sequence[str], islands: Ints) -> None:
    """Raise ConfigError when some candidates cannot be placed against the anchor."""
    if anchor is None:
        return
    apart = np.flatnonzero(islands != islands[anchor])
    if len(apart):
        names = join_words((repr(candidates[column]) for column in apart.tolist()), most=10)
        raise ConfigError(
            f"{len(apart)} of {len(candidates)} candidates share no query with the anchor "
            f"{candidates[anchor]!r}, not even through others: {names}.",
            hint="Leave these candidates out, give them responses to the anchor's queries, or "
            "remove `ranking.anchor`: without it they are rated apart, around their own mean.",
        )


def to_ratings(strengths: Floats, islands: Ints, anchor: int | None, rating: float) -> Floats:
    """Strengths (one row a fit) on the Elo scale: the anchor, or each island's mean, at `rating`.

    >>> to_ratings(np.array([[0.0, np.log(10.0)]]), np.array([1, 1]), 0, 1100.0)
    array([[1100., 1500.]])
    """
    if not math.isfinite(rating):
        raise ConfigError(f"`ranking.anchor_rating` is {rating}", hint="Use one such as 1000.")
    zero = _island_means(strengths, islands) if anchor is None else strengths[:, [anchor]]
    ratings: Floats = rating + ELO_PER_STRENGTH * (strengths - zero)
    return ratings


def _island_means(strengths: Floats, islands: Ints) -> Floats:
    """For each column the mean of its island, in every row."""
    members = (islands[:, None] == np.arange(1, islands.max() + 1)).astype(np.float64)
    means: Floats = ((strengths @ members) / members.sum(axis=0)) @ members.T
    return means


DIGITS = 6
"""Beyond these, figures differ between machines and equal candidates differ by rounding."""


@dataclass(frozen=True, slots=True)
class Standings:
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


def compute_standings(
    scores: Floats,
    queries: Ints,
    candidates: Sequence[str],
    *,
    tie_margin: float,
    times: int,
    seed: int,
    anchor: int | None,
    anchor_rating: float,
) -> Standings:
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
    return Standings(
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
    """Elo scale, mean 1000 unless there is an anchor; the anchor's own has no width."""
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
    beats_next: bool | None = None
    """Whether it is clearly better than the next row's candidate; None for the last."""


@dataclass(frozen=True, slots=True)
class WinMatrix:
    """Who wins against whom."""

    candidates: tuple[str, ...]
    """In the order of the ranking: of the rows, and of the columns."""
    shares: tuple[tuple[float | None, ...], ...]
    """The share of shared queries that the row wins over the column, ties half; None where two
    never meet, and on the diagonal."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates, best first, and how the ranking was made."""

    FILE: ClassVar[str] = "ranking"
    COMMAND: ClassVar[str] = "run --only rank"
    SCHEMA: ClassVar[int] = 1

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
    anchor: str | None = None
    """The candidate to whose rating all others are differences."""
    anchor_rating: float = 1000.0
    """The rating of the anchor, or the mean rating."""
    wins: WinMatrix | None = None
    """None above `pairwise.MATRIX_CANDIDATES` candidates."""


def rank(
    grid: ScoreGrid,
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    anchor: str | None = None,
    anchor_rating: float = 1000.0,
) -> Ranking:
    """The ranking of a grid's candidates; the same grid and settings give the same ranking."""
    return rank_pooled(
        [grid],
        tie_margin=tie_margin,
        bootstrap=bootstrap,
        seed=seed,
        level=level,
        anchor=anchor,
        anchor_rating=anchor_rating,
    )


def rank_pooled(
    grids: Sequence[ScoreGrid],
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    anchor: str | None = None,
    anchor_rating: float = 1000.0,
) -> Ranking:
    """The ranking from all comparisons that several judges make, in one fit.

    The grids (one a judge) have the same queries and candidates. A judge compares only its own
    scores, so its scale does not matter but for the tie margin. A resampled query brings the
    comparisons of all judges with it: asking more judges about the same queries does not make the
    queries more.
    """
    stacked = np.concatenate([grid.scores for grid in grids])
    queries = np.tile(np.arange(len(grids[0].query_ids)), len(grids))
    present = ~np.isnan(stacked)
    ranked, answered = present.any(axis=0), present.any(axis=1)
    names = grids[0].candidates
    if not ranked.any():
        raise RocketEvalError(
            f"none of {len(names)} candidates has a score on any query",
            hint="See failures.jsonl in the run for what went wrong, and grade again.",
        )
    scores = stacked[np.ix_(answered, ranked)]
    asked, places = np.unique(queries[answered], return_inverse=True)
    candidates = [names[column] for column in np.flatnonzero(ranked)]
    unranked = tuple(names[column] for column in np.flatnonzero(~ranked))
    with one_blas_thread():
        standing = compute_standings(
            scores,
            places,
            candidates,
            tie_margin=tie_margin,
            times=bootstrap,
            seed=seed,
            anchor=find_anchor(anchor, candidates, unranked),
            anchor_rating=anchor_rating,
        )
    order = sorted(range(len(candidates)), key=lambda c: (-standing.ratings[c], candidates[c]))
    return Ranking(
        rows=_rows(candidates, order, standing, len(grids[0].query_ids), level),
        unranked=unranked,
        tie_margin=tie_margin,
        bootstrap=bootstrap,
        seed=seed,
        level=level,
        queries=len(asked),
        islands=int(standing.islands.max()),
        anchor=anchor,
        anchor_rating=anchor_rating,
        wins=_wins([candidates[column] for column in order], scores[:, order], tie_margin),
    )


def _rows(
    names: Sequence[str], order: Sequence[int], standing: Standings, queries: int, level: float
) -> tuple[RankedCandidate, ...]:
    ranks = 1 + wins_and_losses(standing.ratings[None, :], 0.0)[1][0]
    lows, highs = standing.rank_bounds(level)
    groups = _groups(order, standing, level)
    nexts = dict(pairwise(order))
    return tuple(
        RankedCandidate(
            candidate=names[column],
            rank=int(ranks[column]),
            rank_low=min(int(lows[column]), int(ranks[column])),
            rank_high=max(int(highs[column]), int(ranks[column])),
            rating=standing.rating(column, level),
            mean_score=standing.mean(column, level),
            queries=int(standing.queries[column]),
            missing=queries - int(standing.queries[column]),
            group=groups[column],
            island=int(standing.islands[column]),
            beats_next=standing.separable(column, nexts[column], level)
            if column in nexts
            else None,
        )
        for column in order
    )


def _groups(order: Sequence[int], standing: Standings, level: float) -> dict[int, int]:
    """Group number of each column, walking down the ranking."""
    groups: dict[int, int] = {}
    first, group = order[0], 1
    for column in order:
        if standing.separable(first, column, level):
            first, group = column, group + 1
        groups[column] = group
    return groups


def _wins(names: Sequence[str], scores: Floats, tie_margin: float) -> WinMatrix | None:
    shares = win_matrix(scores, tie_margin)
    if shares is None:
        return None
    rows = shares.round(DIGITS).tolist()
    known = (tuple(None if share != share else share for share in row) for row in rows)
    return WinMatrix(tuple(names), tuple(known))
