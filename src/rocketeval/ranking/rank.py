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
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import RocketEvalError
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.anchor import find_anchor
from rocketeval.ranking.pairwise import win_matrix, wins_and_losses
from rocketeval.ranking.standing import DIGITS, Standing, stand
from rocketeval.records import Interval
from rocketeval.threads import one_blas_thread

Floats = NDArray[np.float64]


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
        standing = stand(
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
    names: Sequence[str], order: Sequence[int], standing: Standing, queries: int, level: float
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


def _groups(order: Sequence[int], standing: Standing, level: float) -> dict[int, int]:
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
