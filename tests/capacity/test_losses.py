"""Simulated losses of replicas, compared with the closed form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketeval.capacity import model as module
from rocketeval.capacity.model import ReplicaLosses, expected_hours, simulate
from rocketeval.errors import ConfigError

NEVER = ReplicaLosses(per_hour=0.0, restart=1.0, in_flight=1.0, checkpoint=1.0)
OFTEN = ReplicaLosses(per_hour=1.0, restart=0.1, in_flight=0.2, checkpoint=0.3)


@given(st.floats(0, 1e6), st.integers(1, 10_000))
def test_without_losses_it_is_a_division(work: float, replicas: int) -> None:
    """Without losses, mean, 95% quantile and closed form are work divided by replicas."""
    found = simulate(work, replicas, NEVER, seed=0)
    assert found.hours == found.hours_95 == expected_hours(work, replicas, NEVER)
    assert (found.losses, found.resent_share) == (0.0, 0.0)


@pytest.mark.parametrize(
    "losses",
    [
        OFTEN,
        ReplicaLosses(per_hour=0.05, restart=0.1, in_flight=0.01, checkpoint=0.003),
        ReplicaLosses(per_hour=1.0, restart=0.0, in_flight=0.1, checkpoint=0.0),
        ReplicaLosses(per_hour=2.0, restart=0.2, in_flight=0.0, checkpoint=0.5),
    ],
)
def test_simulated_mean_matches_the_closed_form(losses: ReplicaLosses) -> None:
    """Simulation and closed form agree within the standard error.

    The closed form is for the long run; a fleet that starts complete is slightly faster, which the
    tolerance allows for.
    """
    work, replicas = 400.0, 8
    found = simulate(work, replicas, losses, seed=1)
    ahead = losses.per_hour * (losses.restart + losses.in_flight + losses.checkpoint) ** 2
    expected = expected_hours(work, replicas, losses)
    assert found.hours == pytest.approx(expected, abs=4 * found.standard_error + ahead)
    assert found.hours_95 > found.hours > work / replicas


def test_resent_share_matches_expectation() -> None:
    """With few losses, each costs the batch and half a checkpoint interval."""
    losses = ReplicaLosses(per_hour=0.5, restart=0.0, in_flight=0.01, checkpoint=0.02)
    found = simulate(500.0, 10, losses, seed=2)
    assert found.losses == pytest.approx(0.5 * 500.0, rel=0.05)
    assert found.resent_share == pytest.approx(0.5 * 0.02, rel=0.1)


def test_losses_without_rework_are_counted() -> None:
    """A loss without lost work is still counted."""
    found = simulate(100.0, 4, ReplicaLosses(1.0, 0.1, 0.0, 0.0), seed=0)
    assert found.losses == pytest.approx(100.0, rel=0.1)
    assert found.resent_share == 0.0


def test_seed_determines_the_simulation() -> None:
    """The same seed gives the same result, another seed another one."""
    assert simulate(50.0, 3, OFTEN, seed=5) == simulate(50.0, 3, OFTEN, seed=5)
    assert simulate(50.0, 3, OFTEN, seed=5) != simulate(50.0, 3, OFTEN, seed=6)


def test_long_runs_are_extended_not_redrawn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Drawing few lifetimes at a time gives the same mean."""
    whole = simulate(60.0, 2, OFTEN, seed=3)
    monkeypatch.setattr(module, "_lives", lambda losses: 2)
    pieces = simulate(60.0, 2, OFTEN, seed=4)
    error = whole.standard_error + pieces.standard_error
    assert pieces.hours == pytest.approx(whole.hours, abs=4 * error)


def test_part_of_a_large_fleet_has_the_same_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulating a part of the fleet gives the same hours and, scaled, the same losses."""
    whole = simulate(4000.0, 80, OFTEN, seed=0)
    monkeypatch.setattr(module, "MOST_DRAWS", 1500)
    part = simulate(4000.0, 80, OFTEN, seed=0)
    assert part.replicas_simulated < whole.replicas_simulated == 80
    error = whole.standard_error + part.standard_error
    assert part.hours == pytest.approx(whole.hours, abs=4 * error)
    assert part.losses == pytest.approx(whole.losses, rel=0.02)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.01, 1.0), st.floats(0.0, 0.2), st.floats(0.0, 0.2), st.floats(0.0, 0.2))
def test_losses_never_save_time(
    per_hour: float, restart: float, in_flight: float, checkpoint: float
) -> None:
    """A run with losses is never faster, and lost work is redone."""
    found = simulate(20.0, 4, ReplicaLosses(per_hour, restart, in_flight, checkpoint), seed=0)
    assert found.hours >= 5.0 - 1e-9
    assert found.hours * 4 >= 20.0 * (1 + found.resent_share) - 1e-9


def test_too_frequent_losses_are_refused() -> None:
    """If almost no time is useful, there is an error instead of an endless simulation."""
    with pytest.raises(ConfigError, match="lost so often"):
        simulate(
            1.0, 1, ReplicaLosses(per_hour=60.0, restart=1.0, in_flight=0.1, checkpoint=0.0), 0
        )
