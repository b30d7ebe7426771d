"""Length bias: SciPy's coefficients within queries, and planted biases."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from rocketeval.audit.bias import length_bias
from rocketeval.grid import ScoreGrid
from rocketeval.records import Vote
from rocketeval.stats.bootstrap import interval_without_spread
from rocketeval.stats.correlation import spearman_by_row
from support.tables import tables

NAMES = ("a", "b", "c", "d", "e", "f")
IDS = tuple(f"q{row}" for row in range(200))


def grid(scores: np.ndarray) -> ScoreGrid:
    """Return scores under plain names."""
    return ScoreGrid(IDS[: len(scores)], NAMES[: scores.shape[1]], scores)


def made(seed: int, per_length: float) -> tuple[ScoreGrid, ScoreGrid, np.ndarray]:
    """Return scores that follow labels and length, with lengths that follow labels somewhat."""
    rng = np.random.default_rng(seed)
    gold, noise, other = rng.normal(size=(3, 200, 6))
    lengths = 0.5 * gold + noise
    return grid(gold + per_length * lengths + 0.5 * other), grid(lengths), gold


@settings(deadline=None)
@given(tables((2, 8), (1, 6)))
def test_row_correlations_equal_scipy(table: np.ndarray) -> None:
    """Ties share ranks, missing cells are left out, and constant rows are NaN."""
    half = len(table) // 2
    one, two = table[:half], table[half : 2 * half]
    for found, x, y in zip(spearman_by_row(one, two), one, two, strict=True):
        both = ~np.isnan(x - y)
        x, y = x[both], y[both]
        if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
            assert np.isnan(found)
        else:
            assert found == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)


def test_planted_length_bias_is_found_beyond_labels() -> None:
    """Labels follow length too; only the difference is excess."""
    fair = length_bias(*made(1, 0.0), bootstrap=300)
    assert fair.gold is not None
    assert fair.gold.low > 0.2
    assert fair.excess is not None
    assert fair.excess.high < 0.05
    biased = length_bias(*made(1, 1.0), bootstrap=300)
    assert biased.excess is not None
    assert biased.excess.low > 0.2
    assert (biased.queries, biased.gold_queries, biased.left_out) == (200, 200, 0)
    assert biased.scores is not None
    assert biased.gold is not None
    assert biased.scores_with_gold == biased.scores
    assert biased.excess.value == pytest.approx(biased.scores.value - biased.gold.value)


def test_same_correlation_on_every_query_has_an_exact_interval() -> None:
    """Resamples do not vary, but other queries may differ."""
    lengths = np.tile([1.0, 2, 3], (8, 1))
    found = length_bias(grid(lengths), grid(lengths), -lengths, bootstrap=50)
    assert found.scores == interval_without_spread(1.0, 8, 0.95, (-1.0, 1.0))
    assert found.scores_with_gold == found.scores
    assert found.gold == interval_without_spread(-1.0, 8, 0.95, (-1.0, 1.0))
    assert found.excess == interval_without_spread(2.0, 8, 0.95, (-2.0, 2.0))


def test_without_reference_data_only_the_plain_correlation_is_given() -> None:
    """The other figures are None; unusable queries are counted."""
    scores = np.array([[1.0, 2, 3], [1, 1, 1], [1, np.nan, 2], [3, 2, 1]])
    found = length_bias(grid(scores), grid(np.tile([1.0, 2, 3], (4, 1))), bootstrap=10)
    assert found.scores is not None
    assert found.scores.value == pytest.approx(0.0)
    assert (found.queries, found.left_out, found.gold_queries, found.lost) == (2, 2, 0, 0)
    assert (found.gold, found.scores_with_gold, found.excess) == (None, None, None)
    assert found.lost_to_longer is None


def test_labels_and_scores_use_the_same_responses() -> None:
    """The excess uses only responses with both a label and a score."""
    scores = np.array([[1.0, 2, 3, 9], [1, 2, 3, np.nan]])
    gold = np.array([[1.0, 3, 2, np.nan], [3, 1, 2, 9]])
    lengths = np.array([[1.0, 2, 3, 0], [1, 2, 3, 0]])
    found = length_bias(grid(scores), grid(lengths), gold, bootstrap=10)
    assert found.gold is not None
    assert found.gold.value == pytest.approx((0.5 - 0.5) / 2)
    assert found.scores_with_gold is not None
    assert found.scores_with_gold.value == pytest.approx(1.0)
    assert found.excess is not None
    assert found.excess.value == pytest.approx((1 - 0.5 + 1 + 0.5) / 2)


def test_lost_votes_disagree_with_the_scores() -> None:
    """Won votes, ties, equal scores and equal lengths do not count."""
    scores = grid(np.array([[3.0, 2, 1, 1]]))
    lengths = grid(np.array([[10.0, 20, 5, 20]]))
    votes = [
        Vote("q0", "a", "b", "b"),
        Vote("q0", "c", "a", "b"),
        Vote("q0", "c", "a", "b"),
        Vote("q0", "a", "c", "b"),
        Vote("q0", "b", "c", "b"),
        Vote("q0", "a", "b", "tie"),
        Vote("q0", "c", "d", "b"),
        Vote("q0", "b", "d", "b"),
        Vote("q0", "nobody", "d", "a"),
    ]
    found = length_bias(scores, lengths, votes=votes, bootstrap=10)
    assert found.lost == 3
    assert found.lost_to_longer is not None
    assert found.lost_to_longer.value == pytest.approx(1 / 3)
