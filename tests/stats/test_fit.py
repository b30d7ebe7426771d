"""The fit behind an estimate: closed forms, and explicit leave-one-out."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t

from rocketeval.stats.prediction_powered import (
    MOST_REACH,
    Fit,
    LabeledSample,
    fit_mean,
    satterthwaite,
    skewed_interval,
)


def sample_of(seed: int, labelled: int, queries: int, groups: int = 1) -> LabeledSample:
    """Return scores that follow labels loosely, with some labels and random strata."""
    rng = np.random.default_rng(seed)
    labels = rng.normal(6.0, 2.0, queries)
    scores = 2.0 + 0.4 * labels + rng.normal(size=queries)
    known = np.where(np.arange(queries) < labelled, labels, np.nan)
    strata = np.arange(queries) % groups
    return LabeledSample("a", tuple(map(str, range(queries))), scores, known, strata)


def without(sample: LabeledSample, row: int) -> LabeledSample:
    """Return the sample with one label less."""
    labels = sample.labels.copy()
    labels[row] = np.nan
    return replace(sample, labels=labels)


def test_labels_alone_are_the_textbook_mean() -> None:
    """Without scores and strata: the mean, its variance and degrees of freedom."""
    sample = sample_of(0, 25, 100)
    fit = fit_mean(sample, sample.strata, use_scores=False)
    known = sample.labels[:25]
    assert fit.value == pytest.approx(known.mean())
    assert fit.variance == pytest.approx(known.var(ddof=1) / 25)
    assert fit.freedom == pytest.approx(24)


def test_with_scores_it_is_the_regression_estimate() -> None:
    """Slope and value equal least squares at the mean of all scores."""
    sample = sample_of(1, 30, 200)
    fit = fit_mean(sample, sample.strata)
    slope, intercept = np.polyfit(sample.scores[:30], sample.labels[:30], 1)
    assert fit.slope == pytest.approx(slope)
    assert fit.value == pytest.approx(intercept + slope * sample.scores.mean())
    assert fit.freedom == pytest.approx(28)


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("use_scores", [True, False])
def test_variance_equals_the_jackknife(groups: int, use_scores: bool) -> None:
    """The part from sampling labels equals an explicit jackknife."""
    sample = sample_of(2, 36, 120, groups)
    fit = fit_mean(sample, sample.strata, use_scores=use_scores)
    moves = np.array(
        [
            fit.value - fit_mean(without(sample, row), sample.strata, use_scores=use_scores).value
            for row in range(36)
        ]
    )
    for stratum in range(groups):
        mine = moves[sample.strata[:36] == stratum]
        expected = (1 - 1 / len(mine)) * ((mine - mine.mean()) ** 2).sum()
        assert fit.within[stratum] == pytest.approx(expected)


def test_strata_are_weighted_by_size() -> None:
    """Many labels in a small stratum do not dominate the mean."""
    labels = np.full(100, np.nan)
    strata = np.repeat([0, 1], [20, 80])
    labels[:15], labels[20:25] = np.linspace(1, 3, 15), np.linspace(7, 9, 5)
    sample = LabeledSample("a", tuple(map(str, range(100))), np.zeros(100), labels, strata)
    fit = fit_mean(sample, strata)
    assert fit.value == pytest.approx(0.2 * 2 + 0.8 * 8)
    between = 0.2 * (2 - 6.8) ** 2 + 0.8 * (8 - 6.8) ** 2
    within = 0.04 * labels[:15].var(ddof=1) / 15 + 0.64 * labels[20:25].var(ddof=1) / 5
    assert fit.variance == pytest.approx(between / 100 + within)


def test_constant_scores_are_not_used() -> None:
    """Equal scores leave only the labels."""
    sample = replace(sample_of(3, 20, 50), scores=np.full(50, 5.0))
    fit, alone = (fit_mean(sample, sample.strata, use_scores=use) for use in (True, False))
    assert (fit.slope, fit.variance, fit.freedom) == (0.0, alone.variance, alone.freedom)


def symmetric(third_moment: float) -> Fit:
    """Mean 5, standard error 1, ten degrees of freedom."""
    return Fit(np.full(4, 5.0), 0.0, np.array([1.0]), 0.0, third_moment, 10.0)


def test_without_skewness_the_interval_is_students() -> None:
    """A symmetric estimate has Student's interval."""
    found = skewed_interval(symmetric(0.0), 0.95)
    assert found.high - 5.0 == pytest.approx(t.ppf(0.975, 10))
    assert 5.0 - found.low == pytest.approx(t.ppf(0.975, 10))


@pytest.mark.parametrize("skewness", [-0.2, 0.3])
def test_halls_polynomial_maps_the_longer_end_back(skewness: float) -> None:
    """At the longer end, Hall's cubic of the studentized error is Student's quantile."""
    found = skewed_interval(symmetric(skewness), 0.9)
    quantile = t.ppf(0.95, 10)

    def hall(end: float) -> float:
        x = 5.0 - end
        return x + skewness * x**2 / 3 + skewness**2 * x**3 / 27 + skewness / 6

    below, above = 5.0 - found.low, found.high - 5.0
    if skewness < 0:
        assert hall(found.low) == pytest.approx(quantile)
    else:
        assert hall(found.high) == pytest.approx(-quantile)
    assert min(below, above) == pytest.approx(quantile)
    assert quantile < max(below, above) < MOST_REACH * quantile


@pytest.mark.parametrize("skewness", [-3.0, -0.8, 0.8, 3.0])
def test_bounds_are_limited(skewness: float) -> None:
    """Past the cubic's turning point a bound stays within 1.5 times Student's."""
    found = skewed_interval(symmetric(skewness), 0.95)
    half = t.ppf(0.975, 10)
    near, far = sorted([5.0 - found.low, found.high - 5.0])
    assert near == pytest.approx(half)
    assert half < far <= MOST_REACH * half + 1e-9


def test_constant_labels_have_no_interval() -> None:
    """Equal labels give no interval instead of one without width."""
    found = skewed_interval(replace(symmetric(0.0), within=np.zeros(1)), 0.95)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


def test_satterthwaite_of_equal_parts_adds_up() -> None:
    """Equal variances add their freedom; a dominating one keeps its own."""
    assert satterthwaite(np.array([2.0, 2.0]), np.array([5.0, 5.0])) == pytest.approx(10.0)
    assert satterthwaite(np.array([9.0, 0.0]), np.array([4.0, 0.0])) == pytest.approx(4.0)


@pytest.mark.parametrize("score", [0.1, 3.3, 7.3])
def test_equal_scores_of_labeled_queries_give_no_slope(score: float) -> None:
    """Rounding error of the mean must not become a slope."""
    sample = sample_of(0, 12, 60)
    scores = np.where(sample.labelled, score, sample.scores)
    fit = fit_mean(replace(sample, scores=scores), sample.strata)
    alone = fit_mean(sample, sample.strata, use_scores=False)
    assert fit.slope == 0.0
    assert (fit.value, fit.variance, fit.freedom) == (alone.value, alone.variance, alone.freedom)
