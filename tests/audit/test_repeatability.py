"""Self-disagreement of a judge: exact expectations, and two gradings of the same items."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketeval.audit.repeatability import disagreement, sampling_disagreement
from rocketeval.errors import ConfigError
from rocketeval.records import Interval
from support.tables import PROBABILITIES, tables

NAN = np.nan


def value(figure: Interval | None) -> float:
    """Return the figure, which must be present."""
    assert figure is not None
    return figure.value


@settings(deadline=None, max_examples=50)
@given(tables((1, 1), (1, 12), PROBABILITIES), st.integers(2, 5))
def test_expected_share_equals_weighted_outcomes(table: np.ndarray, times: int) -> None:
    """All sequences of samples, weighted by probability; missing items are left out."""
    p_yes = table[0]
    found = sampling_disagreement(p_yes, np.arange(len(p_yes)), [times], bootstrap=5)
    known = p_yes[~np.isnan(p_yes)]
    assert (found.items, found.missing) == (len(known), len(p_yes) - len(known))
    if not len(known):
        assert found.shares[0].share is None
        return
    weighed = [
        sum(
            float(np.prod([p if yes else 1 - p for yes in outcome]))
            for outcome in product([True, False], repeat=times)
            if len(set(outcome)) == 2
        )
        for p in known
    ]
    assert value(found.shares[0].share) == pytest.approx(np.mean(weighed), abs=1e-9)


def test_sampling_matches_the_expectation() -> None:
    """Drawn answers disagree as often as expected, within the error of 4,000 items."""
    rng = np.random.default_rng(0)
    p_yes = rng.beta(0.5, 0.5, 4000)
    found = sampling_disagreement(p_yes, np.arange(4000) // 8, [2, 3, 10], bootstrap=200)
    for row in found.shares:
        drawn = rng.random((row.times, 4000)) < p_yes
        share = (drawn.any(axis=0) & ~drawn.all(axis=0)).mean()
        assert value(row.share) == pytest.approx(share, abs=0.025)
        assert row.share is not None
        assert row.share.low < row.share.value < row.share.high
    assert [row.times for row in found.shares] == [2, 3, 10]


def test_fewer_than_two_samples_are_refused() -> None:
    """Fewer than two samples, or an invalid probability, raise an error."""
    with pytest.raises(ConfigError, match="1 samples cannot disagree"):
        sampling_disagreement(np.array([0.5]), ["q"], [3, 1])
    with pytest.raises(ValueError, match="a probability is below 0 or above 1"):
        sampling_disagreement(np.array([1.5]), ["q"])


@settings(deadline=None, max_examples=50)
@given(tables((2, 2), (1, 20), PROBABILITIES))
def test_two_gradings_are_compared_item_by_item(table: np.ndarray) -> None:
    """Overall and by position, the figures are means over common items."""
    one, two = table
    items = len(one)
    positions = np.random.default_rng(items).integers(1, 4, items)
    found = disagreement(one, two, np.arange(items) // 3, positions, bootstrap=5)
    known = ~np.isnan(one - two)
    apart, flipped = np.abs(one - two), (one >= 0.5) != (two >= 0.5)
    assert (found.items, found.missing) == (known.sum(), (~known).sum())
    assert [row.position for row in found.by_position] == sorted(set(positions[known].tolist()))
    assert sum(row.items for row in found.by_position) == found.items
    if not found.items:
        assert (found.differing, found.difference, found.largest) == (None, None, None)
        return
    assert value(found.differing) == pytest.approx(flipped[known].mean(), abs=1e-9)
    assert value(found.difference) == pytest.approx(apart[known].mean(), abs=1e-9)
    assert found.largest == apart[known].max()
    for row in found.by_position:
        here = known & (positions == row.position)
        assert row.items == here.sum()
        assert row.differing.value == pytest.approx(flipped[here].mean(), abs=1e-9)
        assert row.difference.value == pytest.approx(apart[here].mean(), abs=1e-9)
        assert row.largest == apart[here].max()


def test_equal_gradings_have_zero_difference_with_an_interval() -> None:
    """Ten queries without a flip leave room for some; without positions there are no rows."""
    p_yes = np.linspace(0.0, 1.0, 10)
    found = disagreement(p_yes, p_yes, np.arange(10), bootstrap=20)
    assert found.differing is not None
    assert found.differing.value == 0.0
    assert found.differing.high > 0.2
    assert (found.largest, found.by_position) == (0.0, ())


def test_gradings_of_different_items_are_refused() -> None:
    """Both must have the same items."""
    with pytest.raises(ValueError, match="gradings of 1 and of 2 items"):
        disagreement(np.array([0.5]), np.array([0.5, NAN]), ["q"])
