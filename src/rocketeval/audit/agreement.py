"""Agreement with votes, and of voters with each other: the share of votes that come out the same.

Every vote counts once, as in MT-Bench. Intervals resample queries.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.ballots import find_voted
from rocketeval.audit.by_query import Resampling
from rocketeval.audit.figures import Agreement, VoterAgreement
from rocketeval.grid import ScoreGrid
from rocketeval.outcomes import compare, vote_outcomes
from rocketeval.records import Interval, Vote

Floats = NDArray[np.float64]


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
