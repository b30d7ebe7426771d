"""The figures that an audit is made of, with what each rests on.

Votes looked up once, and held against the scores of many methods on the same resamples.
What agreement is worth nothing: scores that never read a response.
Agreement with votes, and of voters with each other: the share of votes that come out the same.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.grid import ScoreGrid, compare, vote_outcomes
from rocketeval.records import Interval, Vote
from rocketeval.stats.bootstrap import Resampling, interval, ratio_draws


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often scores say what votes say."""

    with_ties: Interval | None
    """Share of votes whose outcome (a, b or tie by the margin) the scores give; None if no votes.

    Three outcomes: guessing gives a third."""
    without_ties: Interval | None
    """Among votes that are not ties, the share won by the higher score; None if there are none.

    No margin here; equal scores count half, so guessing gives a half."""
    votes: int
    """Votes given."""
    used: int
    """Votes on which both responses have a score."""
    decisive: int
    """Used votes that are not ties."""
    unusable: int
    """Votes on an unknown query or candidate, or with a score missing."""


@dataclass(frozen=True, slots=True)
class VoterAgreement:
    """How often two voters say the same about the same two responses."""

    with_ties: Interval
    """Share of vote pairs with the same outcome."""
    without_ties: Interval | None
    """The same among pairs in which neither is a tie; None if there are none."""
    pairs: int
    """Pairs of votes by different voters."""
    decisive_pairs: int
    """Pairs in which neither vote is a tie."""


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """A figure, or the difference of two on the same gold, with what it rests on."""

    value: Interval
    """A difference is above zero where the first does better."""
    queries: int
    gold: int
    """Votes or labelled responses."""
    spread: float
    """Standard deviation over queries of what each adds; NaN below two queries."""


@dataclass(frozen=True, slots=True)
class MeasuredVotes:
    """A share of votes, or the difference of two."""

    with_ties: MeasuredFigure | None
    without_ties: MeasuredFigure | None
    """The same among votes that are not ties."""


def as_agreement(found: MeasuredVotes, votes: int) -> Agreement:
    """The share of votes that scores give; `votes` counts the unusable ones too."""
    whole, decided = found.with_ties, found.without_ties
    used = whole.gold if whole else 0
    return Agreement(
        with_ties=whole.value if whole else None,
        without_ties=decided.value if decided else None,
        votes=votes,
        used=used,
        decisive=decided.gold if decided else 0,
        unusable=votes - used,
    )


Places = NDArray[np.intp]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class PairedVotes:
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
class VoteHits:
    """Vote by vote, whether scores say what it says; NaN where they say nothing."""

    with_ties: Floats
    without_ties: Floats
    """NaN for ties too."""

    def __sub__(self, other: VoteHits) -> VoteHits:
        """By how much each vote favours these scores over others."""
        return VoteHits(self.with_ties - other.with_ties, self.without_ties - other.without_ties)

    def where(self, chosen: NDArray[np.bool_]) -> VoteHits:
        """The same for some of the votes."""
        whole, decided = (
            np.where(chosen, side, np.nan) for side in (self.with_ties, self.without_ties)
        )
        return VoteHits(whole, decided)


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


def find_paired_votes(grid: ScoreGrid, votes: Sequence[Vote]) -> PairedVotes:
    """The votes whose names the grid knows, as columns."""
    known, rows, first, second = find_voted(grid, votes)
    _, seen, places = np.unique(rows, return_index=True, return_inverse=True)
    queries = np.argsort(np.argsort(seen))[places]
    return PairedVotes(known, queries, rows, first, second, vote_outcomes(known), len(votes))


def hits(ballots: PairedVotes, scores: Floats, tie_margin: float) -> VoteHits:
    """Which of the votes the scores give, ties by the margin."""
    first = scores[ballots.rows, ballots.first]
    second = scores[ballots.rows, ballots.second]
    scored = ~np.isnan(first - second)
    same = compare(first, second, tie_margin) == ballots.voted
    by_sign = 0.5 + 0.5 * compare(first, second, 0.0) * ballots.voted
    return VoteHits(
        with_ties=np.where(scored, same, np.nan),
        without_ties=np.where(scored & (ballots.voted != 0), by_sign, np.nan),
    )


def measure_votes(
    ballots: PairedVotes,
    named: Mapping[Key, VoteHits],
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


def _measured(totals: Floats, sizes: Floats, draws: Floats, level: float) -> MeasuredFigure | None:
    met = sizes > 0
    queries, votes = int(met.sum()), float(sizes.sum())
    if not queries:
        return None
    value = float(totals.sum()) / votes
    # Of a ratio, a query adds its total less the share of its votes that was to be expected.
    adds = (totals - value * sizes)[met] * queries / votes
    return MeasuredFigure(
        value=interval(value, draws, queries=queries, level=level),
        queries=queries,
        gold=int(votes),
        spread=float(adds.std(ddof=1)) if queries > 1 else math.nan,
    )


LENGTH_TIE_MARGIN = 0.0
"""Lengths are not on the score scale: only equal lengths tie."""
LABEL_TIE_MARGIN = 0.1
"""Labels closer than this, on a scale from 1 to 10, are a tie."""

LONGER, TIE, GUESS = "longer response", "always a tie", "random guess"
KNOW_NOTHING = (LONGER, TIE, GUESS)
"""Baselines that never read a response."""
LABELER = "labeler"
"""Labels, where there are any, read as scores."""


def length_grid(grid: ScoreGrid, lengths: Mapping[tuple[str, str], float]) -> ScoreGrid:
    """The same cells scored by response length, looked up by (query id, candidate).

    Use with `LENGTH_TIE_MARGIN`. A cell without a length is missing.
    """
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    scores = np.full(grid.scores.shape, np.nan)
    for (query, candidate), length in lengths.items():
        if query in rows and candidate in columns:
            scores[rows[query], columns[candidate]] = length
    same_cells = np.where(np.isnan(grid.scores), np.nan, scores)
    return grid.with_scores(same_cells)


def always_tie_grid(grid: ScoreGrid) -> ScoreGrid:
    """The same cells with one score for all: it predicts a tie for every vote."""
    constant = np.where(np.isnan(grid.scores), np.nan, 0.0)
    return grid.with_scores(constant)


def random_agreement(votes: Sequence[Vote], given: int | None = None) -> Agreement:
    """What a fair three-way guess agrees with, exactly: a third with ties, a half without.

    An expectation, not a sample: its intervals have no width. `votes` are those that can be used of
    all that were `given`, where these are more.
    """
    given = len(votes) if given is None else given
    decisive = sum(vote.winner != "tie" for vote in votes)
    third, half = 1.0 / 3.0, 0.5
    return Agreement(
        with_ties=Interval(third, third, third) if votes else None,
        without_ties=Interval(half, half, half) if decisive else None,
        votes=given,
        used=len(votes),
        decisive=decisive,
        unusable=given - len(votes),
    )


def guess_hits(ballots: PairedVotes) -> VoteHits:
    """What a fair three-way guess may expect of each vote."""
    decided = ballots.voted != 0
    return VoteHits(np.full(len(decided), 1.0 / 3.0), np.where(decided, 0.5, np.nan))


def rule_hits(
    ballots: PairedVotes, grid: ScoreGrid, longer: ScoreGrid, tie_margin: float
) -> dict[str, VoteHits]:
    """What each rule that reads nothing makes of the votes; `longer` is a `length_grid`."""
    return {
        LONGER: hits(ballots, longer.scores, LENGTH_TIE_MARGIN),
        TIE: hits(ballots, always_tie_grid(grid).scores, tie_margin),
        GUESS: guess_hits(ballots),
    }


def on_scale(margin: float, scale: tuple[float, float]) -> float:
    """A margin meant for a scale from 1 to 10, on another scale.

    >>> on_scale(0.9, (0.0, 1.0))
    0.1
    """
    low, high = scale
    return margin * (high - low) / 9.0


def agreement_with_votes(
    grid: ScoreGrid,
    votes: Sequence[Vote],
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Agreement:
    """How often the grid's scores prefer what the votes prefer.

    >>> grid = ScoreGrid.from_columns(["q", "q"], ["x", "y"], [7.0, 5.0])
    >>> agreement = agreement_with_votes(grid, [Vote("q", "x", "y", "a"), Vote("q", "x", "z", "b")])
    >>> agreement.with_ties.value, agreement.used, agreement.unusable
    (1.0, 1, 1)
    """
    usable, first, second = scored_votes(grid, votes)
    outcomes, signs = compare(first, second, tie_margin), compare(first, second, 0.0)
    return agreement_of_outcomes(
        usable, outcomes, signs, votes=len(votes), bootstrap=bootstrap, seed=seed, level=level
    )


def agreement_of_outcomes(
    usable: Sequence[Vote],
    outcomes: NDArray[np.int8],
    signs: NDArray[np.int8],
    *,
    votes: int,
    bootstrap: int,
    seed: int,
    level: float,
) -> Agreement:
    """How often outcomes (1: a, 0: tie, -1: b) are those of the votes they belong to.

    `signs` are the outcomes without a tie margin; `votes` counts the unusable ones too.
    """
    voted = vote_outcomes(usable)
    same = (outcomes == voted).astype(np.float64)
    by_sign = 0.5 + 0.5 * signs * voted
    decisive = voted != 0
    query_ids = [vote.query_id for vote in usable]
    decisive_ids = [vote.query_id for vote in usable if vote.winner != "tie"]
    settings = (bootstrap, seed, level)
    return Agreement(
        with_ties=share_of_votes(query_ids, same, *settings),
        without_ties=share_of_votes(decisive_ids, by_sign[decisive], *settings),
        votes=votes,
        used=len(usable),
        decisive=len(decisive_ids),
        unusable=votes - len(usable),
    )


def human_agreement(
    votes: Iterable[Vote], *, bootstrap: int = 1000, seed: int = 0, level: float = 0.95
) -> VoterAgreement | None:
    """How often different voters agree on the same two responses; None if no two ever voted on any.

    The order in which the responses were shown does not matter.
    """
    query_ids: list[str] = []
    same: list[bool] = []
    decisive: list[bool] = []
    for (query_id, _), ballots in _ballots(votes).items():
        for (voter, winner), (other, other_winner) in combinations(ballots, 2):
            if voter == other:
                continue
            query_ids.append(query_id)
            same.append(winner == other_winner)
            decisive.append(winner is not None and other_winner is not None)
    with_ties = share_of_votes(query_ids, np.array(same, float), bootstrap, seed, level)
    if with_ties is None:
        return None
    decisive_ids = [query for query, keep in zip(query_ids, decisive, strict=True) if keep]
    decisive_same = np.array(same, float)[np.array(decisive)]
    return VoterAgreement(
        with_ties=with_ties,
        without_ties=share_of_votes(decisive_ids, decisive_same, bootstrap, seed, level),
        pairs=len(same),
        decisive_pairs=len(decisive_ids),
    )


def scored_votes(grid: ScoreGrid, votes: Sequence[Vote]) -> tuple[list[Vote], Floats, Floats]:
    """The votes on which both responses have a score, with the scores of a and of b."""
    known, row, a, b = find_voted(grid, votes)
    first, second = grid.scores[row, a], grid.scores[row, b]
    scored = ~(np.isnan(first) | np.isnan(second))
    usable = [vote for vote, keep in zip(known, scored.tolist(), strict=True) if keep]
    return usable, first[scored], second[scored]


def _ballots(
    votes: Iterable[Vote],
) -> dict[tuple[str, frozenset[str]], list[tuple[str, str | None]]]:
    """(voter, winning candidate or None) of every vote, by query and unordered pair."""
    ballots: dict[tuple[str, frozenset[str]], list[tuple[str, str | None]]] = defaultdict(list)
    for vote in votes:
        winner = {"a": vote.candidate_a, "b": vote.candidate_b, "tie": None}[vote.winner]
        pair = frozenset((vote.candidate_a, vote.candidate_b))
        ballots[vote.query_id, pair].append((vote.voter, winner))
    return ballots


def share_of_votes(
    query_ids: Sequence[str], hits: Floats, times: int, seed: int, level: float = 0.95
) -> Interval | None:
    """The mean of `hits` with its query-bootstrap interval; None if there are none."""
    rows = {query: row for row, query in enumerate(dict.fromkeys(query_ids))}
    places = np.array([rows[query] for query in query_ids], dtype=np.intp)
    return Resampling(times, seed, level).mean(hits, places)
