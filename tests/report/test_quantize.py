"""Rounded scores tie exactly where the original scores tie."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.arrays import Floats
from rocketeval.grid import compare
from rocketeval.report.blocks import quantize

RANDOM = np.random.default_rng(0)
CASES = {
    "any scores": (RANDOM.uniform(1.0, 10.0, (60, 100)), (1.0, 10.0), 0.1),
    "many candidates": (RANDOM.normal(7.0, 0.5, (10, 400)), (1.0, 10.0), 0.1),
    "gaps of exactly the margin": (RANDOM.uniform(1, 10, (60, 60)).round(1), (1.0, 10.0), 0.1),
    "shares of ninety items": (1 + RANDOM.integers(0, 91, (60, 100)) / 10, (1.0, 10.0), 0.1),
    "no margin": (1 + 9 * RANDOM.integers(0, 8, (60, 30)) / 7, (1.0, 10.0), 0.0),
    "equal up to rounding errors": (
        (np.random.default_rng(0).integers(0, 5, (60, 30, 5)) / 10).sum(axis=2),
        (0.0, 2.0),
        0.0,
    ),
    "another scale": (RANDOM.uniform(0.0, 1.0, (60, 60)), (0.0, 1.0), 0.01),
    "far from zero": (RANDOM.uniform(1000.0, 1001.0, (20, 60)), (1000.0, 1001.0), 0.01),
}


def on_the_page(row: Floats, margin: float) -> Floats:
    """Return the wins as the page computes them: Float32 values, subtracted as doubles."""
    given = row.astype("<f4").astype(np.float64)
    gaps = given[:, None] - given[None, :]
    return np.where((np.abs(gaps) < margin) | np.isnan(gaps), 0.0, np.sign(np.nan_to_num(gaps)))


@pytest.mark.parametrize("case", CASES)
def test_rounding_keeps_all_wins_and_ties(case: str) -> None:
    """The page and the ranking agree on every tie, also with missing scores."""
    scores, scale, margin = CASES[case]
    scores = np.where(RANDOM.uniform(size=scores.shape) < 0.1, np.nan, scores)
    found = quantize(scores, scale, margin)
    assert (np.isnan(found) == np.isnan(scores)).all()
    for row, rounded in zip(scores, found, strict=True):
        counted = compare(row[:, None], row[None, :], margin)
        assert (on_the_page(rounded, margin) == counted).all()


@pytest.mark.parametrize("case", CASES)
def test_rounding_error_is_invisible(case: str) -> None:
    """The page shows two decimals on a scale of nine points."""
    scores, scale, margin = CASES[case]
    moved = np.abs(quantize(scores, scale, margin) - scores).max()
    assert moved < (scale[1] - scale[0]) / 9 * 1e-3


def test_scores_are_rounded_to_steps() -> None:
    """Scores without near ties are rounded to 1/65,000 of the scale, which compresses."""
    scores = np.array([[1.123456789, 5.123456789, 9.123456789]])
    steps = quantize(scores, (1.0, 10.0), 0.1) * 2.0**13
    assert (steps == steps.round()).all()


def test_rows_without_scores_stay_empty() -> None:
    """There is no warning."""
    assert np.isnan(quantize(np.full((2, 3), np.nan), (1.0, 10.0), 0.1)).all()
    assert quantize(np.empty((0, 3)), (1.0, 10.0), 0.1).shape == (0, 3)
