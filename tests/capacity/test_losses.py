"""Lost replicas: the simulation against what can be computed."""

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
    """No losses: mean, 95 % and closed form are the work over the replicas."""
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
def test_the_mean_is_the_expected_one(losses: ReplicaLosses) -> None:
    """Simulated and closed form agree within the simulation's own error.

    The closed form is that of the long run; a fleet that starts whole is ahead of it by what its
    first restarts would have taken, and so is given that much room.
    """
    work, replicas = 400.0, 8
    found = simulate(work, replicas, losses, seed=1)
    ahead = losses.per_hour * (losses.restart + losses.in_flight + losses.checkpoint) ** 2
    expected = expected_hours(work, replicas, losses)
    assert found.hours == pytest.approx(expected, abs=4 * found.standard_error + ahead)
    assert found.hours_95 > found.hours > work / replicas


def test_what_is_sent_again_is_the_expected_share() -> None:
    """With small losses, each costs the batch and half a checkpoint."""
    losses = ReplicaLosses(per_hour=0.5, restart=0.0, in_flight=0.01, checkpoint=0.02)
    found = simulate(500.0, 10, losses, seed=2)
    assert found.losses == pytest.approx(0.5 * 500.0, rel=0.05)
    assert found.resent_share == pytest.approx(0.5 * 0.02, rel=0.1)


def test_losses_without_rework_are_counted() -> None:
    """A loss that takes nothing with it is still a loss."""
    found = simulate(100.0, 4, ReplicaLosses(1.0, 0.1, 0.0, 0.0), seed=0)
    assert found.losses == pytest.approx(100.0, rel=0.1)
    assert found.resent_share == 0.0


def test_the_same_seed_gives_the_same_runs() -> None:
    """A plan can be repeated; another seed is another draw."""
    assert simulate(50.0, 3, OFTEN, seed=5) == simulate(50.0, 3, OFTEN, seed=5)
    assert simulate(50.0, 3, OFTEN, seed=5) != simulate(50.0, 3, OFTEN, seed=6)


def test_runs_that_outlive_what_was_drawn_are_not_drawn_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Few lives at a time give the same mean: slow runs are not replaced by quick ones."""
    whole = simulate(60.0, 2, OFTEN, seed=3)
    monkeypatch.setattr(module, "_lives", lambda losses: 2)
    pieces = simulate(60.0, 2, OFTEN, seed=4)
    error = whole.standard_error + pieces.standard_error
    assert pieces.hours == pytest.approx(whole.hours, abs=4 * error)


def test_a_part_of_a_large_fleet_has_the_same_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of the fleet with its part of the work: the same hours and, scaled, losses."""
    whole = simulate(4000.0, 80, OFTEN, seed=0)
    monkeypatch.setattr(module, "MOST_DRAWS", 1500)
    part = simulate(4000.0, 80, OFTEN, seed=0)
    assert part.replicas_simulated < whole.replicas_simulated == 80
    error = whole.standard_error + part.standard_error
    assert part.hours == pytest.approx(whole.hours, abs=4 * error)
    assert part.losses == pytest.approx(whole.losses, rel=0.02)


@settings(max_examples=15, deadline=None)
@given(st.floats(0.01, 1.0), st.floats(0.0, 0.2), st.floats(0.0, 0.2), st.floats(0.0, 0.2))
def test_losses_never_help(
    per_hour: float, restart: float, in_flight: float, checkpoint: float
) -> None:
    """With losses, no simulated run is quicker than without; what was lost is made up for."""
    found = simulate(20.0, 4, ReplicaLosses(per_hour, restart, in_flight, checkpoint), seed=0)
    assert found.hours >= 5.0 - 1e-9
    assert found.hours * 4 >= 20.0 * (1 + found.resent_share) - 1e-9


def test_a_fleet_that_is_always_lost_is_refused() -> None:
    """Where hardly any time is of use, the message says so instead of simulating for ever."""
    with pytest.raises(ConfigError, match="lost so often"):
        simulate(
            1.0, 1, ReplicaLosses(per_hour=60.0, restart=1.0, in_flight=0.1, checkpoint=0.0), 0
        )
