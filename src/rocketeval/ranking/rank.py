"""Rankings: ratings, ranks, and groups of tied candidates.

**Rating**: Bradley-Terry fit to every pair of scores of every query, on the Elo scale, with mean
1000, or with one candidate (`anchor`) fixed at a given rating.
**Intervals**: percentiles over resampled queries (`bootstrap`). A figure from fewer than six
queries (at 95%) has no interval: its bounds are NaN, and its rank may be any.
**Group**: in ranking order, the first candidate opens group 1. The next one joins if the interval
of its rating difference to the group's *first* candidate contains zero; otherwise it opens the next
group. So neighbors in different groups may be tied (see `beats_next`), but each group's first
candidate is significantly better than the next group's first. The intervals are pairwise, without
correction for multiple comparisons.
**Islands**: candidates that share no queries, directly or through others, cannot be compared. Each
island is rated around its own mean and tied with the others, and its ranks allow for every
candidate outside it. With an anchor, islands are an error.
**Unranked**: candidates without any score.
**Wins**: for each pair of candidates, the share of their common queries that one wins.
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
    """Return the anchor's index among the candidates; raise ConfigError if it is not one."""
    if anchor is None:
        return None
    if anchor in unranked:
        raise ConfigError(
            f"`ranking.anchor` is {anchor!r}, which has no score on any query.",
            hint="Choose another anchor, or see failures.jsonl in the run for the errors.",
        )
    if anchor not in candidates:
        raise ConfigError(
            f"`ranking.anchor` is {anchor!r}, not one of the {len(candidates)} candidates.",
            hint=did_you_mean(anchor, candidates),
        )
    return candidates.index(anchor)


def refuse_islands(anchor: int | None, candidates: Sequence[str], islands: Ints) -> None:
    """Raise ConfigError if some candidates cannot be compared with the anchor."""
    if anchor is None:
        return
    apart = np.flatnonzero(islands != islands[anchor])
    if len(apart):
        names = join_words((repr(candidates[column]) for column in apart.tolist()), most=10)
        raise ConfigError(
            f"{len(apart)} of {len(candidates)} candidates share no query with the anchor "
            f"{candidates[anchor]!r}, directly or through others: {names}.",
            hint="Leave these candidates out, give them responses to the anchor's queries, or "
            "remove `ranking.anchor`: then they are rated separately, around their own mean.",
        )


def to_ratings(strengths: Floats, islands: Ints, anchor: int | None, rating: float) -> Floats:
    """Convert strengths (one row per fit) to Elo, with the anchor or island means at `rating`.

    >>> to_ratings(np.array([[0.0, np.log(10.0)]]), np.array([1, 1]), 0, 1100.0)
    array([[1100., 1500.]])
    """
    if not math.isfinite(rating):
        raise ConfigError(f"`ranking.anchor_rating` is {rating}", hint="Use one such as 1000.")
    zero = _island_means(strengths, islands) if anchor is None else strengths[:, [anchor]]
    ratings: Floats = rating + ELO_PER_STRENGTH * (strengths - zero)
    return ratings


def _island_means(strengths: Floats, islands: Ints) -> Floats:
    """Return the mean of each column's island, in every row."""
    members = (islands[:, None] == np.arange(1, islands.max() + 1)).astype(np.float64)
    means: Floats = ((strengths @ members) / members.sum(axis=0)) @ members.T
    return means


DIGITS = 6
"""Decimal places; more would differ between machines and by rounding."""


@dataclass(frozen=True, slots=True)
class Standings:
    """Ratings and means of every candidate (column), with their draws (one row per resample)."""

    ratings: Floats
    rating_draws: Floats
    means: Floats
    mean_draws: Floats
    queries: Ints
    """Number of scored queries of each candidate."""
    islands: Ints
    """Numbered from 1."""
    anchor: int | None
    """Index of the anchor, whose rating is given."""

    def rating(self, column: int, level: float) -> Interval:
        """Return a candidate's rating with its interval."""
        if column == self.anchor:
            given = float(self.ratings[column])
            return Interval(given, given, given)
        return self._figure(self.ratings, self.rating_draws, column, level)

    def mean(self, column: int, level: float) -> Interval:
        """Return a candidate's mean score with its interval."""
        return self._figure(self.means, self.mean_draws, column, level)

    def _figure(self, values: Floats, draws: Floats, column: int, level: float) -> Interval:
        queries, value = int(self.queries[column]), float(values[column])
        sure = interval(value, draws[:, column], queries=queries, level=level)
        return Interval(value, round(sure.low, DIGITS), round(sure.high, DIGITS))

    def separable(self, better: int, worse: int, level: float) -> bool:
        """Return whether the interval of the rating difference lies above zero."""
        if better == worse or self.islands[better] != self.islands[worse]:
            return False
        queries = int(min(self.queries[better], self.queries[worse]))
        difference = self.ratings[better] - self.ratings[worse]
        draws = self.rating_draws[:, better] - self.rating_draws[:, worse]
        low = interval(float(difference), draws, queries=queries, level=level).low
        return not math.isnan(low) and low > 0.0

    def rank_bounds(self, level: float) -> tuple[Ints, Ints]:
        """Return the interval of each candidate's rank over the resamples."""
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
    """Return the standings of all columns; `queries` is the query index of each row.

    Rows of one query (one per judge) are compared separately and resampled together.
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
    """Return the island number, from 1, of each column."""
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
    """Best rank of the interval."""
    rank_high: int
    """Worst rank of the interval."""
    rating: Interval
    """Elo scale, mean 1000 without an anchor; the anchor's interval has no width."""
    mean_score: Interval
    """Mean over the scored queries."""
    queries: int
    """Number of scored queries."""
    missing: int
    """Number of queries without a score."""
    group: int
    """Number of the group of tied candidates; group 1 holds the best."""
    island: int
    """Number of the island; ratings are comparable only within one, and usually all are 1."""
    beats_next: bool | None = None
    """True if it is significantly better than the next row's candidate; None for the last."""


@dataclass(frozen=True, slots=True)
class WinMatrix:
    """Win rates of each candidate against each other."""

    candidates: tuple[str, ...]
    """Names of rows and columns, in ranking order."""
    shares: tuple[tuple[float | None, ...], ...]
    """Share of common queries that the row wins against the column, ties half; None without common
    queries and on the diagonal."""


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates, best first, with the settings of the ranking."""

    FILE: ClassVar[str] = "ranking"
    COMMAND: ClassVar[str] = "run --only rank"
    SCHEMA: ClassVar[int] = 1

    rows: tuple[RankedCandidate, ...]
    """Sorted by rating, then by name."""
    unranked: tuple[str, ...]
    """Candidates without any score."""
    tie_margin: float
    bootstrap: int
    """Number of resamples."""
    seed: int
    level: float
    """Confidence level of every interval."""
    queries: int
    """Queries on which at least one candidate has a score."""
    islands: int
    """Number of islands; 1 if all candidates are comparable."""
    anchor: str | None = None
    """The candidate with a fixed rating."""
    anchor_rating: float = 1000.0
    """Rating of the anchor, or mean rating."""
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
    """Rank a grid's candidates; the same grid and settings give the same ranking."""
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
    """Rank candidates by one fit to the comparisons of several judges.

    The grids (one per judge) have the same queries and candidates. Only scores of the same judge
    are compared, so its scale matters only for the tie margin. A resampled query includes the
    comparisons of all judges: more judges on the same queries do not add queries.
    """
    stacked = np.concatenate([grid.scores for grid in grids])
    queries = np.tile(np.arange(len(grids[0].query_ids)), len(grids))
    present = ~np.isnan(stacked)
    ranked, answered = present.any(axis=0), present.any(axis=1)
    names = grids[0].candidates
    if not ranked.any():
        raise RocketEvalError(
            f"none of {len(names)} candidates has a score on any query",
            hint="See failures.jsonl in the run for the errors, then grade again.",
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
    """Return the group number of each column."""
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
