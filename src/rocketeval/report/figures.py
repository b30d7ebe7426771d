"""Figures as people read them: numbers with no more digits than they have, and whiskers."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import escape
from math import isfinite, isinf

from rocketeval.records import Interval

Formatter = Callable[[float], str]

_WIDTH, _HEIGHT, _MARGIN = 120, 16, 5


def whole(value: float) -> str:
    """Return a rating: no decimals.

    >>> whole(1034.4)
    '1034'
    """
    return _signed(f"{value:z.0f}")


def two_places(value: float) -> str:
    """Return a score, a probability or a coefficient: two decimals.

    >>> two_places(7.8149)
    '7.81'
    """
    return _signed(f"{value:z.2f}")


def share(value: float) -> str:
    """Return a share in per cent: one decimal.

    >>> share(0.5941)
    '59.4\N{NO-BREAK SPACE}%'
    """
    return _signed(f"{100 * value:z.1f}") + "\N{NO-BREAK SPACE}%"


def bounds(interval: Interval, formatter: Formatter) -> str:
    """Return the two ends of an interval; nothing for a figure that is exact.

    >>> bounds(Interval(0.1, -0.2, 0.4), two_places) == "\N{MINUS SIGN}0.20 to 0.40"
    True
    """
    if interval.low == interval.high:
        return ""
    if isinf(interval.low) and isinf(interval.high):
        return "unknown"
    joint = " to " if interval.low < 0 else "\N{EN DASH}"
    low = formatter(interval.low).removesuffix("\N{NO-BREAK SPACE}%")
    return f"{low}{joint}{formatter(interval.high)}"


def with_bounds(interval: Interval | None, formatter: Formatter) -> str:
    """Return a figure with its interval in one line of text.

    >>> with_bounds(Interval(7.81, 7.5, 8.1), two_places) == "7.81 (7.50\N{EN DASH}8.10)"
    True
    >>> with_bounds(None, two_places)
    'missing'
    """
    if interval is None:
        return "missing"
    ends = bounds(interval, formatter)
    return formatter(interval.value) + (f" ({ends})" if ends else "")


@dataclass(frozen=True, slots=True)
class Axis:
    """A stretch of numbers that several whiskers share, so that they can be compared."""

    low: float
    high: float

    @classmethod
    def around(
        cls, intervals: Iterable[Interval | None], *, including: Iterable[float] = ()
    ) -> Axis:
        """Return the axis that holds every finite end of `intervals` and `including`."""
        ends = [
            end
            for interval in intervals
            if interval is not None
            for end in (interval.value, interval.low, interval.high)
        ]
        finite = [end for end in (*ends, *including) if isfinite(end)]
        return cls(min(finite, default=0.0), max(finite, default=1.0))

    def place(self, value: float) -> float:
        """Return where `value` lies in the drawing, in pixels; what lies outside is clamped."""
        inside = min(max(value, self.low), self.high)
        span = self.high - self.low
        part = (inside - self.low) / span if span else 0.5
        return round(_MARGIN + part * (_WIDTH - 2 * _MARGIN), 1)


def whisker(interval: Interval | None, axis: Axis, label: str) -> str:
    """Return an SVG of the interval as a line and the value as a dot; nothing if it is missing.

    Presentation attributes only: the page's policy refuses style attributes.
    """
    if interval is None:
        return ""
    low, value, high = (axis.place(end) for end in (interval.low, interval.value, interval.high))
    middle = _HEIGHT / 2
    return (
        f'<svg class="whisker" width="{_WIDTH}" height="{_HEIGHT}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(label)}">'
        f'<line class="track" x1="0" x2="{_WIDTH}" y1="{middle}" y2="{middle}"/>'
        f'<line class="reach" x1="{low}" x2="{high}" y1="{middle}" y2="{middle}"/>'
        f'<circle class="point" cx="{value}" cy="{middle}" r="3.5"/></svg>'
    )


def _signed(number: str) -> str:
    return number.replace("-", "\N{MINUS SIGN}").replace("inf", "\N{INFINITY}")
