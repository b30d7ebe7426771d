"""Prediction-powered estimates: the published formulas, and coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import t

from rocketeval.errors import BenchmarkError
from rocketeval.stats.prediction_powered import Estimate, LabeledSample, estimate, make_strata


def golden() -> tuple[np.ndarray, np.ndarray]:
    """Return 260 labels and scores with correlation 0.7, used for the ppi-python figures below."""
    rng = np.random.default_rng(7)
    z = rng.normal(size=260)
    scores = 5 + 1.3 * (0.7 * z + np.sqrt(0.51) * rng.normal(size=260))
    return z + 6, scores


def sample_of(labels: np.ndarray, scores: np.ndarray, labelled: int) -> LabeledSample:
    """Return a sample with the first queries labeled, in one stratum."""
    known = np.where(np.arange(len(labels)) < labelled, labels, np.nan)
    names = tuple(map(str, range(len(labels))))
    return LabeledSample("a", names, scores, known, np.zeros(len(labels), np.int64))


def skewed(rng: np.random.Generator, queries: int, rho: float) -> tuple[np.ndarray, np.ndarray]:
    """Return labels from 1 to 10 that pile up at 10 (skewness -1.2), and scores for them."""
    z = rng.normal(size=queries)
    w = rho * z + math.sqrt(1 - rho**2) * rng.normal(size=queries)
    labels = np.clip(np.round(8.8 + 2.6 * z - 0.5 * z * z), 1, 10)
    return labels, 1 + 9 / (1 + np.exp(-(1.5 + 1.2 * w)))


def covers(found: Estimate, truth: float) -> tuple[bool, bool]:
    """Return whether the intervals with scores and from labels alone cover the truth."""
    both = (found.with_scores, found.labels_only)
    first, second = (interval.low <= truth <= interval.high for interval in both)
    return first, second


def test_the_estimate_is_ppi_with_our_weight() -> None:
    """ppi-python 0.2.3 with our weight gives the same value and nearly the same interval."""
    labels, scores = golden()
    found = estimate(sample_of(labels, scores, 60))
    assert found.weight == pytest.approx(0.4133136492467487)
    assert found.with_scores.value == pytest.approx(5.74116949899369)
    width = found.with_scores.high - found.with_scores.low
    theirs = 5.9265839521276655 - 5.555755045859715
    assert theirs < width < 1.07 * theirs


def test_the_weight_is_power_tuned() -> None:
    """No other weight has a smaller variance, by the published formula."""
    labels, scores = golden()
    n, others = 60, 200
    best = estimate(sample_of(labels, scores, n)).weight
    # The tuned weight of the formula with one variance of scores for both parts.
    spread = scores[:n].var()

    def variance(weight: float) -> float:
        return float(np.var(labels[:n] - weight * scores[:n])) / n + weight**2 * spread / others

    assert variance(best) < min(variance(best - 0.01), variance(best + 0.01))


def test_ppi_python_agrees_if_installed() -> None:
    """The same against ppi-python itself, with its own weight for many labels."""
    ppi = pytest.importorskip("ppi_py", reason="ppi-python is not installed")
    rng = np.random.default_rng(3)
    labels, scores = skewed(rng, 4000, 0.7)
    found = estimate(sample_of(labels, scores, 1500))
    parts = labels[:1500], scores[:1500], scores[1500:]
    theirs = float(np.ravel(ppi.ppi_mean_pointestimate(*parts, lam=found.weight))[0])
    assert found.with_scores.value == pytest.approx(theirs)
    low, high = (float(np.ravel(x)[0]) for x in ppi.ppi_mean_ci(*parts, alpha=0.05))
    assert found.with_scores.low == pytest.approx(low, abs=0.03)
    assert found.with_scores.high == pytest.approx(high, abs=0.03)


def test_biased_judge_does_not_bias_the_estimate() -> None:
    """Scores that are two points too high give the same estimate and interval."""
    labels, scores = golden()
    one, other = (estimate(sample_of(labels, scores + bias, 60)) for bias in (0.0, 2.0))
    assert one.with_scores.value == pytest.approx(other.with_scores.value)
    assert one.with_scores.low == pytest.approx(other.with_scores.low)


def test_good_judge_increases_effective_labels() -> None:
    """At correlation 0.95 thirty labels equal many more; at 0 hardly fewer."""
    rng = np.random.default_rng(5)
    z = rng.normal(size=500)
    good = estimate(sample_of(z, 0.95 * z + 0.31 * rng.normal(size=500), 30))
    useless = estimate(sample_of(z, rng.normal(size=500), 30))
    assert good.effective_labels > 90
    assert good.width_ratio < 0.6
    assert 22 < useless.effective_labels < 34
    assert good.effective_labels == pytest.approx(30 / good.width_ratio**2)


@pytest.mark.parametrize(("labelled", "rho"), [(15, 0.3), (15, 0.95), (40, 0.7)])
def test_intervals_cover_nominally(labelled: int, rho: float) -> None:
    """On skewed labels both intervals cover 95% of the time, or slightly more."""
    rng = np.random.default_rng(labelled)
    truth = float(skewed(rng, 400_000, rho)[0].mean())
    hits = np.array(
        [
            covers(estimate(sample_of(*skewed(rng, 300, rho), labelled), bounds=(1, 10)), truth)
            for _ in range(500)
        ]
    )
    assert (hits.mean(axis=0) > 0.92).all()
    assert (hits.mean(axis=0) < 0.985).all()


@pytest.mark.parametrize("queries", [12, 20, 40])
def test_one_outlier_does_not_move_a_bound_far(queries: int) -> None:
    """Eleven differences of +2 and +3 and one of -2 stay near Student's interval."""
    differences = np.array([2.0] * 8 + [3.0] * 3 + [-2.0])
    rng = np.random.default_rng(0)
    labels = np.concatenate([differences, np.zeros(queries - 12)])
    found = estimate(sample_of(labels, rng.normal(size=queries), 12))
    alone = found.labels_only
    assert alone.value == pytest.approx(23 / 12)
    half = t.ppf(0.975, 11) * differences.std(ddof=1) / math.sqrt(12)
    assert alone.high - alone.value == pytest.approx(half)  # up to 2.75
    assert half <= alone.value - alone.low <= 1.5 * half + 1e-9  # down to 0.67, Student's is 1.08
    both = (
        found.with_scores.value - found.with_scores.low,
        found.with_scores.high - found.with_scores.value,
    )
    assert max(both) <= 1.5 * min(both) + 1e-9


def test_strata_correct_an_uneven_sample() -> None:
    """Labels mostly from low scores are biased, unless estimated in their strata."""
    rng = np.random.default_rng(11)
    truth = float(skewed(rng, 400_000, 0.7)[0].mean())
    right, wrong = [], []
    for _ in range(300):
        labels, scores = skewed(rng, 300, 0.7)
        strata = make_strata(scores, 3)
        rows = np.concatenate(
            [
                rng.permutation(np.flatnonzero(strata == h))[:count]
                for h, count in enumerate((30, 10, 8))
            ]
        )
        known = np.full(300, np.nan)
        known[rows] = labels[rows]
        names = tuple(map(str, range(300)))
        for hits, groups in ((right, strata), (wrong, np.zeros(300, np.int64))):
            hits.append(covers(estimate(LabeledSample("a", names, scores, known, groups)), truth))
    assert (np.mean(right, axis=0) > 0.92).all()
    assert np.mean(wrong, axis=0)[1] < 0.5


def test_scores_add_nothing_if_all_is_labeled() -> None:
    """Both estimates are the mean label, with unchanged effective labels."""
    labels, scores = golden()
    found = estimate(sample_of(labels, scores, 260))
    assert found.with_scores == found.labels_only
    assert found.with_scores.value == pytest.approx(labels.mean())
    assert (found.weight, found.effective_labels) == (0.0, 260)


def test_few_or_equal_labels_give_no_interval() -> None:
    """Below ten labels, or with equal labels, bounds and effective labels are unknown."""
    labels, scores = golden()
    few = estimate(sample_of(labels, scores, 9))
    equal = estimate(sample_of(np.full(260, 10.0), scores, 40))
    for found in (few, equal):
        assert math.isnan(found.with_scores.low)
        assert math.isnan(found.effective_labels)
    assert equal.with_scores.value == pytest.approx(10.0)
    assert math.isnan(equal.correlation)


def test_interval_stays_on_the_scale() -> None:
    """Value and bounds are clipped to the range of a mean label."""
    labels, scores = golden()
    sample = sample_of(labels, scores, 60)
    free, cut = (estimate(sample, bounds=bounds) for bounds in (None, (5.7, 5.8)))
    assert free.with_scores.low < 5.7 < 5.8 < free.with_scores.high
    assert (cut.with_scores.low, cut.with_scores.high) == (5.7, 5.8)
    assert cut.width_ratio == free.width_ratio


def test_too_few_labels_are_an_error_with_a_hint() -> None:
    """One label is not enough."""
    labels, scores = golden()
    with pytest.raises(BenchmarkError, match="'a' against 'b' has 1 labeled") as found:
        estimate(sample_of(labels, scores, 1), against="b")
    assert "rocketeval labels next" in found.value.hint
