"""Samples of a target, from a grid and labels."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Label
from rocketeval.scoring.learning import label_cells
from rocketeval.stats.prediction_powered import LabelTarget, samples

NAN = float("nan")
GRID = ScoreGrid(
    ("q1", "q2", "q3", "q4"),
    ("a", "b", "c"),
    np.array([[1.0, 2.0, 3.0], [4.0, 5.0, NAN], [7.0, NAN, 9.0], [6.0, 8.0, 5.0]]),
)
LABELS = [
    Label("q1", "a", 2.0),
    Label("q1", "a", 4.0, labeler="other"),
    Label("q1", "b", 5.0),
    Label("q2", "a", 6.0),
    Label("q9", "a", 1.0),
    Label("q1", "z", 1.0),
]


def test_one_candidate_uses_all_its_scores() -> None:
    """Queries without its score are left out, regardless of other candidates."""
    cells, _ = label_cells(GRID, LABELS)
    (sample,) = samples(GRID, cells, LabelTarget(("b",)))
    assert sample.query_ids == ("q1", "q2", "q4")
    assert sample.labelled.tolist() == [True, False, False]


def test_difference_needs_both_candidates() -> None:
    """Scores and labels are differences, on queries where both are known."""
    cells, _ = label_cells(GRID, LABELS)
    (sample,) = samples(GRID, cells, LabelTarget(("a",), against="b"))
    assert sample.scores.tolist() == [-1.0, -1.0, -2.0]
    assert sample.labels[0] == -2.0
    assert sample.labelled.tolist() == [True, False, False]


def test_several_candidates_share_queries_and_strata() -> None:
    """All are sampled on common queries, in strata of their mean score."""
    cells, _ = label_cells(GRID, LABELS)
    first, second = samples(GRID, cells, LabelTarget(("a", "b"), strata=2))
    assert first.query_ids == second.query_ids == ("q1", "q2", "q4")
    assert first.strata.tolist() == second.strata.tolist() == [0, 0, 1]


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (LabelTarget(("x",)), "no candidate 'x'"),
        (LabelTarget(()), "Invalid candidates"),
        (LabelTarget(("a", "a")), "'a', 'a'"),
        (LabelTarget(("a",), against="a"), "'a', 'a'"),
        (LabelTarget(("a", "b"), against="c"), "2 candidates .* 'c'"),
        (LabelTarget(("a",), strata=0), "strata: 0"),
    ],
)
def test_invalid_targets_are_refused(target: LabelTarget, words: str) -> None:
    """Each mistake in a target is named."""
    with pytest.raises(ConfigError, match=words):
        samples(GRID, np.full((4, 3), NAN), target)


def test_no_shared_score_is_an_error() -> None:
    """A target without a common query raises an error."""
    grid = ScoreGrid(("q1", "q2"), ("a", "b"), np.array([[1.0, NAN], [NAN, 2.0]]))
    with pytest.raises(ConfigError, match="No query has a score for 'a', 'b'"):
        samples(grid, np.full((2, 2), NAN), LabelTarget(("a",), against="b"))
