"""Figures are printed with the digits they have, and drawn where they lie."""

from __future__ import annotations

from math import inf
from xml.etree import ElementTree

import pytest

from rocketeval.records import Interval
from rocketeval.report.figures import Axis, bounds, share, two_places, whisker, whole, with_bounds


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (whole(1034.4), "1034"),
        (whole(-0.4), "0"),
        (two_places(7.8149), "7.81"),
        (two_places(-0.126), "\N{MINUS SIGN}0.13"),
        (two_places(-0.001), "0.00"),
        (two_places(inf), "\N{INFINITY}"),
        (share(0.5941), "59.4\N{NO-BREAK SPACE}%"),
    ],
)
def test_digits(shown: str, expected: str) -> None:
    """Ratings are whole, scores have two decimals, shares one, and zero has no sign."""
    assert shown == expected


def test_bounds_say_the_unit_once() -> None:
    """A share's interval carries its per cent sign at the end only."""
    assert bounds(Interval(0.5, 0.412, 0.588), share) == "41.2\N{EN DASH}58.8\N{NO-BREAK SPACE}%"


def test_negative_bounds_are_not_joined_by_a_dash() -> None:
    """A minus sign next to a dash would be misread."""
    assert bounds(Interval(0.1, -0.2, 0.4), two_places) == "\N{MINUS SIGN}0.20 to 0.40"


def test_exact_figure_has_no_interval() -> None:
    """A constant such as a coin toss is shown without an empty interval."""
    assert with_bounds(Interval(0.5, 0.5, 0.5), two_places) == "0.50"


def test_missing_figure_is_said_to_be_missing() -> None:
    """None never becomes a number."""
    assert with_bounds(None, whole) == "missing"


def test_whisker_spans_its_interval() -> None:
    """The line covers the interval and the dot lies at the value, on the shared axis."""
    drawn = ElementTree.fromstring(whisker(Interval(5, 0, 10), Axis(0, 10), "5"))
    reach = drawn.find("line[@class='reach']")
    point = drawn.find("circle")
    assert reach is not None
    assert point is not None
    assert (reach.get("x1"), point.get("cx"), reach.get("x2")) == ("5.0", "60.0", "115.0")


def test_unbounded_interval_is_drawn_to_the_edge() -> None:
    """An infinite end neither stretches the axis nor leaves the drawing."""
    never_lost = Interval(1500, 1400, inf)
    axis = Axis.around([never_lost, Interval(900, 800, 1000)])
    assert (axis.low, axis.high) == (800, 1500)
    assert axis.place(inf) == axis.place(1500)


def test_axis_of_one_point_puts_it_in_the_middle() -> None:
    """A single candidate without spread is drawn, not divided by zero."""
    assert Axis.around([Interval(7, 7, 7)]).place(7) == 60


def test_whisker_label_cannot_leave_its_attribute() -> None:
    """The label is escaped like every other text."""
    drawn = ElementTree.fromstring(whisker(Interval(1, 0, 2), Axis(0, 2), '"><script>'))
    assert drawn.get("aria-label") == '"><script>'
