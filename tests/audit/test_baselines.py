"""Trivial baselines that ignore the response text."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.audit.figures import (
    LENGTH_TIE_MARGIN,
    agreement_with_votes,
    always_tie_grid,
    length_grid,
    random_agreement,
)
from rocketeval.grid import ScoreGrid
from rocketeval.records import Vote

GRID = ScoreGrid.from_columns(["q", "q", "q"], ["x", "y", "z"], [7.0, 5.0, None])
VOTES = [Vote("q", "x", "y", "a"), Vote("q", "x", "y", "tie"), Vote("q", "x", "z", "b")]


def test_length_grid_covers_the_same_cells() -> None:
    """A cell without a score has no length, so both use the same votes."""
    grid = length_grid(GRID, {("q", "x"): 10, ("q", "y"): 11, ("q", "z"): 12})
    np.testing.assert_array_equal(grid.scores, [[10.0, 11.0, np.nan]])
    assert agreement_with_votes(grid, VOTES, tie_margin=LENGTH_TIE_MARGIN).used == 2


def test_length_ties_only_when_equal() -> None:
    """One character decides; only equal lengths tie."""
    tie = [Vote("q", "x", "y", "tie")]
    close = length_grid(GRID, {("q", "x"): 10, ("q", "y"): 11})
    equal = length_grid(GRID, {("q", "x"): 10, ("q", "y"): 10})
    shares = [
        agreement_with_votes(grid, tie, tie_margin=LENGTH_TIE_MARGIN).with_ties
        for grid in (close, equal)
    ]
    assert [share.value for share in shares if share is not None] == [0.0, 1.0]


def test_always_tie_agrees_only_with_ties() -> None:
    """It predicts every tie, no decided vote, and gets half without ties."""
    agreement = agreement_with_votes(always_tie_grid(GRID), VOTES)
    assert agreement.used == 2
    assert agreement.with_ties is not None
    assert agreement.without_ties is not None
    assert agreement.with_ties.value == 0.5
    assert agreement.without_ties.value == 0.5


def test_random_agreement_matches_simulated_guesses() -> None:
    """The exact expectation matches a long simulation of three-way guesses."""
    rng = np.random.default_rng(0)
    winners = np.array(["a", "b", "tie"])
    votes = [Vote("q", "x", "y", w) for w in rng.choice(winners, p=[0.6, 0.3, 0.1], size=30_000)]
    guesses = rng.choice(winners, size=len(votes))
    hits = np.mean([vote.winner == guess for vote, guess in zip(votes, guesses, strict=True)])
    agreement = random_agreement(votes)
    assert agreement.with_ties is not None
    assert agreement.without_ties is not None
    assert agreement.with_ties.value == pytest.approx(hits, abs=0.01)
    credit = [
        0.5 if guess == "tie" else float(guess == vote.winner)
        for vote, guess in zip(votes, guesses, strict=True)
        if vote.winner != "tie"
    ]
    assert agreement.without_ties.value == pytest.approx(np.mean(credit), abs=0.01)
    assert agreement.decisive == len(credit)


def test_random_agreement_without_votes_is_no_figure() -> None:
    """Without votes there is no expectation."""
    assert random_agreement([]).with_ties is None
    assert random_agreement([Vote("q", "x", "y", "tie")]).without_ties is None


def test_longer_responses_win_recorded_votes(
    mt_bench_votes: list[Vote], mt_bench_lengths: dict[tuple[str, str], float]
) -> None:
    """On real first-turn votes the longer response wins 68.9%."""
    keys = list(mt_bench_lengths)
    cells = ScoreGrid.from_columns([q for q, _ in keys], [c for _, c in keys], [0.0] * len(keys))
    grid = length_grid(cells, mt_bench_lengths)
    agreement = agreement_with_votes(grid, mt_bench_votes, tie_margin=LENGTH_TIE_MARGIN)
    assert agreement.without_ties is not None
    assert agreement.used == 1689
    assert agreement.without_ties.value == pytest.approx(0.689, abs=5e-4)
