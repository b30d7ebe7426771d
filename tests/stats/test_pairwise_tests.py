"""All pairs of candidates are tested with family-wise error control."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import rank
from rocketeval.stats import permutation
from rocketeval.stats.permutation import pairwise_tests, sign_flip_p


def noisy(queries: int, effects: list[float], seed: int) -> np.ndarray:
    """Return scores: a query's ease, a candidate's effect, and noise."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(queries, 1)) + effects + rng.normal(size=(queries, len(effects)))


def test_twenty_equal_candidates_are_one_group() -> None:
    """At most about 5% of rankings of equal candidates show a significant pair, not 91%."""
    wrong = 0
    for seed in range(40):
        scores = noisy(80, [0.0] * 20, seed)
        grid = ScoreGrid(
            tuple(f"q{row}" for row in range(80)), tuple(f"c{row:02}" for row in range(20)), scores
        )
        ranking = rank(grid, bootstrap=50, seed=seed)
        wrong += any((row.rank_low, row.rank_high) != (1, 20) for row in ranking.rows)
        assert (len({row.group for row in ranking.rows}) > 1) <= (ranking.significant_pairs > 0)
    assert wrong <= 6


def test_clear_difference_is_significant() -> None:
    """One much better candidate is significantly better than each of the others, which are tied."""
    tests = pairwise_tests(noisy(60, [2.0, 0.0, 0.0, 0.0], 1), level=0.95)
    assert tests.better().tolist() == [[False, True, True, True]] + [[False] * 4] * 3
    low, high = tests.rank_bounds()
    assert (low.tolist(), high.tolist()) == ([1, 2, 2, 2], [1, 4, 4, 4])


def test_unadjusted_p_value_agrees_with_the_sign_flip_test() -> None:
    """Without adjustment a pair has the p-value of its own sign-flip test, up to flips drawn."""
    scores = noisy(40, [0.4, 0.0, 0.1], 3)
    tests = pairwise_tests(scores, level=0.95, adjusted=False, flips=20_000)
    alone = sign_flip_p(scores[:, 0] - scores[:, 1])
    assert tests.p_values[0, 1] == pytest.approx(alone, abs=0.02)
    adjusted = pairwise_tests(scores, level=0.95, flips=20_000)
    assert (adjusted.p_values >= tests.p_values - 1e-12).all()


def test_repeated_rows_of_a_cluster_prove_nothing() -> None:
    """Each query four times, as one cluster, gives the p-values of each query once."""
    scores = noisy(20, [0.5, 0.0, 0.2], 5)
    once = pairwise_tests(scores, level=0.95)
    clusters = np.repeat(np.arange(20), 4)
    again = pairwise_tests(np.repeat(scores, 4, axis=0), level=0.95, clusters=clusters)
    assert again.p_values == pytest.approx(once.p_values)
    naive = pairwise_tests(np.repeat(scores, 4, axis=0), level=0.95)
    assert naive.p_values[0, 1] < once.p_values[0, 1]


def test_missing_scores_leave_a_pair_its_shared_queries() -> None:
    """A pair is compared on what both have; a pair without a shared query is never significant."""
    scores = noisy(30, [0.0, 0.0, 3.0], 7)
    scores[:15, 0], scores[15:, 1] = np.nan, np.nan
    tests = pairwise_tests(scores, level=0.95)
    assert np.isnan(tests.differences[0, 1])
    assert tests.p_values[0, 1] == 1.0
    assert tests.differences[2, 0] == pytest.approx((scores[15:, 2] - scores[15:, 0]).mean())
    assert tests.better()[2].tolist() == [True, True, False]


def test_blocks_of_flips_do_not_sum_the_clusters_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the blocks, p-values are the same, and each pair is summed a few times at most."""
    scores = noisy(40, [0.5, 0.4, 0.2, 0.0, 0.0], 9)
    scores[3, 1] = np.nan
    places = np.random.default_rng(0).permutation(40) // 2
    settings = [
        {"clusters": clusters, "adjusted": adjusted}
        for clusters in (None, places)
        for adjusted in (True, False)
    ]
    whole = [pairwise_tests(scores, level=0.95, **each).p_values for each in settings]
    summed = []
    cluster_sums = permutation._Pairs._cluster_sums

    def counted(self: permutation._Pairs, block: np.ndarray) -> np.ndarray:
        sums = cluster_sums(self, block)
        summed.append(sums.shape[1])
        return sums

    monkeypatch.setattr(permutation._Pairs, "_cluster_sums", counted)
    monkeypatch.setattr(permutation, "_BLOCK_CELLS", 120)
    parts = [pairwise_tests(scores, level=0.95, **each).p_values for each in settings]
    assert np.array(parts) == pytest.approx(np.array(whole))
    assert sum(summed) <= 3 * 10 * len(settings)


def test_rounding_errors_are_no_differences() -> None:
    """Weights such as 0.1 and 0.2 add up to almost the same; their last bits prove nothing."""
    scores = np.tile([5.5 + 1e-15, 5.5, 3.1], (12, 1))
    tests = pairwise_tests(scores, level=0.95)
    assert tests.p_values[0, 1] == 1.0
    assert tests.better().tolist() == [[False, False, True]] * 2 + [[False] * 3]
    scores[3, 0] = np.nan
    assert pairwise_tests(scores, level=0.95).p_values[0, 1] == 1.0
    # Many queries do not add up to a difference; a small scale has small ones that are real.
    many = np.tile([0.5 + 1e-7, 0.5, 0.5 - 1e-5], (1000, 1))
    assert pairwise_tests(many, level=0.95).p_values[0].tolist() == [1.0, 1.0, 0.0005]
    clusters = np.arange(1000) // 20
    assert pairwise_tests(many, level=0.95, clusters=clusters).p_values[0, 1] == 1.0


def test_five_queries_are_too_few() -> None:
    """Five queries never give a significant difference at 95%, however large."""
    scores = np.array([[9.0, 1.0]] * 5) + np.arange(5.0)[:, None] * [[0.1, 0.0]]
    assert not pairwise_tests(scores, level=0.95).better().any()
