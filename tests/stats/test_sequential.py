"""Group-sequential bounds keep their error rate, and means agree with plain formulas."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from rocketeval.stats.sequential import (
    Bounds,
    column_means,
    normal_statistics,
    paired_means,
    plan_looks,
    t_bound,
)


def test_looks_grow_and_end_with_all_queries() -> None:
    """Looks grow by a quarter, the last one has all queries, and few queries have one look."""
    looks = plan_looks(1000)
    assert looks[0] == 30
    assert looks[-1] == 1000
    assert all(1.05 < later / earlier < 1.4 for earlier, later in pairwise(looks))
    assert plan_looks(12) == (12,)


@pytest.mark.parametrize("shape", [0.0, 0.45, 0.5])
def test_bounds_are_crossed_as_often_as_stated(shape: float) -> None:
    """Simulated normal sums cross the bounds with the stated probability."""
    bounds = Bounds(plan_looks(400), shape)
    steps = np.sqrt(np.diff(np.r_[0, bounds.looks]))
    rng = np.random.default_rng(0)
    sums = np.cumsum(rng.normal(size=(100_000, len(steps))) * steps, axis=1)
    normal = sums / np.sqrt(bounds.looks)
    for error in (0.05, 0.005):
        limits = [bounds.at(look, error) for look in range(len(steps))]
        crossed = (normal >= limits).any(axis=1).mean()
        assert crossed == pytest.approx(error, rel=0.12)


def test_p_values_invert_the_bounds() -> None:
    """A statistic on the bound of an error has that error as its p-value."""
    bounds = Bounds(plan_looks(200))
    for look in (0, 4):
        limit = np.array([bounds.at(look, 0.01)])
        assert bounds.p_value(limit, look) == pytest.approx(0.01, rel=1e-3)


def test_one_look_is_a_usual_test() -> None:
    """With a single look the bound is the normal quantile, and nothing is widened."""
    bounds = Bounds((80,))
    assert bounds.at(0, 0.025) == pytest.approx(1.96, abs=0.005)
    assert bounds.widening(0, 0.95) == pytest.approx(1.0, abs=0.005)


def test_pairs_agree_with_scipy_and_with_gaps() -> None:
    """Complete grids and grids with gaps give the t statistics of paired tests."""
    rng = np.random.default_rng(1)
    scores = rng.normal(size=(40, 4)) + np.array([0.0, 0.2, 0.4, 0.0])
    numbers = np.arange(40)
    whole = paired_means(scores, numbers)
    expected = stats.ttest_rel(scores[:, 2], scores[:, 0]).statistic
    assert whole.values[2, 0] / whole.errors[2, 0] == pytest.approx(expected)
    gaps = scores.copy()
    gaps[3, 1] = np.nan
    found = paired_means(gaps, numbers)
    for name in ("values", "errors", "tilts", "units"):
        own, other = getattr(found, name)[2, 0], getattr(whole, name)[2, 0]
        assert own == pytest.approx(other)
    assert found.units[1, 0] == 39


def test_clusters_count_once() -> None:
    """Two equal turns per conversation are as much evidence as one."""
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(30, 3))
    twice = paired_means(np.repeat(scores, 2, axis=0), np.repeat(np.arange(30), 2))
    once = paired_means(scores, np.arange(30))
    assert twice.errors == pytest.approx(once.errors)
    assert twice.tilts == pytest.approx(once.tilts)


def test_a_long_tail_toward_zero_lowers_a_statistic() -> None:
    """Skewness moves statistics toward zero only, and widens the side of the tail."""
    rng = np.random.default_rng(3)
    losses = 1.0 - rng.exponential(size=(50, 1)) + 0.3
    means = column_means(losses, np.arange(50))
    plain = means.values / means.errors
    assert 0.0 < means.statistics()[0] < plain[0]
    low, high = means.interval(0, 1.96)
    assert means.values[0] - low > high - means.values[0]
    mirrored = column_means(-losses, np.arange(50))
    assert mirrored.statistics()[0] == pytest.approx(-means.statistics()[0])


def test_interval_ends_are_on_the_bound() -> None:
    """A mean minus the end of its interval is just as significant as the bound."""
    rng = np.random.default_rng(4)
    values = rng.exponential(size=(60, 1))
    means = column_means(values, np.arange(60))
    low, _ = means.interval(0, 2.5)
    moved = column_means(values - low, np.arange(60))
    assert moved.statistics()[0] == pytest.approx(t_bound(2.5, 59), rel=1e-6)
    assert normal_statistics(moved.statistics(), 59) == pytest.approx(2.5, rel=1e-6)
