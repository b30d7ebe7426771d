"""Agreement metrics match scipy and scikit-learn, for the cases and for each resample."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from rocketeval.evolve.validate import label_figures, verdict_figures
from rocketeval.stats.bootstrap import resample_queries

RANDOM = np.random.default_rng(2)
QUERIES = [f"q{number // 3}" for number in range(60)]
GOLD = RANDOM.integers(-1, 2, 60).astype(float)
SAID = np.where(RANDOM.uniform(size=60) < 0.6, GOLD, RANDOM.integers(-1, 2, 60))


def test_verdict_metrics_match_scikit_learn_and_scipy() -> None:
    """Accuracy, macro F1 and precision, rho and tau-b."""
    found = verdict_figures(SAID, GOLD, QUERIES, seed=0, times=10).figures
    assert found["accuracy"] == pytest.approx(np.mean(SAID == GOLD))
    assert found["f1"] == pytest.approx(metrics.f1_score(GOLD, SAID, average="macro"))
    assert found["precision"] == pytest.approx(metrics.precision_score(GOLD, SAID, average="macro"))
    assert found["rho"] == pytest.approx(stats.spearmanr(SAID, GOLD).statistic)
    assert found["tau"] == pytest.approx(stats.kendalltau(SAID, GOLD).statistic)


def test_resample_metrics_match_repeated_cases() -> None:
    """Compared with metrics of cases repeated as often as their query was drawn."""
    drawn = verdict_figures(SAID, GOLD, QUERIES, seed=4, times=5).draws
    labels = GOLD + RANDOM.normal(size=60)
    by_label = label_figures(labels, GOLD, QUERIES, seed=4, times=5).draws
    (counts,) = resample_queries(20, 5, 4)
    for place, draw in enumerate(counts):
        rows = np.repeat(np.arange(60), draw.astype(int)[np.arange(60) // 3])
        assert drawn["accuracy"][place] == pytest.approx(np.mean(SAID[rows] == GOLD[rows]))
        rho = stats.spearmanr(SAID[rows], GOLD[rows]).statistic
        tau = stats.kendalltau(SAID[rows], GOLD[rows]).statistic
        assert drawn["rho"][place] == pytest.approx(rho)
        assert drawn["tau"][place] == pytest.approx(tau)
        exact = stats.spearmanr(labels[rows], GOLD[rows]).statistic
        assert by_label["rho"][place] == pytest.approx(exact)


def test_label_metrics_match_scipy() -> None:
    """Rho, tau-b and the mean squared error, with ties on one side."""
    predicted = GOLD + RANDOM.normal(size=60)
    found = label_figures(predicted, GOLD, QUERIES, seed=0, times=200)
    assert found.figures["rho"] == pytest.approx(stats.spearmanr(predicted, GOLD).statistic)
    assert found.figures["tau"] == pytest.approx(stats.kendalltau(predicted, GOLD).statistic)
    assert found.figures["mse"] == pytest.approx(np.mean((predicted - GOLD) ** 2))
    for name, sure in found.intervals().items():
        assert sure.low < found.figures[name] < sure.high


def test_differences_are_paired() -> None:
    """The difference from itself is exactly zero."""
    found = verdict_figures(SAID, GOLD, QUERIES, seed=0)
    none = found.difference_from(found, "accuracy")
    assert (none.value, none.low, none.high) == (0.0, 0.0, 0.0)
    gain = verdict_figures(GOLD, GOLD, QUERIES, seed=0).difference_from(found, "accuracy")
    assert gain.value == pytest.approx(np.mean(SAID != GOLD))
    assert 0.0 < gain.low < gain.value < gain.high


def test_perfect_verdicts_are_not_certain() -> None:
    """Without a mistake, accuracy has an exact interval, and the other metrics have none."""
    gold, queries = np.array([1.0, -1.0] * 3), [f"q{number}" for number in range(6)]
    found = verdict_figures(gold, gold, queries, seed=0)
    sure = found.intervals()["accuracy"]
    assert (sure.value, sure.high) == (1.0, 1.0)
    assert sure.low == pytest.approx(stats.beta.ppf(0.025, 6, 1))
    assert np.isnan([found.intervals()[name].low for name in ("f1", "precision", "rho")]).all()
    gain = found.difference_from(verdict_figures(-gold, gold, queries, seed=0), "accuracy")
    assert (gain.value, gain.high) == (1.0, 1.0)
    assert gain.low == pytest.approx(2.0 * sure.low - 1.0)


def test_constant_predictions_have_no_correlation() -> None:
    """The result is NaN instead of a made-up value."""
    assert np.isnan(verdict_figures(np.zeros(60), GOLD, QUERIES, 0, 10).figures["rho"])
    found = label_figures(np.zeros(60), GOLD, QUERIES, 0, 10)
    assert np.isnan(found.figures["rho"])
    assert np.isnan(found.intervals()["tau"].low)
