"""Every number says where it comes from."""

from __future__ import annotations

from dataclasses import fields

from rocketeval.capacity.model import (
    Assumptions,
    CapacityFigure,
    CapacityOptions,
    MeasuredRun,
    assume,
    published_rate,
)
from rocketeval.cli.plan_cluster import TITLES

SEEN = CapacityFigure(12.0, "measured", "seen")


def test_given_goes_before_measured_before_default() -> None:
    """The nearest source wins, and is named."""
    assert assume(
        CapacityOptions(rate=7.0), MeasuredRun(figures={"rate": SEEN})
    ).rate == CapacityFigure(7.0, "given")
    assert assume(CapacityOptions(), MeasuredRun(figures={"rate": SEEN})).rate == SEEN
    default = assume(CapacityOptions(), MeasuredRun()).rate
    assert (default.source, round(default.value, 1)) == ("paper", 49.6)
    assert "not your judge" in default.note


def test_a_loss_rate_of_zero_is_given_not_missing() -> None:
    """0 is an answer."""
    assert assume(CapacityOptions(losses=0.0), MeasuredRun()).losses == CapacityFigure(0.0, "given")


def test_every_default_says_what_it_stands_for() -> None:
    """Nobody has to guess what was assumed, and every figure has a line that is printed."""
    assumed = assume(CapacityOptions(), MeasuredRun())
    figures = {
        field.name: getattr(assumed, field.name)
        for field in fields(Assumptions)
        if isinstance(getattr(assumed, field.name), CapacityFigure)
    }
    assert set(figures) == set(TITLES)
    assert all(figure.note for figure in figures.values())


def test_routing_follows_what_keeps_items_together() -> None:
    """Nothing keeps them together: random, and why; what is given wins."""
    apart = assume(
        CapacityOptions(),
        MeasuredRun(together=False, routing_from="measured", routed_by="no header"),
    )
    assert (apart.routing, apart.routing_from) == ("random", "measured")
    assert apart.routed_by == "no header"
    given = assume(CapacityOptions(routing="round-robin"), MeasuredRun())
    assert (given.routing, given.routing_from) == ("round-robin", "given")
    unknown = assume(CapacityOptions(), MeasuredRun())
    assert (unknown.routing_from, bool(unknown.routed_by)) == ("assumed", True)


def test_a_published_rate_says_why_the_runs_own_is_not_taken() -> None:
    """What the run could not tell stands beside the default."""
    published = {"rate": published_rate("6 judgments are too few")}
    rate = assume(CapacityOptions(), MeasuredRun(figures=published)).rate
    assert rate.source == "paper"
    assert rate.note.endswith("; 6 judgments are too few")


def test_client_cost_is_that_of_the_two_measured_clients() -> None:
    """One item a call costs 314 us an answer, eight a call 78, and Ray's part of a row."""
    alone = assume(CapacityOptions(), MeasuredRun())
    assert round(alone.client_us - 130 / 8) == 314
    calls = {"calls": CapacityFigure(1 / 8, "measured")}
    together = assume(CapacityOptions(), MeasuredRun(figures=calls))
    assert round(together.client_us - 130 / 8) == 78
