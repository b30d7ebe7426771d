"""Calibration against reference answers: scikit-learn's figures, and complete bins."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, roc_auc_score

from rocketeval.audit.calibration import Calibration, CalibrationCurve, calibration
from rocketeval.errors import ConfigError
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import interval, resample_queries
from support.tables import PROBABILITIES, tables

GOLD = st.sampled_from([0.0, 1.0, 0.0, 1.0, math.nan])


def value(figure: Interval | None) -> float:
    """Return the figure, which must be present."""
    assert figure is not None
    return figure.value


def measured(p_yes: np.ndarray, gold: np.ndarray, bins: int = 10) -> Calibration:
    """Return the calibration of three items per query, with few resamples."""
    return calibration(p_yes, gold, np.arange(len(p_yes)) // 3, bins=bins, bootstrap=5)


GOLDEN = tables((1, 1), (4, 30), PROBABILITIES).flatmap(
    lambda table: st.tuples(
        st.just(table[0]), arrays(np.float64, table.shape[1], elements=GOLD, fill=st.nothing())
    )
)


@settings(deadline=None)
@given(GOLDEN, st.integers(1, 12))
def test_figures_equal_scikit_learn(columns: tuple[np.ndarray, np.ndarray], bins: int) -> None:
    """Curve, Brier score, AUC and error rates, with ties and missing items."""
    p_yes, gold = columns
    known = ~(np.isnan(p_yes) | np.isnan(gold))
    p, y = p_yes[known], gold[known]
    assume(len(p) and 0 < y.sum() < len(y))
    found = measured(p_yes, gold, bins)
    share, mean_p = calibration_curve(y, p, n_bins=bins)
    drawn = found.by_width.bins
    np.testing.assert_allclose([each.gold.value for each in drawn], share, atol=1e-9)
    np.testing.assert_allclose([each.mean_p for each in drawn], mean_p, atol=1e-9)
    assert value(found.brier) == pytest.approx(brier_score_loss(y, p), abs=1e-9)
    assert value(found.auc) == pytest.approx(roc_auc_score(y, p), abs=1e-9)
    assert value(found.yes_bias) == pytest.approx((p >= 0.5).mean() - y.mean(), abs=1e-9)
    assert value(found.false_yes) == pytest.approx((p[y == 0] >= 0.5).mean(), abs=1e-9)
    assert value(found.false_no) == pytest.approx((p[y == 1] < 0.5).mean(), abs=1e-9)
    assert (found.items, found.missing) == (len(p), len(p_yes) - len(p))
    assert (found.gold_yes, found.gold_no, found.reason) == (y.sum(), len(y) - y.sum(), None)


def check_curve(curve: CalibrationCurve, p: np.ndarray, y: np.ndarray) -> None:
    """Check that every item is in one bin and that the error is that of the bins."""
    seen = np.zeros(len(p), dtype=int)
    error = 0.0
    for place, each in enumerate(curve.bins):
        inside = (p <= each.high) & ((p > each.low) | ((place == 0) & (p == each.low)))
        seen += inside
        assert each.items == inside.sum()
        assert each.mean_p == pytest.approx(p[inside].mean(), abs=1e-9)
        assert each.gold.value == pytest.approx(y[inside].mean(), abs=1e-9)
        error += abs(p[inside].sum() - y[inside].sum()) / len(p)
    assert (seen == 1).all()
    assert curve.error == pytest.approx(error, abs=1e-9)


@settings(deadline=None)
@given(tables((2, 2), (1, 40), PROBABILITIES), st.integers(1, 8))
def test_bins_hold_every_item_once(table: np.ndarray, bins: int) -> None:
    """Bins of equal width and of equal count, also for labels between 0 and 1."""
    p_yes, gold = table
    known = ~np.isnan(p_yes - gold)
    assume(known.any())
    found = measured(p_yes, gold, bins)
    check_curve(found.by_width, p_yes[known], gold[known])
    check_curve(found.by_count, p_yes[known], gold[known])
    assert value(found.brier) == pytest.approx(((p_yes - gold)[known] ** 2).mean(), abs=1e-9)


def test_equal_count_bins_have_equal_counts() -> None:
    """Without ties each bin has its share of the items."""
    rng = np.random.default_rng(0)
    found = measured(rng.random(60) ** 3, rng.random(60) < 0.5, 6)
    assert [each.items for each in found.by_count.bins] == [10] * 6


def test_calibrated_judge_passes_and_biased_judge_fails() -> None:
    """Most intervals contain the diagonal, and a judge that says yes too often is detected."""
    rng = np.random.default_rng(1)
    p_yes = rng.random(3000)
    gold, groups = rng.random(3000) < p_yes, np.arange(3000) // 10
    fair = calibration(p_yes, gold, groups, bootstrap=300)
    held = [each.gold.low <= each.mean_p <= each.gold.high for each in fair.by_width.bins]
    assert sum(held) >= 8
    assert fair.by_width.error is not None
    assert fair.by_width.error < 0.03
    assert fair.auc is not None
    assert fair.auc.low < 5 / 6 < fair.auc.high
    eager = calibration(np.sqrt(p_yes), gold, groups, bootstrap=300)
    assert eager.false_yes is not None
    assert fair.false_yes is not None
    assert eager.false_yes.low > fair.false_yes.high
    assert not any(each.gold.high > each.mean_p for each in eager.by_width.bins[3:8])


def test_auc_draws_equal_explicit_resamples() -> None:
    """Weights by query give the same bounds as repeating the items of drawn queries."""
    rng = np.random.default_rng(3)
    p_yes, gold, places = rng.integers(0, 9, 60) / 8, rng.random(60) < 0.5, np.arange(60) // 6
    found = calibration(p_yes, gold, places, bootstrap=40, seed=7).auc
    drawn = []
    for counts in resample_queries(10, 40, 7):
        for draw in counts.astype(int):
            again = np.repeat(np.arange(60), draw[places])
            drawn.append(roc_auc_score(gold[again], p_yes[again]))
    expected = interval(float(roc_auc_score(gold, p_yes)), np.array(drawn), queries=10, level=0.95)
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_labels_have_a_curve_but_no_error_rates() -> None:
    """Labels between yes and no give a reason instead of error rates."""
    found = measured(np.array([0.1, 0.9, 0.4]), np.array([0.25, 1.0, 0.5]))
    assert (found.auc, found.yes_bias) == (None, None)
    assert (found.false_yes, found.false_no) == (None, None)
    assert (found.gold_yes, found.gold_no) == (None, None)
    assert found.reason is not None
    assert "not yes or no" in found.reason
    assert found.brier is not None


def test_constant_reference_has_no_auc() -> None:
    """The AUC is None, not 0.5 or 1."""
    found = measured(np.array([0.1, 0.9]), np.array([True, True]))
    assert (found.auc, found.false_yes) == (None, None)
    assert value(found.false_no) == 0.5
    assert found.reason is not None
    assert "no AUC" in found.reason


def test_nothing_to_compare_gives_a_reason() -> None:
    """Without a common item there is no figure and no error."""
    found = measured(np.array([math.nan, 0.5]), np.array([1.0, math.nan]))
    assert (found.by_width.bins, found.by_count.bins) == ((), ())
    assert (found.by_count.error, found.brier, found.auc) == (None, None, None)
    assert (found.items, found.missing) == (0, 2)
    assert found.reason is not None
    assert "no item has both" in found.reason


def test_invalid_input_is_refused() -> None:
    """No bins, labels off the scale, and columns of different lengths raise errors."""
    with pytest.raises(ConfigError, match="bins: 0"):
        measured(np.array([0.5]), np.array([1.0]), 0)
    with pytest.raises(ValueError, match="below 0 or above 1"):
        measured(np.array([0.5]), np.array([7.0]))
    with pytest.raises(ValueError, match="2 reference answers for 1 probabilities"):
        measured(np.array([0.5]), np.array([1.0, 0.0]))
