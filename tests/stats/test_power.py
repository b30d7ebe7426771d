"""Queries needed: against the exact power of the t test."""

from __future__ import annotations

import math

import pytest
from scipy.stats import nct, t

from rocketeval.stats.permutation import POWER, detectable_effect, queries_needed


def exact_power(effect: float, spread: float, queries: int, level: float) -> float:
    """Return the power of a two-sided t test, by the noncentral distribution."""
    bound = t.ppf((1 + level) / 2, queries - 1)
    shift = effect * math.sqrt(queries) / spread
    return float(nct.sf(bound, queries - 1, shift) + nct.cdf(-bound, queries - 1, shift))


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
@pytest.mark.parametrize("ratio", [0.05, 0.2, 0.5, 1.0])
def test_needed_queries_have_80_percent_power(ratio: float, level: float) -> None:
    """The number found has 80% power, and one tenth fewer does not."""
    needed = queries_needed(-ratio, 1.0, level)
    assert needed is not None
    assert exact_power(ratio, 1.0, needed, level) == pytest.approx(POWER, abs=0.04)
    assert exact_power(ratio, 1.0, math.floor(0.85 * needed), level) < POWER


def test_needed_and_detectable_are_inverse() -> None:
    """The effect that n queries detect needs n queries."""
    for queries in (10, 80, 1000):
        effect = detectable_effect(2.0, queries, 0.95) * (1 + 1e-9)
        assert queries_needed(effect, 2.0, 0.95) == queries


def test_zero_effect_has_no_number() -> None:
    """Zero can never be detected."""
    assert queries_needed(0.0, 1.0, 0.95) is None


def test_few_queries_detect_nothing() -> None:
    """Below the minimum there is no figure; a spread of zero needs just the minimum."""
    assert math.isnan(detectable_effect(1.0, 5, 0.95))
    assert queries_needed(1.0, 0.0, 0.95) == 6
