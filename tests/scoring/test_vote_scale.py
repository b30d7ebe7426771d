"""From quality to score: the margin equals a tie, order is kept, and the scale is respected."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.scoring.vote_model import quality_scale

SCALE = (1.0, 10.0)


def test_margin_equals_the_tie_threshold() -> None:
    """Scores are linear in quality: margin over threshold."""
    scale = quality_scale(0.5, -3.0, 4.0, SCALE, 0.1)
    qualities = np.array([-3.0, -1.0, 0.0, 2.0, 4.0])
    np.testing.assert_allclose(scale.score(qualities, SCALE), 5.5 + 0.1 * qualities / 0.5)


def test_the_average_response_is_in_the_middle() -> None:
    """Quality 0 is mid-scale on any scale."""
    for ends in (SCALE, (0.0, 1.0), (-5.0, 5.0)):
        scale = quality_scale(0.4, -2.0, 5.0, ends, 0.1)
        assert scale.score(np.zeros(1), ends)[0] == pytest.approx(sum(ends) / 2)


@pytest.mark.parametrize("threshold", [0.0, 1e-6, 0.001, 5.0])
def test_order_is_kept_within_the_scale(threshold: float) -> None:
    """Also far beyond the training data, and if ties are never likely."""
    scale = quality_scale(threshold, -2.0, 3.0, SCALE, 0.1)
    scores = scale.score(np.linspace(-3.0, 4.0, 2001), SCALE)
    assert (np.diff(scores) > 0).all()
    far = scale.score(np.array([-1e6, 1e6]), SCALE)
    assert far.tolist() == [1.0, 10.0]
    assert scores.min() > 1.0
    assert scores.max() < 10.0


def test_without_ties_the_margin_is_as_small_as_the_scale_allows() -> None:
    """The training qualities fill the linear part of the scale."""
    scale = quality_scale(0.0, -1.0, 1.0, SCALE, 0.1)
    assert scale.heights[-1] == pytest.approx(0.45 * 9.0)
