"""The question that a run answers, after which it stops grading."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

GoalKind = Literal["best", "top", "beats", "within", "interval"]
GOALS = "best, top:K, beats:CANDIDATE, within:DELTA or interval:WIDTH"


@dataclass(frozen=True, slots=True)
class Goal:
    """A parsed goal."""

    kind: GoalKind
    count: int = 1
    """Number of candidates to find: 1 for `best`, K for `top`."""
    against: str = ""
    """The candidate that the others are compared with, for `beats`."""
    size: float = 0.0
    """DELTA of `within`, WIDTH of `interval`."""
    in_sd: bool = False
    """Whether DELTA is given in standard deviations of the scores, not on their scale."""


def parse_goal(text: str) -> Goal:
    """Return the goal; raise ValueError, in words, if it is none.

    >>> parse_goal("top:3").count, parse_goal("within:0.3sd").in_sd
    (3, True)
    """
    kind, _, value = (part.strip() for part in text.partition(":"))
    if kind == "best" and not value:
        return Goal("best")
    if kind == "top" and value.isdecimal() and 0 < int(value) < 10**6:
        return Goal("top", count=int(value))
    if kind == "beats" and value:
        return Goal("beats", against=value)
    in_sd = kind == "within" and value.endswith("sd")
    size = _positive(value.removesuffix("sd") if in_sd else value)
    if kind == "within" and size:
        return Goal("within", size=size, in_sd=in_sd)
    if kind == "interval" and size:
        return Goal("interval", size=size)
    raise ValueError(f"{text!r} is not a goal. Use {GOALS}.")


def _positive(text: str) -> float:
    """Return a positive number; 0 if the text is none."""
    try:
        number = float(text)
    except ValueError:
        return 0.0
    return number if math.isfinite(number) and number > 0.0 else 0.0
