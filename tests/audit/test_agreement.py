"""Agreement with votes: computed by hand, and on recorded judgments."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from rocketeval.audit.figures import agreement_with_votes, human_agreement
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval, Vote, Winner

GRID = ScoreGrid.from_columns(
    ["q1", "q1", "q1", "q2", "q2", "q2"],
    ["x", "y", "z", "x", "y", "z"],
    [7.0, 5.0, 7.05, 4.0, 4.0, None],
)


def vote(query: str, pair: str, winner: Winner, voter: str = "v1") -> Vote:
    """Return a vote on two one-letter candidates."""
    return Vote(query, pair[0], pair[1], winner, voter)


def value(figure: Interval | None) -> float:
    """Return the figure, which must be present."""
    assert figure is not None
    return figure.value


@pytest.mark.parametrize(
    ("given", "with_ties", "without_ties"),
    [
        (vote("q1", "xy", "a"), 1.0, 1.0),
        (vote("q1", "yx", "a"), 0.0, 0.0),
        (vote("q1", "xz", "tie"), 1.0, None),
        (vote("q1", "xz", "b"), 0.0, 1.0),
        (vote("q2", "xy", "a"), 0.0, 0.5),
        (vote("q2", "xy", "tie"), 1.0, None),
    ],
    ids=["agrees", "disagrees", "tie by margin", "within margin", "equal", "equal and tie"],
)
def test_one_vote_counts_as_defined(
    given: Vote, with_ties: float, without_ties: float | None
) -> None:
    """The margin decides the three-way figure; without ties the sign does, and equal is half."""
    agreement = agreement_with_votes(GRID, [given])
    assert value(agreement.with_ties) == with_ties
    if without_ties is None:
        assert agreement.without_ties is None
    else:
        assert value(agreement.without_ties) == without_ties


def test_equal_scores_count_half_whatever_their_last_bit() -> None:
    """Rounding errors of equal scores do not decide votes for either side."""
    queries = [f"q{n}" for n in range(8)]
    grid = ScoreGrid(tuple(queries), ("x", "y"), np.tile([2.8 + 1e-15, 2.8], (8, 1)))
    for winner in ("a", "b"):
        agreement = agreement_with_votes(grid, [vote(query, "xy", winner) for query in queries])
        assert value(agreement.without_ties) == 0.5


def test_unusable_votes_are_counted() -> None:
    """A missing score, an unknown candidate and an unknown query are left out and counted."""
    votes = [
        vote("q1", "xy", "a"),
        vote("q2", "xz", "a"),
        vote("q1", "xw", "a"),
        vote("q9", "xy", "tie"),
    ]
    agreement = agreement_with_votes(GRID, votes)
    assert (agreement.votes, agreement.used, agreement.decisive, agreement.unusable) == (4, 1, 1, 3)
    assert value(agreement.with_ties) == 1.0


def test_no_usable_vote_gives_no_figure() -> None:
    """No usable vote gives None, not 0%."""
    agreement = agreement_with_votes(GRID, [vote("q9", "xy", "a")])
    assert agreement.with_ties is None
    assert agreement.without_ties is None


def test_every_vote_counts_once_and_queries_are_resampled() -> None:
    """Three votes on one query outweigh one on another; a single query has no interval."""
    votes = [vote("q1", "xy", "a", f"v{n}") for n in range(3)]
    alone = agreement_with_votes(GRID, votes)
    assert alone.with_ties is not None
    assert math.isnan(alone.with_ties.low)
    both = agreement_with_votes(GRID, [*votes, vote("q2", "xy", "a")])
    assert value(both.with_ties) == 0.75


def test_voter_agreement_ignores_presentation_order() -> None:
    """Votes on (x, y) and (y, x) for the same candidate agree."""
    votes = [
        vote("q1", "xy", "a", "v1"),
        vote("q1", "yx", "b", "v2"),
        vote("q1", "xy", "tie", "v3"),
    ]
    agreement = human_agreement(votes)
    assert agreement is not None
    # Each vote counts once: the first two agree with one of two others, the tie with none.
    assert agreement.with_ties.value == pytest.approx(1 / 3)
    # Decided votes: one other agrees, and the other's tie counts half.
    assert value(agreement.without_ties) == 0.75
    assert (agreement.pairs, agreement.decisive_pairs) == (3, 2)


def test_voter_pairs_need_two_voters_and_the_same_responses() -> None:
    """Two votes by one voter, or on different responses, are no pair."""
    votes = [
        vote("q1", "xy", "a", "v1"),
        vote("q1", "xy", "a", "v1"),
        vote("q1", "xz", "a", "v2"),
        vote("q2", "xy", "a", "v3"),
    ]
    assert human_agreement(votes) is None


def mt_bench_grid(
    judgments: list[dict[str, Any]], read: Callable[[float], float] = float
) -> ScoreGrid:
    """Return `1 + 9 * mean` of the recorded probabilities, after `read`."""
    return ScoreGrid.from_columns(
        [row["query_id"] for row in judgments],
        [row["model"] for row in judgments],
        [1.0 + 9.0 * float(np.mean([read(p) for p in row["p_yes"]])) for row in judgments],
    )


def test_recorded_judgments_reach_their_published_agreement(
    mt_bench_judgments: list[dict[str, Any]], mt_bench_votes: list[Vote]
) -> None:
    """A 1.5B judge agrees with 59.4% of votes, and with 76.2% without ties."""
    agreement = agreement_with_votes(mt_bench_grid(mt_bench_judgments), mt_bench_votes)
    assert agreement.with_ties is not None
    assert (agreement.used, agreement.unusable) == (1689, 0)
    assert agreement.with_ties.value == pytest.approx(0.594, abs=5e-4)
    assert agreement.with_ties.low == pytest.approx(0.56, abs=0.01)
    assert agreement.with_ties.high == pytest.approx(0.64, abs=0.015)
    assert value(agreement.without_ties) == pytest.approx(0.762, abs=5e-4)


def test_hard_answers_lose_most_of_the_agreement(
    mt_bench_judgments: list[dict[str, Any]], mt_bench_votes: list[Vote]
) -> None:
    """Rounded to yes or no, the judge drops to 38.0% and 60.0%, mostly because of equal scores."""
    grid = mt_bench_grid(mt_bench_judgments, lambda p: float(p > 0.5))
    agreement = agreement_with_votes(grid, mt_bench_votes)
    assert value(agreement.with_ties) == pytest.approx(0.380, abs=6e-4)
    assert value(agreement.without_ties) == pytest.approx(0.6005, abs=5e-4)


def test_people_are_measured_by_the_rule_of_the_judge(mt_bench_votes: list[Vote]) -> None:
    """By the judge's rule people reach 65.9% and 78.3% on the first turn, not 64.1% and 82.0%."""
    agreement = human_agreement(mt_bench_votes)
    assert agreement is not None
    assert agreement.with_ties.value == pytest.approx(0.659, abs=1e-3)
    assert value(agreement.without_ties) == pytest.approx(0.783, abs=1e-3)
    assert (agreement.pairs, agreement.decisive_pairs) == (1262, 966)


def test_best_possible_prediction_exceeds_human_agreement(mt_bench_votes: list[Vote]) -> None:
    """The upper bound lies above human-human agreement."""
    agreement = human_agreement(mt_bench_votes)
    assert agreement is not None
    best = agreement.best_with_ties
    assert best is not None
    assert agreement.with_ties.value + 0.04 < best.value < 0.80
    assert value(agreement.best_without_ties) > value(agreement.without_ties)
