"""Anchor queries: their choice, and how well they predict."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.stats.anchors import choose_anchors, cross_validate, random_queries


def make_scores(seed: int = 0) -> NDArray[np.float64]:
    """Return scores of 12 candidates whose strength depends on the kind of query."""
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 4, size=300)
    strengths = rng.normal(size=(4, 12)) * 2.0
    return np.asarray(5.0 + strengths[kinds] + 0.4 * rng.normal(size=(300, 12)))


def test_anchors_are_distinct_rows_with_weights() -> None:
    """Weights are shares of the queries, and the choice is repeatable."""
    found = choose_anchors(make_scores(), 15)
    assert len(set(found.rows.tolist())) == 15
    assert found.weights.sum() == pytest.approx(1.0)
    assert choose_anchors(make_scores(), 15).rows.tolist() == found.rows.tolist()


def test_anchors_predict_left_out_candidates_better_than_random_queries() -> None:
    """Where queries have kinds, anchors cover them in proportion."""
    scores = make_scores()
    anchors, random = cross_validate(scores, 12), random_queries(scores, 12, 100)
    assert anchors.mean_error < 0.6 * random.mean_error
    assert anchors.spearman > random.spearman
