"""Votes looked up once, and held against the scores of many methods on the same resamples."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.figures import Agreement, Measured, MeasuredVotes, as_agreement
from rocketeval.grid import ScoreGrid
from rocketeval.outcomes import compare, vote_outcomes
from rocketeval.ranking.bootstrap import interval, ratio_draws
from rocketeval.records import Vote

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class Ballots:
    """Votes looked up in a grid once, to be held against any scores laid out like it."""

    votes: Sequence[Vote]
    """Those whose names the grid knows."""
    queries: Places
    """Each vote's query, numbered from 0 as they come."""
    rows: Places
    """Of the grid."""
    first: Places
    """Column of a."""
    second: Places
    """Column of b."""
    voted: NDArray[np.int8]
    """1 for a, -1 for b, 0 for a tie."""
    given: int
    """Votes, those with unknown names too."""


@dataclass(frozen=True, slots=True, eq=False)
class Hits:
    """Vote by vote, whether scores say what it says; NaN where they say nothing."""

    with_ties: Floats
    without_ties: Floats
    """NaN for ties too."""

    def __sub__(self, other: Hits) -> Hits:
        """By how much each vote favours these scores over others."""
        return Hits(self.with_ties - other.with_ties, self.without_ties - other.without_ties)

    def where(self, chosen: NDArray[np.bool_]) -> Hits:
        """The same for some of the votes."""
        whole, decided = (
            np.where(chosen, side, np.nan) for side in (self.with_ties, self.without_ties)
        )
        return Hits(whole, decided)


def find_voted(grid: ScoreGrid, votes: Sequence[Vote]) -> tuple[list[Vote], Places, Places, Places]:
    """The votes whose names the grid knows, with their row and the columns of a and of b."""
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    known = [
        vote
        for vote in votes
        if vote.query_id in rows and vote.candidate_a in columns and vote.candidate_b in columns
    ]
    return (
        known,
        np.array([rows[vote.query_id] for vote in known], dtype=np.intp),
        np.array([columns[vote.candidate_a] for vote in known], dtype=np.intp),
        np.array([columns[vote.candidate_b] for vote in known], dtype=np.intp),
    )


def find_ballots(grid: ScoreGrid, votes: Sequence[Vote]) -> Ballots:
    """The votes whose names the grid knows, as columns."""
    known, rows, first, second = find_voted(grid, votes)
    _, seen, places = np.unique(rows, return_index=True, return_inverse=True)
    queries = np.argsort(np.argsort(seen))[places]
    return Ballots(known, queries, rows, first, second, vote_outcomes(known), len(votes))


def hits(ballots: Ballots, scores: Floats, tie_margin: float) -> Hits:
    """Which of the votes the scores give, ties by the margin."""
    first = scores[ballots.rows, ballots.first]
    second = scores[ballots.rows, ballots.second]
    scored = ~np.isnan(first - second)
    same = compare(first, second, tie_margin) == ballots.voted
    by_sign = 0.5 + 0.5 * compare(first, second, 0.0) * ballots.voted
    return Hits(
        with_ties=np.where(scored, same, np.nan),
        without_ties=np.where(scored & (ballots.voted != 0), by_sign, np.nan),
    )


def agreements(
    ballots: Ballots,
    methods: Mapping[str, Hits],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, Agreement]:
    """The same as `agreement_with_votes` for every method, from one set of resamples."""
    found = measure_votes(ballots, methods, bootstrap=bootstrap, seed=seed, level=level)
    return {name: as_agreement(own, ballots.given) for name, own in found.items()}


def vote_differences(
    ballots: Ballots,
    ours: Hits,
    others: Mapping[str, Hits],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[str, MeasuredVotes]:
    """How much more often `ours` agrees than each of the others, on the votes both speak about."""
    less = {name: ours - other for name, other in others.items()}
    return measure_votes(ballots, less, bootstrap=bootstrap, seed=seed, level=level)


def measure_votes(
    ballots: Ballots,
    named: Mapping[Key, Hits],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[Key, MeasuredVotes]:
    """The share of votes in each set of hits, all on the same resamples of the queries."""
    columns = [side for own in named.values() for side in (own.with_ties, own.without_ties)]
    if not len(ballots.queries) or not columns:
        return {key: MeasuredVotes(None, None) for key in named}
    stacked = np.stack(columns, axis=1)
    there = ~np.isnan(stacked)
    sizes, totals = (
        np.stack([np.bincount(ballots.queries, weights=side) for side in sides.T], 1).astype(float)
        for sides in (there, np.where(there, stacked, 0.0))
    )
    draws = ratio_draws(totals, sizes, times=bootstrap, seed=seed)
    found = [_measured(*column, level) for column in zip(totals.T, sizes.T, draws.T, strict=True)]
    pairs = zip(named, found[::2], found[1::2], strict=True)
    return {key: MeasuredVotes(whole, decided) for key, whole, decided in pairs}


def _measured(totals: Floats, sizes: Floats, draws: Floats, level: float) -> Measured | None:
    met = sizes > 0
    queries, votes = int(met.sum()), float(sizes.sum())
    if not queries:
        return None
    value = float(totals.sum()) / votes
    # Of a ratio, a query adds its total less the share of its votes that was to be expected.
    adds = (totals - value * sizes)[met] * queries / votes
    return Measured(
        value=interval(value, draws, queries=queries, level=level),
        queries=queries,
        gold=int(votes),
        spread=float(adds.std(ddof=1)) if queries > 1 else math.nan,
    )
