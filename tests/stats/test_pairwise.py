"""Win totals without pairs equal a plain double loop."""

from __future__ import annotations

import time

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.errors import ConfigError
from rocketeval.stats import bradley_terry as pairwise

Floats = NDArray[np.float64]


def plain_outcome(a: float, b: float, tie_margin: float) -> float:
    """Return win 1, tie 0.5, loss 0, by definition."""
    if abs(a - b) < tie_margin - 1e-9 or a == b:
        return 0.5
    return 1.0 if a > b else 0.0


def plain_win_totals(scores: Floats, tie_margin: float) -> Floats:
    """Return win totals by a double loop over candidates."""
    totals = np.zeros(scores.shape)
    for q, row in enumerate(scores):
        for i, a in enumerate(row):
            for j, b in enumerate(row):
                if i != j and not np.isnan(a) and not np.isnan(b):
                    totals[q, i] += plain_outcome(a, b, tie_margin)
    return totals


def some_scores(seed: int, queries: int, candidates: int, missing: float = 0.0) -> Floats:
    """Return scores on a coarse scale, with many ties and exact margins."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(10, 31, size=(queries, candidates)) / 10.0
    scores[rng.random(scores.shape) < missing] = np.nan
    return scores


@pytest.mark.parametrize("missing", [0.0, 0.3, 0.95])
@pytest.mark.parametrize("tie_margin", [0.0, 0.1, 0.25, 5.0])
def test_win_totals_equal_the_double_loop(tie_margin: float, missing: float) -> None:
    """Sorting and bisection count exactly the same as comparing every pair."""
    scores = some_scores(3, 40, 9, missing)
    fast = pairwise.win_totals(scores, tie_margin)
    np.testing.assert_array_equal(fast, plain_win_totals(scores, tie_margin))


def test_difference_of_exactly_the_margin_wins() -> None:
    """7.3 against 7.2 and 1.1 against 1.0 are wins at 0.1; 0.09 is a tie."""
    scores = np.array([[7.3, 7.2], [1.1, 1.0], [1.09, 1.0]])
    assert pairwise.win_totals(scores, 0.1).tolist() == [[1, 0], [1, 0], [0.5, 0.5]]
    assert pairwise.compare(scores[:, 0], scores[:, 1], 0.1).tolist() == [1, 1, 0]


def test_every_comparison_gives_one_win() -> None:
    """Totals add up to the number of pairs."""
    scores = some_scores(5, 60, 12, 0.4)
    met = pairwise.pair_counts(scores)
    assert pairwise.win_totals(scores, 0.1).sum() == np.triu(met).sum()


def test_pair_counts_count_shared_queries() -> None:
    """Two candidates meet if both have a score; the diagonal is zero."""
    scores = np.array([[1.0, 2.0, np.nan], [1.0, np.nan, np.nan], [1.0, 2.0, 3.0]])
    assert pairwise.pair_counts(scores).tolist() == [[0, 2, 1], [2, 0, 1], [1, 1, 0]]


@pytest.mark.parametrize("missing", [0.0, 0.5])
@pytest.mark.parametrize("tie_margin", [0.0, 0.1, 0.25])
def test_win_matrix_equals_the_double_loop(tie_margin: float, missing: float) -> None:
    """Every entry is the mean outcome over shared queries, to the last bit."""
    scores = some_scores(8, 30, 6, missing)
    expected = np.full((6, 6), np.nan)
    for i in range(6):
        for j in range(6):
            pairs = [(row[i], row[j]) for row in scores if not np.isnan(row[i] + row[j])]
            if i != j and pairs:
                outcomes = [plain_outcome(a, b, tie_margin) for a, b in pairs]
                expected[i, j] = sum(outcomes) / len(outcomes)
    np.testing.assert_array_equal(pairwise.win_matrix(scores, tie_margin), expected)


def test_win_matrix_has_the_share_of_each_pair() -> None:
    """Shares equal the double loop, mirror to one, and are NaN for pairs that never meet."""
    scores = some_scores(7, 30, 5, 0.3)
    scores[:, 4] = np.nan
    shares = pairwise.win_matrix(scores, 0.1)
    assert shares is not None
    both = [row for row in scores if not np.isnan(row[[0, 1]]).any()]
    expected = np.mean([plain_outcome(row[0], row[1], 0.1) for row in both])
    assert shares[0, 1] == pytest.approx(expected)
    np.testing.assert_allclose((shares + shares.T)[~np.isnan(shares)], 1.0)
    assert np.isnan(shares[4]).all()
    assert np.isnan(np.diag(shares)).all()


def test_win_matrix_is_none_for_many_candidates() -> None:
    """Above the limit the result is None."""
    assert pairwise.win_matrix(np.zeros((1, pairwise.MATRIX_CANDIDATES + 1)), 0.1) is None
    assert pairwise.win_matrix(np.zeros((1, pairwise.MATRIX_CANDIDATES)), 0.1) is not None


def test_a_million_cells_take_seconds_of_cpu_not_minutes() -> None:
    """500 million comparisons cost a sort: about 0.3 s of CPU, with slack."""
    scores = np.random.default_rng(0).normal(size=(1000, 1000))
    before = time.process_time()
    pairwise.win_totals(scores, 0.1)
    assert time.process_time() - before < 10.0


@pytest.mark.parametrize("tie_margin", [-0.1, float("nan"), float("inf")])
def test_invalid_margins_are_refused(tie_margin: float) -> None:
    """A negative or NaN margin is an error, not an empty ranking."""
    with pytest.raises(ConfigError, match="tie margin"):
        pairwise.win_totals(np.zeros((1, 2)), tie_margin)
