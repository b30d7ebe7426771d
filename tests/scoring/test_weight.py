"""The weight of labels: how evenly they are spread over the scale."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy

from rocketeval.scoring.extra_trees import LabelScale, label_weight

TEN = (1.0, 10.0)


@pytest.mark.parametrize("seed", range(5))
def test_it_is_the_formula_of_the_paper(seed: int) -> None:
    """(eps - KL(P || U)) / eps, with SciPy's KL and eps of a distribution on one level."""
    labels = np.random.default_rng(seed).integers(1, 11, 17).astype(float)
    shares = np.bincount(labels.astype(int) - 1, minlength=10) / len(labels)
    uniform = np.full(10, 0.1)
    eps = entropy([1.0] + [0.0] * 9, uniform)
    expected = (eps - entropy(shares, uniform)) / eps
    assert label_weight(labels, LabelScale.of(labels, TEN)) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("labels", "scale", "weight"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], TEN, 1.0),
        ([7, 7, 7], TEN, 0.0),
        ([], TEN, 0.0),
        ([0, 1, 0, 1], (0.0, 1.0), 1.0),
        ([0, 0, 0, 1], (0.0, 1.0), 0.811278),
        ([1, 10], TEN, 1.0),
        ([-1, 0, 1], (-1.0, 1.0), 1.0),
    ],
)
def test_the_ends_and_the_middle(
    labels: list[float], scale: tuple[float, float], weight: float
) -> None:
    """Even labels have weight one, identical labels zero, on every kind of scale."""
    values = np.array(labels, dtype=float)
    assert label_weight(values, LabelScale.of(values, scale)) == pytest.approx(weight, abs=1e-6)


@pytest.mark.parametrize(
    ("labels", "scale", "levels"),
    [
        ([3, 4], TEN, 10),
        ([3.5, 4], TEN, 10),
        ([0, 1], (0.0, 1.0), 2),
        ([0.25, 0.5], (0.0, 1.0), 10),
        ([1, 3, 5], (1.0, 5.0), 5),
        ([10, 90], (0.0, 100.0), 10),
        ([0, 100], (0.0, 100.0), 2),
        ([0.5, 2.5], (0.5, 4.5), 10),
    ],
)
def test_the_levels_follow_from_the_labels(
    labels: list[float], scale: tuple[float, float], levels: int
) -> None:
    """Whole numbers, two ends or fractions determine the levels."""
    assert LabelScale.of(np.array(labels, dtype=float), scale).levels == levels


def test_fractions_have_smooth_weights() -> None:
    """Many even fractions have a weight near one; a cluster has a low weight."""
    even = np.linspace(0.0, 1.0, 1000)
    narrow = np.linspace(0.50, 0.56, 1000)
    assert label_weight(even, LabelScale.of(even, (0.0, 1.0))) > 0.98
    assert label_weight(narrow, LabelScale.of(narrow, (0.0, 1.0))) < 0.35


def test_every_label_has_a_level_on_its_scale() -> None:
    """The ends are on the first and last level."""
    scale = LabelScale(1.0, 10.0, 10)
    assert scale.level(np.array([1.0, 1.4, 1.6, 9.5, 10.0])).tolist() == [0, 0, 1, 9, 9]
