"""Which grading method to prefer: the best on the gold, how sure that is, and what costs less.

Votes decide, where there are any; then labels; then reference ratings. A method is called better
only when the interval of the difference leaves out zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rocketeval.audit.method_finding import DECIDED, LABELS, VOTES, Found, find_best
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.names import listed
from rocketeval.records import Gold, Interval, Usage

CHEAPER = 0.8
"""A method is cheaper if its judge computes at most this share of the tokens."""


@dataclass(frozen=True, slots=True)
class MethodAdvice:
    """The method that does best on the gold, and what may be taken instead."""

    best: str
    by: str
    """What decides: `decided votes`, `votes` (where all are ties), `labels` or `ratings`."""
    figure: float
    """Of the best: its agreement, or its Spearman."""
    gold: int
    """Votes, labelled responses or rated candidates it rests on."""
    next: str | None
    """The second best; None when there is one method."""
    lead: Interval | None
    """Of the best over the next; None where no interval can be given."""
    clear: bool
    """Whether the lead is beyond its interval."""
    cheaper: tuple[str, ...]
    """Methods that cost less and are not told apart from the best, the cheapest first."""
    rule: str | None
    """The best of what knows nothing of the responses."""
    above_rule: Interval | None
    """Of the best over that rule: the more methods were compared, the wider."""
    told: str
    """All this in sentences."""


def advise_method(
    grids: Mapping[str, ScoreGrid],
    longer: ScoreGrid,
    usages: Mapping[str, Usage | None],
    gold: Gold,
    config: RankingConfig,
) -> MethodAdvice | None:
    """Return which method to prefer; None where the gold does not say.

    The grids are laid out alike and score the same responses; `longer` scores them by length.
    """
    found = find_best(grids, longer, gold, config)
    if found is None:
        return None
    others = [name for name in found.figures if name != found.best]
    second = max(others, key=found.figures.__getitem__, default=None)
    lead = found.leads.get(second) if second else None
    cheaper = _cheaper(found, usages)
    rule = min(found.rules, key=lambda name: _value(found.rules[name]), default=None)
    above = found.rules[rule] if rule else None
    advice = MethodAdvice(
        best=found.best,
        by=found.by,
        figure=found.figures[found.best],
        gold=found.gold,
        next=second,
        lead=lead,
        clear=_above_zero(lead),
        cheaper=cheaper,
        rule=rule,
        above_rule=above,
        told="",
    )
    return _with_words(advice)


def _cheaper(found: Found, usages: Mapping[str, Usage | None]) -> tuple[str, ...]:
    """Return what costs less than the best and is not told apart from it, the cheapest first."""
    own = usages.get(found.best)
    costs = {
        name: _computed(usage)
        for name, usage in usages.items()
        if usage is not None and name in found.leads and name != found.best
    }
    if own is None:
        return ()
    alike = [
        name
        for name, cost in costs.items()
        if 0 < cost <= CHEAPER * _computed(own) and _reaches_zero(found.leads[name])
    ]
    return tuple(sorted(alike, key=costs.__getitem__))


def _computed(usage: Usage) -> int:
    """Tokens that the judge had to compute, read and not found in its cache, or written.

    Zero where the engine tells none.
    """
    return usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens


def _with_words(advice: MethodAdvice) -> MethodAdvice:
    sentences = (_lead(advice), _instead(advice), _warning(advice))
    return replace(advice, told=" ".join(sentence for sentence in sentences if sentence))


def _lead(advice: MethodAdvice) -> str:
    if advice.next is None:
        return f"Only {advice.best} is compared: {_does(advice)}."
    gap = _gap(advice, advice.lead)
    opening = f"{advice.best} does best" if _warning(advice) else f"Prefer {advice.best}"
    best, after = f"{opening}: {_does(advice)}", f"the next, {advice.next}"
    if advice.lead == Interval(0.0, 0.0, 0.0):
        return f"{best}, and {advice.next} does just the same."
    if advice.clear:
        return f"{best}, more than {after}, by {gap}."
    return f"{best}, but its lead over {after}, may be chance{f': {gap}' if gap else ''}."


def _does(advice: MethodAdvice) -> str:
    if advice.by in (DECIDED, VOTES):
        return f"it agrees with {100 * advice.figure:.1f}% of {advice.gold:,} {advice.by}"
    things = "labelled responses" if advice.by == LABELS else "rated candidates"
    return f"its Spearman is {advice.figure:.2f} over {advice.gold:,} {things}"


def _gap(advice: MethodAdvice, gap: Interval | None) -> str:
    if gap is None:
        return ""
    votes = advice.by in (DECIDED, VOTES)
    scale, digits, unit = (100.0, ".1f", " points") if votes else (1.0, ".2f", "")
    value, low, high = (format(scale * x, digits) for x in (gap.value, gap.low, gap.high))
    known = not (math.isnan(gap.low) or math.isnan(gap.high))
    return f"{value}{unit} ({f'{low} to {high}' if known else 'unknown'})"


def _instead(advice: MethodAdvice) -> str:
    if not advice.cheaper:
        return ""
    names = listed(advice.cheaper, most=3)
    verb = "costs" if len(advice.cheaper) == 1 else "cost"
    return f"{names} {verb} less and cannot be told apart from it here."


def _warning(advice: MethodAdvice) -> str:
    if advice.rule is None or _above_zero(advice.above_rule):
        return ""
    gap = _gap(advice, advice.above_rule)
    return (
        f"It is not clearly better than '{advice.rule}', which reads nothing"
        f"{f': {gap}' if gap else ''}. Trust none of them here yet."
    )


def _above_zero(gap: Interval | None) -> bool:
    return gap is not None and gap.low > 0.0


def _reaches_zero(gap: Interval | None) -> bool:
    """Whether the interval is known and holds zero: an unknown one says nothing."""
    return gap is not None and gap.low <= 0.0


def _value(gap: Interval | None) -> float:
    return math.inf if gap is None else gap.value
