"""Replicas, hours, money and bytes for an amount of work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketeval.capacity.model import (
    BLOCK_SECONDS,
    JUDGMENTS_PER_PART,
    ROUTINGS,
    ROWS_PER_BLOCK,
    TASKS_PER_FILE,
    CapacityFigure,
    CapacityOptions,
    MeasuredRun,
    Routing,
    Size,
    assume,
    plan_capacity,
    size_for,
    store,
)
from rocketeval.distributed import driver
from rocketeval.distributed.staging import FILE_ROWS
from rocketeval.store.ledger import ROLL_ROWS

SAFE = CapacityOptions(losses=0)


def size(answers: float, given: CapacityOptions = SAFE) -> Size:
    return size_for(assume(given, MeasuredRun()), given, answers)


def test_figures_of_the_paper() -> None:
    """8M answers take 44.8 GPU hours and 16 USD; 1e9 answers in a day take 234 GPUs."""
    small = size(8e6, replace(SAFE, replicas=1))
    assert (round(small.gpu_hours, 1), round(small.money)) == (44.8, 16)
    large = size(1e9, replace(SAFE, hours=24))
    assert (large.replicas, round(large.gpu_hours)) == (234, 5595)


@given(st.floats(1e7, 1e10), st.floats(2, 50), st.integers(1, 5000))
def test_hours_money_and_bytes_are_linear_in_the_work(
    answers: float, times: float, replicas: int
) -> None:
    """N times the answers take N times as long, if all replicas have work."""
    one, many = (size(n, replace(SAFE, replicas=replicas)) for n in (answers, times * answers))
    for field in ("hours", "gpu_hours", "money", "responses"):
        assert getattr(many, field) == pytest.approx(times * getattr(one, field))
    for field in ("task_bytes", "ledger_bytes", "score_bytes", "disk_bytes"):
        found = getattr(many.storage, field)
        assert found == pytest.approx(times * getattr(one.storage, field))
    assert many.client_cores == pytest.approx(one.client_cores)


@given(st.floats(1, 1e4), st.floats(1.01, 10), st.floats(0.1, 100))
def test_faster_judge_never_costs_more(rate: float, times: float, hours: float) -> None:
    """A higher rate needs no more replicas, fewer hours and less money."""
    slow, fast = (size(1e8, replace(SAFE, rate=r, hours=hours)) for r in (rate, times * rate))
    assert fast.replicas <= slow.replicas
    slow, fast = (size(1e8, replace(SAFE, rate=r, replicas=7)) for r in (rate, times * rate))
    assert fast.hours < slow.hours
    assert fast.money < slow.money


@given(st.sampled_from(ROUTINGS), st.floats(1e3, 1e10), st.floats(0.1, 1000))
def test_proposed_replicas_meet_the_deadline_and_one_less_does_not(
    routing: Routing, answers: float, hours: float
) -> None:
    """Without losses, the fleet is the smallest that meets the deadline, for any routing."""
    found = size(answers, replace(SAFE, routing=routing, hours=hours))
    assert found.deadline_met == (found.hours <= hours)
    if found.replicas < found.responses / 64:
        assert found.deadline_met
    if found.replicas > 1:
        fewer = replace(SAFE, routing=routing, replicas=found.replicas - 1)
        assert size(answers, fewer).hours > hours


@settings(max_examples=10, deadline=None)
@given(st.floats(1e5, 1e8), st.floats(1, 48), st.floats(0.01, 0.5))
def test_deadline_holds_with_losses(answers: float, hours: float, losses: float) -> None:
    """95% of the simulated runs meet the deadline with the proposed replicas."""
    found = size(answers, CapacityOptions(hours=hours, losses=losses, restart_minutes=10))
    assert found.deadline_met
    assert found.rework.hours_95 <= hours
    assert found.replicas >= size(answers, replace(SAFE, hours=hours)).replicas


def test_impossible_deadline_is_reported() -> None:
    """More replicas than batches do not help, so the deadline is missed."""
    found = size(8 * 65, CapacityOptions(hours=1e-6, losses=0))
    assert (found.replicas, found.deadline_met) == (2, False)


def test_replicas_beyond_the_batches_are_idle() -> None:
    """65 responses in batches of 64 use two of ten replicas."""
    ten, two = (size(8 * 65, replace(SAFE, replicas=replicas)) for replicas in (10, 2))
    assert (ten.replicas, ten.idle, two.idle) == (2, 8, 0)
    assert (ten.hours, ten.client_cores) == (two.hours, two.client_cores)
    assert size(8 * 65, replace(SAFE, replicas=10, batch=10)).replicas == 7


def test_scatter_costs_hours_and_money() -> None:
    """Time and money grow with the computed tokens."""
    together, apart = (
        size(1e8, replace(SAFE, replicas=8, routing=routing)) for routing in ROUTINGS[:2]
    )
    assert apart.money == pytest.approx(together.money * apart.scatter)
    assert apart.scatter == pytest.approx(3.9, rel=0.02)


def test_losses_are_paid_for() -> None:
    """The extra money is that of all replicas for the extra hours."""
    found = size(1e7, CapacityOptions(replicas=4, losses=0.5, gpu_hour=2.0, gpus=2))
    assert found.extra_money == pytest.approx(found.extra_hours * 4 * 2 * 2.0)
    assert 0 < found.extra_hours < found.extra_hours_95


def test_file_lengths_match_the_writers() -> None:
    """The constants equal those of the modules that write the files."""
    assert (TASKS_PER_FILE, JUDGMENTS_PER_PART) == (FILE_ROWS, ROLL_ROWS)
    assert (ROWS_PER_BLOCK, BLOCK_SECONDS) == (driver.BLOCK_ROWS, driver.BLOCK_SECONDS)


def test_written_objects_are_counted() -> None:
    """There are blocks, by rows or by time, and three files."""
    each = {"task_bytes": 10, "ledger_bytes": 2, "score_bytes": 1, "batch": 64}
    figures = {name: CapacityFigure(value, "measured") for name, value in each.items()}
    assumed = assume(SAFE, MeasuredRun(figures=figures))
    found = store(assumed, 130, 0.0)
    assert found.puts == 1 + 3
    assert store(assumed, 130, 20 / 3600).puts == 10 + 3
    assert store(assumed, 130, 1.0).puts == 130 + 3
    assert store(assumed, 3 * ROWS_PER_BLOCK, 2 / 3600).puts == 3 + 3
    assert found.disk_bytes == 130 * (10 + 2 * 2 + 1)


def test_plan_covers_the_run_and_round_amounts() -> None:
    """The plan has 1e6 to 1e10 answers, and the run unless nothing is left to ask."""
    found = plan_capacity(SAFE, MeasuredRun(answers=800, responses=100))
    assert [row.answers for row in found.sizes] == [1e6, 1e7, 1e8, 1e9, 1e10]
    assert found.this_run is not None
    assert (found.this_run.answers, found.this_run.responses) == (800, 100)
    assert (found.deadline, found.deadline_given) == (24.0, False)
    assert plan_capacity(SAFE, MeasuredRun()).this_run is None


def test_plan_with_losses_is_reproducible() -> None:
    """The simulation has a fixed seed."""
    given = CapacityOptions(replicas=4)
    assert plan_capacity(given, MeasuredRun()) == plan_capacity(given, MeasuredRun())
