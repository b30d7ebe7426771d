"""Paired votes: the same figures as one by one, and paired differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketeval.audit.figures import (
    TIE,
    PairedVotes,
    VoteHits,
    agreement_with_votes,
    as_agreement,
    baseline_hits,
    find_paired_votes,
    guess_hits,
    hits,
    human_agreement,
    measure_votes,
)
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval, Vote
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


def unanimous(queries: int) -> PairedVotes:
    """Return one vote for c0 over c1 per query."""
    grid = grid_of(np.tile([7.0, 5.0], (queries, 1)))
    return find_paired_votes(grid, [Vote(f"q{n}", "c0", "c1", "a") for n in range(queries)])


def shares(paired: PairedVotes, *named: VoteHits) -> list[Interval]:
    """Return the figures of these sets, with ties and without."""
    found = measure_votes(paired, dict(enumerate(named))).values()
    sides = [side for each in found for side in (each.with_ties, each.without_ties)]
    return [side.value for side in sides if side is not None]


@pytest.mark.parametrize("queries", [6, 40])
def test_unanimous_votes_are_not_certain(queries: int) -> None:
    """If every vote agrees, or none, the interval is that of Clopper and Pearson."""
    paired = unanimous(queries)
    right = hits(paired, np.tile([7.0, 5.0], (queries, 1)), 0.1)
    wrong = hits(paired, np.tile([5.0, 7.0], (queries, 1)), 0.1)
    least = 0.025 ** (1.0 / queries)
    for found in shares(paired, right):
        assert (found.value, found.high) == (1.0, 1.0)
        assert found.low == pytest.approx(least)
    for found in shares(paired, wrong):
        assert (found.value, found.low) == (0.0, 0.0)
        assert found.high == pytest.approx(1.0 - least)
    for found in shares(paired, right - wrong):
        assert (found.value, found.high) == (1.0, 1.0)
        assert found.low == pytest.approx(2.0 * least - 1.0)


def test_lead_over_a_guess_has_the_bounds_of_the_share() -> None:
    """A guess is known before any vote, so only the judge's share is uncertain."""
    paired = unanimous(6)
    right = hits(paired, np.tile([7.0, 5.0], (6, 1)), 0.1)
    whole, decided = shares(paired, right - guess_hits(paired))
    least = 0.025 ** (1.0 / 6)
    assert (whole.value, decided.value) == (pytest.approx(2.0 / 3.0), 0.5)
    assert (whole.low, whole.high) == (pytest.approx(least - 1.0 / 3.0), whole.value)
    assert (decided.low, decided.high) == (pytest.approx(least - 0.5), decided.value)
    grid = grid_of(np.tile([7.0, 5.0], (6, 1)))
    tie = baseline_hits(paired, grid, grid, 0.1)[TIE]
    assert shares(paired, right - tie)[1].low == pytest.approx(least - 0.5)


def test_an_equal_lead_on_all_queries_is_not_significant_at_once() -> None:
    """Another judge may leave its ties later, so half a hit on six queries proves nothing."""
    for queries, significant in ((6, False), (40, True)):
        paired = unanimous(queries)
        right = hits(paired, np.tile([7.0, 5.0], (queries, 1)), 0.1)
        level = hits(paired, np.full((queries, 2), 5.0), 0.1)
        _, lead = shares(paired, right - level)
        assert lead.value == 0.5
        assert (lead.low > 0.0) == significant


def test_figures_known_before_any_vote_keep_no_width() -> None:
    """A guess, half a hit per tied score, and a set compared with itself have no interval."""
    paired = unanimous(8)
    right = hits(paired, np.tile([7.0, 5.0], (8, 1)), 0.1)
    level = hits(paired, np.full((8, 2), 5.0), 0.1)
    same = [*shares(paired, guess_hits(paired), right - right), shares(paired, level)[1]]
    assert len(same) == 5
    assert all(found.low == pytest.approx(found.high) for found in same)


def test_unanimous_votes_have_the_same_interval_everywhere() -> None:
    """Agreement, human-human agreement and their parts use the same bounds."""
    grid = grid_of(np.tile([7.0, 5.0], (6, 1)))
    votes = [Vote(f"q{n}", "c0", "c1", "a", voter) for n in range(6) for voter in ("x", "y")]
    agreed, people = agreement_with_votes(grid, votes), human_agreement(votes)
    assert people is not None
    figures = (agreed.with_ties, agreed.without_ties, people.with_ties, people.without_ties)
    lows = [figure.low for figure in figures if figure is not None]
    assert lows == [pytest.approx(0.025 ** (1.0 / 6))] * 4


def test_no_votes_give_no_figure() -> None:
    """The result is None, not an error."""
    grid = grid_of(np.ones((1, 2)))
    paired = find_paired_votes(grid, [])
    found = measure_votes(paired, {"judge": hits(paired, grid.scores, 0.1)})["judge"]
    assert (found.with_ties, found.without_ties) == (None, None)
