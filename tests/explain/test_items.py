"""Item figures are plain statistics, and dead items are found."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr

from rocketeval.explain.items import item_figures, why_dead


def test_figures_equal_numpy_and_scipy() -> None:
    """Mean, bounds, spread and correlation of the known answers."""
    rng = np.random.default_rng(0)
    p_yes, scores = rng.random((12, 3)), rng.random(12)
    p_yes[2, 1] = np.nan
    scores[5] = np.nan
    for place, found in enumerate(item_figures(["a?", "b?", "c?"], p_yes, scores, None)):
        column = p_yes[:, place]
        given = column[~np.isnan(column)]
        both = ~np.isnan(column) & ~np.isnan(scores)
        assert (found.item, found.answered) == (place + 1, len(given))
        assert found.mean == pytest.approx(given.mean())
        assert (found.low, found.high) == (given.min(), given.max())
        assert found.spread == pytest.approx(given.std())
        assert found.discrimination == pytest.approx(pearsonr(column[both], scores[both]).statistic)
        assert (found.equal_weight, found.learned_weight) == (1 / 3, None)


def test_learned_and_equal_weights_are_both_given() -> None:
    """Both are given after fitting."""
    found = item_figures(["a?", "b?"], np.zeros((2, 2)), np.zeros(2), [0.8, 0.2])
    assert [(one.equal_weight, one.learned_weight) for one in found] == [(0.5, 0.8), (0.5, 0.2)]


def test_item_without_answers_has_no_figures() -> None:
    """All figures are None, not zero."""
    (found,) = item_figures(["a?"], np.full((3, 1), np.nan), np.ones(3), None)
    assert (found.answered, found.mean, found.spread, found.discrimination) == (0, None, None, None)
    assert found.dead is None


@pytest.mark.parametrize(
    ("given", "why"),
    [
        ([0.95, 0.99, 0.9], "yes to all"),
        ([0.05, 0.0, 0.1], "no to all"),
        ([0.52, 0.5, 0.54], "same for all"),
        ([0.89, 0.99], None),
        ([0.05, 0.95], None),
        ([0.99], None),
    ],
)
def test_dead_items(given: list[float], why: str | None) -> None:
    """All yes, all no, or all equal; a single response proves nothing."""
    assert why_dead(np.array(given)) == why


def test_constant_columns_have_no_correlation() -> None:
    """Equal answers, equal scores or two responses give no discrimination."""
    varied, same = np.array([0.1, 0.5, 0.9]), np.array([0.5, 0.5, 0.5])
    for p_yes, scores in ((same, varied), (varied, same), (varied[:2], varied[:2])):
        (found,) = item_figures(["a?"], p_yes[:, None], scores, None)
        assert found.discrimination is None
