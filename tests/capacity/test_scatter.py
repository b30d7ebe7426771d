"""Cost of scattering the items of a response."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketeval.capacity.model import ROUTINGS, Routing, replicas_touched, scatter_factor

SIZES = st.integers(1, 40), st.floats(1, 1e5), st.floats(1, 1e4), st.integers(1, 5000)


@pytest.mark.parametrize(("replicas", "factor"), [(4, 2.8), (8, 3.9), (233, 5.7)])
def test_known_factors(replicas: int, factor: float) -> None:
    """Check 1000-token prefixes with eight items of 60 tokens and random routing."""
    found = scatter_factor("random", 8, 1000, 60, replicas)
    assert found == pytest.approx(factor, rel=0.02)


def test_random_routing_matches_a_simulation() -> None:
    """The closed form matches simulated random routing."""
    thrown = np.random.default_rng(0).integers(0, 8, (20_000, 8))
    touched = np.mean([len(set(row)) for row in thrown.tolist()])
    assert replicas_touched("random", 8, 8) == pytest.approx(touched, rel=0.01)


def test_round_robin_reaches_all_replicas() -> None:
    """Eight items in turn reach all four replicas."""
    assert replicas_touched("round-robin", 8, 4) == 4.0


@given(*SIZES)
def test_together_is_best_and_round_robin_is_worst(
    items: int, prefix: float, item: float, replicas: int
) -> None:
    """For any lengths, the factor is 1 together, more at random, and most in turn."""
    best, middle, worst = (
        scatter_factor(routing, items, prefix, item, replicas) for routing in ROUTINGS
    )
    assert best == 1.0
    assert 1.0 - 1e-9 <= middle <= worst + 1e-9
    assert worst <= items


@given(st.sampled_from(ROUTINGS), *SIZES)
def test_more_replicas_scatter_more_and_are_no_slower(
    routing: Routing, items: int, prefix: float, item: float, replicas: int
) -> None:
    """The factor grows with the fleet, but never faster than the fleet."""
    few = scatter_factor(routing, items, prefix, item, replicas)
    many = scatter_factor(routing, items, prefix, item, replicas + 1)
    assert many >= few - 1e-9
    assert many / (replicas + 1) <= few / replicas + 1e-9
