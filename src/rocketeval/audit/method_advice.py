"""Which grading method to prefer: the best on the gold, how sure that is, and what costs less.

Votes decide, where there are any; then labels; then reference ratings. A method is called better
only when the interval of the difference leaves out zero.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from rocketeval.audit.agreement import (
    Ballots,
    Hits,
    agreements,
    find_ballots,
    hits,
    vote_differences,
)
from rocketeval.audit.baselines import (
    GUESS,
    LENGTH_TIE_MARGIN,
    LONGER,
    TIE,
    always_tie_grid,
    guess_hits,
)
from rocketeval.audit.correlation import correlate
from rocketeval.audit.label_correlation import correlate_with_cells, spearman_difference
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.names import listed
from rocketeval.records import Gold, Interval, Usage
from rocketeval.scoring.labelled import label_cells

DECIDED, VOTES, LABELS, RATINGS = "decided votes", "votes", "labels", "ratings"
"""What can decide; votes with ties only where all of them are ties."""
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
    """Of the best over that rule."""
    told: str
    """All this in sentences."""


@dataclass(frozen=True, slots=True)
class _Found:
    """Methods by one kind of gold."""

    by: str
    figures: Mapping[str, float]
    gold: int
    leads: Mapping[str, Interval | None]
    """Of the best over each other method."""
    rules: Mapping[str, Interval | None]
    """Of the best over what knows nothing."""

    @property
    def best(self) -> str:
        return max(self.figures, key=self.figures.__getitem__)


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
    found = (
        _by_votes(grids, longer, gold, config)
        or _by_labels(grids, longer, gold, config)
        or _by_ratings(grids, gold, config)
    )
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


def _by_votes(
    grids: Mapping[str, ScoreGrid], longer: ScoreGrid, gold: Gold, config: RankingConfig
) -> _Found | None:
    first = next(iter(grids.values()))
    ballots = find_ballots(first, gold.votes)
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}
    methods = {name: hits(ballots, grid.scores, config.tie_margin) for name, grid in grids.items()}
    agreed = agreements(ballots, methods, **settings)
    decided = any(each.decisive for each in agreed.values())
    shares = {
        name: each.without_ties if decided else each.with_ties for name, each in agreed.items()
    }
    figures = {name: share.value for name, share in shares.items() if share is not None}
    if not figures:
        return None
    best = max(figures, key=figures.__getitem__)
    others = {name: own for name, own in methods.items() if name != best}
    rules = _rules(ballots, first, longer, config)
    leads: dict[str, Interval | None] = {}
    for name, found in vote_differences(
        ballots, methods[best], {**others, **rules}, **settings
    ).items():
        side = found.without_ties if decided else found.with_ties
        leads[name] = None if side is None else side.value
    return _Found(
        by=DECIDED if decided else VOTES,
        figures=figures,
        gold=agreed[best].decisive if decided else agreed[best].used,
        leads={name: leads[name] for name in others},
        rules={name: leads[name] for name in rules},
    )


def _rules(
    ballots: Ballots, first: ScoreGrid, longer: ScoreGrid, config: RankingConfig
) -> dict[str, Hits]:
    return {
        LONGER: hits(ballots, longer.scores, LENGTH_TIE_MARGIN),
        TIE: hits(ballots, always_tie_grid(first).scores, config.tie_margin),
        GUESS: guess_hits(ballots),
    }


def _by_labels(
    grids: Mapping[str, ScoreGrid], longer: ScoreGrid, gold: Gold, config: RankingConfig
) -> _Found | None:
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}
    laid_out, unknown = label_cells(longer, gold.labels)
    found = {
        name: correlate_with_cells(grid, laid_out, unknown, **settings)
        for name, grid in grids.items()
    }
    figures = {name: each.spearman.value for name, each in found.items() if each.spearman}
    if not figures:
        return None
    best = max(figures, key=figures.__getitem__)

    def lead(other: ScoreGrid) -> Interval | None:
        difference = spearman_difference(grids[best], other, laid_out, **settings)
        return None if difference is None else difference.value

    return _Found(
        by=LABELS,
        figures=figures,
        gold=found[best].responses,
        leads={name: lead(grids[name]) for name in figures if name != best},
        rules={LONGER: lead(longer)},
    )


def _by_ratings(grids: Mapping[str, ScoreGrid], gold: Gold, config: RankingConfig) -> _Found | None:
    if not gold.ratings:
        return None
    found = {
        name: correlate(grid.mean_by_candidate(), gold.ratings, seed=config.seed)
        for name, grid in grids.items()
    }
    figures = {name: each.spearman.value for name, each in found.items() if each.spearman}
    if not figures:
        return None
    rated = max(each.n for each in found.values())
    return _Found(RATINGS, figures, rated, dict.fromkeys(figures), {})


def _cheaper(found: _Found, usages: Mapping[str, Usage | None]) -> tuple[str, ...]:
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
        if cost <= CHEAPER * _computed(own) and _reaches_zero(found.leads[name])
    ]
    return tuple(sorted(alike, key=costs.__getitem__))


def _computed(usage: Usage) -> int:
    """Tokens that the judge had to compute: read and not found in its cache, or written."""
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
