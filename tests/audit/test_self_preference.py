"""Self-preference: SciPy's z-scores, a regression by NumPy, and planted preferences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from rocketeval.audit.bias import NO_OTHERS, NO_QUERY, SelfPreference, self_preference
from rocketeval.grid import ScoreGrid
from support.tables import tables

NAMES = ("a", "b", "c", "d", "e", "f")
IDS = tuple(f"q{row}" for row in range(200))


def grid(scores: np.ndarray) -> ScoreGrid:
    """Return scores under plain names."""
    return ScoreGrid(IDS[: len(scores)], NAMES[: scores.shape[1]], scores)


def test_planted_self_preference_is_found() -> None:
    """A judge that adds to its own family shows it; a fair one does not."""
    rng = np.random.default_rng(2)
    gold = rng.normal(size=(200, 6)) + np.array([1.0, 0, 0, 0, 0, 0])
    fair = 3.0 * gold + rng.normal(size=gold.shape)
    own = {"a", "b", "stranger"}
    found = self_preference(grid(fair), gold, own, bootstrap=300)
    assert found.preference is not None
    assert found.preference.low < 0.0 < found.preference.high
    assert found.at_equal_gold is not None
    assert found.at_equal_gold.low < 0.0 < found.at_equal_gold.high
    assert (found.family, found.queries, found.left_out) == (("a", "b"), 200, 0)
    vain = fair + np.array([2.0, 2, 0, 0, 0, 0])
    caught = self_preference(grid(vain), gold, own, bootstrap=300)
    assert caught.preference is not None
    assert caught.preference.low > 0.2
    assert caught.at_equal_gold is not None
    assert caught.at_equal_gold.low > 0.2


@settings(deadline=None)
@given(tables((2, 8), (2, 6)))
def test_self_preference_is_the_mean_of_z_scores(table: np.ndarray) -> None:
    """SciPy's z-scores within each query, over responses with a score and a label."""
    half = len(table) // 2
    scores, gold = table[:half], table[half : 2 * half]
    gaps = []
    for x, y in zip(scores, gold, strict=True):
        both = ~np.isnan(x - y)
        own, others = both.copy(), both.copy()
        own[1:], others[:1] = False, False
        if own.any() and others.any() and np.ptp(x[both]) > 0 and np.ptp(y[both]) > 0:
            surplus = np.full(len(x), np.nan)
            surplus[both] = stats.zscore(x[both]) - stats.zscore(y[both])
            gaps.append(surplus[own].mean() - surplus[others].mean())
    found = self_preference(grid(scores), gold, {"a"}, bootstrap=5)
    assert (found.queries, found.left_out) == (len(gaps), half - len(gaps))
    if not gaps:
        assert found.preference is None
        assert found.reason == NO_QUERY
        return
    assert found.preference is not None
    assert found.preference.value == pytest.approx(np.mean(gaps), abs=1e-9)


def test_same_gap_on_every_query_has_no_interval() -> None:
    """Two responses per query in the order of their labels show no preference, but prove none."""
    gold = np.tile([[1.0, 2.0], [2.0, 1.0]], (4, 1))
    found = self_preference(grid(gold), gold, {"a"}, bootstrap=50).preference
    assert found is not None
    assert found.value == pytest.approx(0.0)
    assert math.isnan(found.low)
    assert math.isnan(found.high)


@pytest.mark.parametrize("family", [set(), {"z"}, set(NAMES)], ids=["none", "unknown", "everyone"])
def test_family_needs_other_candidates(family: set[str]) -> None:
    """No family member, or only family members, give a reason."""
    found = self_preference(grid(np.eye(6)), np.eye(6), family)
    assert found.preference is None
    assert found.reason == NO_OTHERS


def test_tables_must_have_the_same_shape() -> None:
    """Labels of another shape are refused."""
    with pytest.raises(ValueError, match=r"\(2, 3\) differs from score shape \(6, 6\)"):
        self_preference(grid(np.eye(6)), np.ones((2, 3)), {"a"})


def is_sure(found: SelfPreference) -> bool:
    """Return whether both figures show a preference."""
    both = (found.preference, found.at_equal_gold)
    return all(figure is not None and figure.low > 0.0 for figure in both)


@pytest.mark.parametrize(
    ("lead", "unsure_judge", "unsure_labels"),
    [(-1.5, 3.0, 0.5), (1.5, 1.5, 1.0)],
    ids=["weak family, unsure judge", "strong family, unsure labels"],
)
def test_noise_does_not_look_like_a_preference(
    lead: float, unsure_judge: float, unsure_labels: float
) -> None:
    """A noisy judge or noisy labels mislead one figure, but not both."""
    rng = np.random.default_rng(5)
    truth = rng.normal(size=(200, 6)) + lead * np.array([1.0, 1, 0, 0, 0, 0])
    scores = truth + unsure_judge * rng.normal(size=truth.shape)
    labels = truth + unsure_labels * rng.normal(size=truth.shape)
    fair = self_preference(grid(scores), labels, {"a", "b"}, bootstrap=300)
    astray = fair.preference if lead < 0.0 else fair.at_equal_gold
    assert astray is not None
    assert astray.low > 0.0
    assert not is_sure(fair)
    vain = scores + 6.0 * np.array([1.0, 1, 0, 0, 0, 0])
    assert is_sure(self_preference(grid(vain), labels, {"a", "b"}, bootstrap=300))


@settings(deadline=None)
@given(tables((2, 10), (3, 6)))
def test_at_equal_labels_is_a_regression_within_queries(table: np.ndarray) -> None:
    """Least squares on z-scores of labels and on family, centered per query."""
    half = len(table) // 2
    scores, gold = table[:half], table[half : 2 * half]
    found = self_preference(grid(scores), gold, {"a"}, bootstrap=5)
    columns: list[np.ndarray] = []
    for x, y in zip(scores, gold, strict=True):
        both = ~np.isnan(x - y)
        if both[0] and both[1:].any() and np.ptp(x[both]) > 0 and np.ptp(y[both]) > 0:
            own = (np.arange(len(x)) == 0)[both].astype(float)
            rows = [stats.zscore(x[both]), stats.zscore(y[both]), own - own.mean()]
            columns.append(np.stack(rows))
    if not columns:
        assert found.at_equal_gold is None
        return
    target, *regressors = np.concatenate(columns, axis=1)
    design = np.stack(regressors, axis=1)
    if np.linalg.matrix_rank(design, tol=1e-6) < 2:
        assert found.at_equal_gold is None
        return
    assert found.at_equal_gold is not None
    expected = np.linalg.lstsq(design, target, rcond=None)[0][1]
    assert found.at_equal_gold.value == pytest.approx(expected, abs=1e-6)


def test_labels_that_separate_the_family_give_no_figure() -> None:
    """With two candidates and the family always lower, no labels are equal."""
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(20, 2))
    found = self_preference(grid(scores), np.tile([1.0, 2.0], (20, 1)), {"a"}, bootstrap=10)
    assert found.preference is not None
    assert found.at_equal_gold is None
