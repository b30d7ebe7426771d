"""Sources of the assumptions."""

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


def test_given_overrides_measured_overrides_default() -> None:
    """The source of each value is recorded."""
    assert assume(
        CapacityOptions(rate=7.0), MeasuredRun(figures={"rate": SEEN})
    ).rate == CapacityFigure(7.0, "given")
    assert assume(CapacityOptions(), MeasuredRun(figures={"rate": SEEN})).rate == SEEN
    default = assume(CapacityOptions(), MeasuredRun()).rate
    assert (default.source, round(default.value, 1)) == ("paper", 49.6)
    assert "not your judge" in default.note


def test_loss_rate_of_zero_is_given() -> None:
    """Zero is a given value, not a missing one."""
    assert assume(CapacityOptions(losses=0.0), MeasuredRun()).losses == CapacityFigure(0.0, "given")


def test_every_default_has_a_note_and_a_title() -> None:
    """Every assumption is explained and printed."""
    assumed = assume(CapacityOptions(), MeasuredRun())
    figures = {
        field.name: getattr(assumed, field.name)
        for field in fields(Assumptions)
        if isinstance(getattr(assumed, field.name), CapacityFigure)
    }
    assert set(figures) == set(TITLES)
    assert all(figure.note for figure in figures.values())


def test_routing_depends_on_the_run_unless_given() -> None:
    """Without a header or a common request, routing is random; a given routing overrides."""
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


def test_published_rate_has_the_reason_in_its_note() -> None:
    """The note says why the run's rate is not used."""
    published = {"rate": published_rate("6 judgments are too few")}
    rate = assume(CapacityOptions(), MeasuredRun(figures=published)).rate
    assert rate.source == "paper"
    assert rate.note.endswith("; 6 judgments are too few")


def test_client_cost_matches_both_measurements() -> None:
    """One item per request costs 314 us per answer, eight cost 78, plus Ray's share."""
    alone = assume(CapacityOptions(), MeasuredRun())
    assert round(alone.client_us - 130 / 8) == 314
    calls = {"calls": CapacityFigure(1 / 8, "measured")}
    together = assume(CapacityOptions(), MeasuredRun(figures=calls))
    assert round(together.client_us - 130 / 8) == 78
