"""Figures in sentences: with no more digits than they have, and a verdict only where one is due.

Better or worse is said only when the interval of the difference leaves out zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rocketeval.audit.figures import MeasuredFigure
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import least_queries
from rocketeval.text import count_of

Needed = Callable[[float, float, float], int | None]
"""How many queries tell an effect of some spread at some level, as `certainty.power` knows."""

LEVEL = 0.95
"""Confidence level of the audit's intervals."""
FARTHEST = 100
"""Where it would take more than so many times the queries there are, no number is given."""
DISTRUST = "Do not trust its scores here."


@dataclass(frozen=True, slots=True)
class FigureText:
    """One kind of figure in words."""

    on: str
    """What it is measured on."""
    gold: str
    """What to collect more of."""
    warning: str
    """What to do where the judge is worse than a rule that reads nothing."""
    figure: Callable[[float], str]
    gap: Callable[[Interval], str]


def verdict(
    ours: float, name: str, difference: MeasuredFigure, told: FigureText, needed: Needed
) -> Iterator[str]:
    """Whether the judge does better than the rule `name`, and if not, what would tell."""
    theirs = ours - difference.value.value
    figures = f"{told.figure(ours)} against {told.figure(theirs)}"
    sign = direction(difference)
    if sign is None:
        yield (
            f"On {told.on}, the judge cannot be told from {name} ({figures}): "
            f"{count_of(difference.queries, 'query', 'queries')} with {told.gold}, and "
            f"{least_queries(LEVEL)} are the fewest that can tell anything."
        )
    elif sign > 0:
        yield f"On {told.on}, the judge beats {name}: {figures}, {told.gap(difference.value)}."
    elif sign < 0:
        yield (
            f"On {told.on}, the judge does worse than {name}: {figures}, "
            f"{told.gap(difference.value)}. {told.warning}"
        )
    else:
        yield (
            f"On {told.on}, the judge is not told apart from {name}: {figures}, "
            f"{told.gap(difference.value)}. {_more(difference, told, needed)}"
        )


def _more(difference: MeasuredFigure, told: FigureText, needed: Needed) -> str:
    """How much more gold would tell a difference like the one seen."""
    effect, queries = difference.value.value, difference.queries
    told_by = None
    if abs(effect) > 1e-6 and not math.isnan(difference.spread):
        told_by = needed(effect, difference.spread, LEVEL)
    if told_by is None or told_by > FARTHEST * queries:
        return f"So small a difference would take over {FARTHEST} times the {told.gold}."
    more = max(told_by - queries, 1) / queries
    return (
        f"If it is real, about {about(more * difference.gold)} more {told.gold}, on "
        f"{about(more * queries)} more queries, would tell it four times in five."
    )


def simpler(name: str, difference: MeasuredFigure, told: FigureText) -> Iterator[str]:
    """Whether a simpler score of the same answers is good enough."""
    sign = direction(difference)
    if sign == 0:
        yield (
            f"The simpler score {name!r} does as well on {told.on}, as far as can be told: "
            f"{told.gap(difference.value)} between them."
        )
    elif sign is not None and sign < 0:
        gap = difference.value
        turned = Interval(-gap.value, -gap.high, -gap.low)
        yield f"The simpler score {name!r} does better on {told.on}: {told.gap(turned)}."


def direction(difference: MeasuredFigure) -> int | None:
    """1 for better, -1 for worse, 0 for not told apart; None below the fewest queries."""
    if math.isnan(difference.value.low):
        return None
    return (difference.value.low > 0.0) - (difference.value.high < 0.0)


def percent(share: float) -> str:
    """Return a share in whole percent."""
    return f"{100.0 * share:z.0f} %"


def span(interval: Interval) -> str:
    """Return the bounds of a share, in percent."""
    return f"{100.0 * interval.low:z.0f} to {100.0 * interval.high:z.0f}"


def points(gap: Interval) -> str:
    """Return a difference of two shares, in percentage points."""
    digits = 0 if abs(gap.value) >= 0.01 else 1
    value, low, high = (f"{100.0 * each:z.{digits}f}" for each in (gap.value, gap.low, gap.high))
    return f"{value} points ({low} to {high})"


def rho(value: float) -> str:
    """Return a coefficient."""
    return f"{value:z.2f}"


def rho_gap(gap: Interval) -> str:
    """Return a difference of two coefficients."""
    return f"a difference of {rho(gap.value)} ({rho(gap.low)} to {rho(gap.high)})"


def about(count: float) -> str:
    """Return a count with two digits that mean something.

    >>> about(1234), about(7.2)
    ('1,200', '8')
    """
    whole = math.ceil(count)
    return f"{round(whole, 2 - len(str(whole))):,}" if whole > 99 else f"{whole:,}"


def or_more(count: int) -> str:
    """Return a count as the least there is of something."""
    return "at least one" if count == 1 else f"{count} or more"


def luck(looked_at: int, found: int, tail: float) -> str:
    """Return how often there are so many or more, each by luck alone as likely as `tail`.

    >>> luck(20, 1, 0.05), luck(20, 10, 0.05)
    ('about 64 % of audits', 'fewer than 1 % of audits')
    """
    fewer = (
        math.comb(looked_at, count) * tail**count * (1.0 - tail) ** (looked_at - count)
        for count in range(found)
    )
    chance = 1.0 - math.fsum(fewer)
    return f"{'fewer than 1 %' if chance < 0.005 else f'about {percent(chance)}'} of audits"
