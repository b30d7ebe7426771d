"""Agreement of the majority of judges with votes."""

from __future__ import annotations

import numpy as np

from rocketeval.audit.figures import agreement_with_votes
from rocketeval.audit.votes import majority_agreement
from rocketeval.grid import ScoreGrid
from rocketeval.records import Vote


def grid(*rows: tuple[float, float]) -> ScoreGrid:
    return ScoreGrid(tuple(f"q{n}" for n in range(len(rows))), ("x", "y"), np.array(rows))


def vote(query: int, winner: str) -> Vote:
    return Vote(f"q{query}", "x", "y", winner)


def test_one_judge_is_its_own_majority() -> None:
    """With a single judge the figures are those of its scores."""
    rng = np.random.default_rng(0)
    scores = grid(*rng.integers(1, 5, size=(40, 2)).astype(float).tolist())
    votes = [vote(n, "a" if n % 3 else "tie") for n in range(40)]
    assert majority_agreement([scores], votes) == agreement_with_votes(scores, votes)


def test_two_of_three_judges_decide() -> None:
    """Two judges beat one; one each is a tie; a judge without both scores is skipped."""
    judges = [
        grid((9.0, 1.0), (9.0, 1.0), (9.0, np.nan)),
        grid((9.0, 1.0), (1.0, 9.0), (1.0, 9.0)),
        grid((1.0, 9.0), (5.0, 5.0), (np.nan, 9.0)),
    ]
    right = [vote(0, "a"), vote(1, "tie"), vote(2, "b")]
    found = majority_agreement(judges, right)
    assert found.with_ties is not None
    assert (found.with_ties.value, found.used, found.decisive) == (1.0, 3, 2)
    wrong = majority_agreement(judges, [vote(0, "b"), vote(1, "b"), vote(2, "a")])
    assert wrong.with_ties is not None
    assert wrong.without_ties is not None
    assert wrong.with_ties.value == 0.0
    assert wrong.without_ties.value == 0.5 / 3


def test_votes_without_a_complete_judge_are_unusable() -> None:
    """Both scores must come from the same judge."""
    halves = [grid((9.0, np.nan)), grid((np.nan, 1.0))]
    found = majority_agreement(halves, [vote(0, "a"), vote(7, "a")])
    assert (found.with_ties, found.used, found.unusable) == (None, 0, 2)
