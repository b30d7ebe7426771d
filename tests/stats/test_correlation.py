"""Candidate-level correlation: SciPy's values, with reasons for few candidates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from rocketeval.errors import BenchmarkError
from rocketeval.records import Rating
from rocketeval.stats.correlation import correlate, ranks
from support.tables import tables


def ratings(**values: float) -> list[Rating]:
    """Return ratings by candidate."""
    return [Rating(candidate, value) for candidate, value in values.items()]


def noisy_pair(seed: int, n: int, noise: float) -> tuple[dict[str, float], list[Rating]]:
    """Return two noisy views of the same n skills."""
    rng = np.random.default_rng(seed)
    skill = rng.normal(size=n)
    ours = {f"c{i}": float(v) for i, v in enumerate(skill + noise * rng.normal(size=n))}
    theirs = [Rating(f"c{i}", float(v)) for i, v in enumerate(skill + noise * rng.normal(size=n))]
    return ours, theirs


def test_coefficients_equal_scipy() -> None:
    """Spearman and Kendall equal SciPy's, ties included."""
    ours = {"a": 1.0, "b": 2.0, "c": 2.0, "d": 5.0, "e": 4.0}
    theirs = ratings(a=10, b=30, c=20, d=40, e=40)
    found = correlate(ours, theirs)
    x, y = list(ours.values()), [rating.value for rating in theirs]
    assert found.spearman is not None
    assert found.kendall is not None
    assert found.spearman.value == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found.kendall.value == pytest.approx(stats.kendalltau(x, y).statistic)
    np.testing.assert_array_equal(ranks(np.array(x)), stats.rankdata(x))


@settings(deadline=None, max_examples=50)
@given(tables((2, 2), (3, 12)))
def test_coefficients_equal_scipy_with_ties_and_gaps(table: np.ndarray) -> None:
    """Equal to nine digits, on candidates with both figures."""
    ours = {f"c{place}": value for place, value in enumerate(table[0])}
    theirs = [Rating(f"c{place}", v) for place, v in enumerate(table[1]) if not math.isnan(v)]
    x, y = table[:, ~np.isnan(table).any(axis=0)]
    found = correlate(ours, theirs)
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        assert (found.spearman, found.kendall) == (None, None)
        assert found.reason is not None
        return
    assert found.spearman is not None
    assert found.kendall is not None
    assert found.n == len(x)
    assert found.spearman.value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    assert found.kendall.value == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-9)
    assert found.kendall.p_value == pytest.approx(stats.kendalltau(x, y).pvalue, abs=1e-9)


def test_two_candidates_have_no_coefficient() -> None:
    """Below three there is a reason instead of a coefficient."""
    found = correlate({"a": 1.0, "b": 2.0}, ratings(a=1, b=2))
    assert (found.spearman, found.kendall, found.n) == (None, None, 2)
    assert found.reason == "only 2 candidates have both figures; 3 are needed"


def test_perfect_order_of_four_has_an_exact_p_value() -> None:
    """Two of 24 orders are as extreme: p = 1/12, and there is no interval."""
    found = correlate({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}, ratings(a=5, b=6, c=7, d=8))
    assert found.spearman is not None
    assert found.kendall is not None
    assert found.spearman.value == pytest.approx(1.0)
    assert found.spearman.p_value == pytest.approx(2 / 24)
    assert found.kendall.p_value == pytest.approx(2 / 24)
    assert found.spearman.interval is None
    assert found.kendall.interval is None


def test_constant_figures_give_a_reason() -> None:
    """A constant side has no order to compare."""
    found = correlate({"a": 1.0, "b": 1.0, "c": 1.0}, ratings(a=1, b=2, c=3))
    assert found.spearman is None
    assert found.reason == "one of the figures is equal for all 3 candidates"


def test_unmatched_candidates_are_named() -> None:
    """Candidates without a rating or a finite score are listed; unused ratings are not."""
    ours = {"d": math.nan, "a": 1.0, "b": 2.0, "c": 3.0, "e": 4.0}
    found = correlate(ours, ratings(a=1, b=2, c=3, d=4, unrelated=5))
    assert found.n == 3
    assert found.unmatched == ("d", "e")


def test_contradictory_ratings_are_refused() -> None:
    """One candidate with two different ratings is an error."""
    with pytest.raises(BenchmarkError, match="'a' has two ratings: 1 and 2"):
        correlate({"a": 1.0}, [Rating("a", 1), Rating("a", 2)])


def test_p_values_are_uniform_under_chance() -> None:
    """Unrelated orders of twelve are significant about one time in twenty."""
    calls = 0
    for seed in range(60):
        ours, _ = noisy_pair(seed, 12, 1.0)
        _, theirs = noisy_pair(1000 + seed, 12, 1.0)
        found = correlate(ours, theirs, seed=seed)
        assert found.spearman is not None
        calls += found.spearman.p_value < 0.05
    assert calls <= 8


def test_intervals_cover_the_true_correlation() -> None:
    """Over 200 samples of twenty candidates both intervals cover 90-99% of the time."""
    pearson = 1 / (1 + 0.6**2)
    true_spearman = 6 / math.pi * math.asin(pearson / 2)
    true_kendall = 2 / math.pi * math.asin(pearson)
    hits = np.zeros(2)
    for seed in range(200):
        found = correlate(*noisy_pair(seed, 20, 0.6))
        for place, (figure, truth) in enumerate(
            [(found.spearman, true_spearman), (found.kendall, true_kendall)]
        ):
            assert figure is not None
            assert figure.interval is not None
            hits[place] += figure.interval.low <= truth <= figure.interval.high
    assert ((hits / 200 >= 0.90) & (hits / 200 <= 0.99)).all(), hits / 200
