"""Paired votes: the same figures as one by one, and paired differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketeval.audit.figures import (
    agreement_with_votes,
    as_agreement,
    find_paired_votes,
    hits,
    measure_votes,
)
from rocketeval.grid import ScoreGrid
from rocketeval.records import Vote
from support.tables import tables

NAMES = st.sampled_from(["q0", "q1", "q2", "q3", "q9"])
VOTES = st.lists(
    st.builds(
        Vote,
        NAMES,
        st.sampled_from(["c0", "c1", "c9"]),
        st.sampled_from(["c1", "c2"]),
        st.sampled_from(["a", "b", "tie"]),
    ),
    max_size=30,
)


def grid_of(scores: np.ndarray) -> ScoreGrid:
    queries, candidates = scores.shape
    ids = tuple(f"q{row}" for row in range(queries))
    return ScoreGrid(ids, tuple(f"c{column}" for column in range(candidates)), scores)


@settings(deadline=None, max_examples=60)
@given(tables((1, 4), (3, 3)), VOTES)
def test_batch_figures_equal_single_figures(scores: np.ndarray, votes: list[Vote]) -> None:
    """Values and counts equal `agreement_with_votes`, with missing and unknown cells."""
    grid = grid_of(scores)
    paired = find_paired_votes(grid, votes)
    measured = measure_votes(paired, {"judge": hits(paired, grid.scores, 0.5)}, bootstrap=5)
    found = as_agreement(measured["judge"], paired.given)
    alone = agreement_with_votes(grid, votes, tie_margin=0.5, bootstrap=5)
    assert (found.votes, found.used, found.decisive) == (alone.votes, alone.used, alone.decisive)
    assert found.unusable == alone.unusable
    for ours, theirs in (
        (found.with_ties, alone.with_ties),
        (found.without_ties, alone.without_ties),
    ):
        assert (ours is None) == (theirs is None)
        if ours is not None and theirs is not None:
            assert ours.value == pytest.approx(theirs.value)


def test_intervals_are_the_same_where_nothing_is_missing() -> None:
    """The resamples are those of `agreement_with_votes`."""
    rng = np.random.default_rng(0)
    grid = grid_of(rng.normal(size=(20, 3)))
    votes = [Vote(f"q{n % 20}", "c0", "c1", "a" if n % 3 else "b") for n in range(60)]
    paired = find_paired_votes(grid, votes)
    measured = measure_votes(paired, {"judge": hits(paired, grid.scores, 0.1)}, bootstrap=200)
    found = as_agreement(measured["judge"], paired.given)
    alone = agreement_with_votes(grid, votes, tie_margin=0.1, bootstrap=200)
    assert found.with_ties is not None
    assert alone.with_ties is not None
    assert found.with_ties.low == pytest.approx(alone.with_ties.low)
    assert found.with_ties.high == pytest.approx(alone.with_ties.high)


def test_difference_counts_only_votes_that_both_can_predict() -> None:
    """A vote without a score on one side does not count."""
    grid = grid_of(np.array([[2.0, 1.0], [2.0, 1.0]]))
    other = np.array([[1.0, 2.0], [np.nan, 2.0]])
    votes = [Vote("q0", "c0", "c1", "a"), Vote("q1", "c0", "c1", "b")]
    paired = find_paired_votes(grid, votes)
    less = hits(paired, grid.scores, 0.1) - hits(paired, other, 0.1)
    found = measure_votes(paired, {"other": less}, bootstrap=5)
    whole = found["other"].with_ties
    assert whole is not None
    assert (whole.value.value, whole.gold, whole.queries) == (1.0, 1, 1)
    assert math.isnan(whole.value.low)
    assert math.isnan(whole.spread)


def test_spread_matches_the_bootstrap_standard_error() -> None:
    """Spread over the root of the queries is the bootstrap standard error."""
    rng = np.random.default_rng(1)
    grid = grid_of(rng.normal(size=(200, 2)))
    votes = [
        Vote(f"q{query}", "c0", "c1", str(rng.choice(["a", "b", "tie"])))  # type: ignore[arg-type]
        for query in range(200)
        for _ in range(int(rng.integers(1, 8)))
    ]
    paired = find_paired_votes(grid, votes)
    own = hits(paired, grid.scores, 0.3)
    found = measure_votes(paired, {0: own}, bootstrap=2000)[0].with_ties
    assert found is not None
    error = found.spread / math.sqrt(found.queries)
    assert found.value.high - found.value.low == pytest.approx(2 * 1.96 * error, rel=0.1)


def test_no_votes_give_no_figure() -> None:
    """The result is None, not an error."""
    grid = grid_of(np.ones((1, 2)))
    paired = find_paired_votes(grid, [])
    found = measure_votes(paired, {"judge": hits(paired, grid.scores, 0.1)})["judge"]
    assert (found.with_ties, found.without_ties) == (None, None)
