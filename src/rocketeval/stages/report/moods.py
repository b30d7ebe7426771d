"""Moods and words that several numbers about trust share."""

from __future__ import annotations

from rocketeval.records import Interval
from rocketeval.report.data import Mood


def share(value: float) -> str:
    """Return a share in per cent."""
    return f"{100 * value:.1f} %"


def number(value: float) -> str:
    """Return a coefficient with a real minus sign."""
    return f"{value:.2f}".replace("-", "\N{MINUS SIGN}")


def by_limits(value: float, good: float, fair: float) -> Mood:
    """Return how good a figure is that is better the higher it is."""
    if value >= good:
        return "good"
    return "fair" if value >= fair else "poor"


def exact(value: float) -> Interval:
    """Return a figure that is counted, not estimated."""
    return Interval(value, value, value)
