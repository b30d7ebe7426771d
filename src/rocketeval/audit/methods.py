"""Several grading methods on the same responses, held against the same gold, in one table.

Only responses that every method scored count, so that no method looks better for having skipped
what is hard. A method that scored far fewer than the others would leave nothing to compare, so it
stands apart. Differences are paired: both methods meet the same votes in every resample. The advice
names the method that does best on votes, else on labels, else on ratings, and what costs less.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from rocketeval.audit.figures import (
    GUESS,
    LENGTH_TIE_MARGIN,
    LONGER,
    TIE,
    Agreement,
    VoteHits,
    VoterAgreement,
    agreement_with_votes,
    always_tie_grid,
    as_agreement,
    find_paired_votes,
    hits,
    human_agreement,
    length_grid,
    measure_votes,
    random_agreement,
    rule_hits,
    scored_votes,
)
from rocketeval.audit.labels import (
    LabelCorrelation,
    correlate_with_cells,
    label_correlation,
    spearman_difference,
)
from rocketeval.audit.votes import common_responses, gain_over, mean_scores
from rocketeval.audit.wording import LEVEL, above_zero
from rocketeval.config import RankingConfig
from rocketeval.errors import BenchmarkError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Interval, Usage
from rocketeval.scoring.learning import label_cells
from rocketeval.stats.correlation import Correlation, correlate
from rocketeval.text import join_words

DECIDED, VOTES, LABELS, RATINGS = "decided votes", "votes", "labels", "ratings"
"""What can decide; votes with ties only where all of them are ties."""


@dataclass(frozen=True, slots=True)
class MethodsByGold:
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
        """The method with the highest figure."""
        return max(self.figures, key=self.figures.__getitem__)


def find_best(
    grids: Mapping[str, ScoreGrid], longer: ScoreGrid, gold: Gold, config: RankingConfig
) -> MethodsByGold | None:
    """Return how the methods do on the gold that decides; None where there is none.

    The grids are laid out alike and score the same responses; `longer` scores them by length.
    """
    return (
        _by_votes(grids, longer, gold, config)
        or _by_labels(grids, longer, gold, config)
        or _by_ratings(grids, gold, config)
    )


def _surer(methods: int) -> float:
    """The level at which one of so many methods, picked as the best, is held against a rule."""
    return 1.0 - (1.0 - LEVEL) / methods


def _by_votes(
    grids: Mapping[str, ScoreGrid], longer: ScoreGrid, gold: Gold, config: RankingConfig
) -> MethodsByGold | None:
    first = next(iter(grids.values()))
    ballots = find_paired_votes(first, gold.votes)
    settings = _settings(config)
    methods = {name: hits(ballots, grid.scores, config.tie_margin) for name, grid in grids.items()}
    measured = measure_votes(ballots, methods, **settings)
    agreed = {name: as_agreement(own, ballots.given) for name, own in measured.items()}
    decided = any(each.decisive for each in agreed.values())
    shares = {
        name: each.without_ties if decided else each.with_ties for name, each in agreed.items()
    }
    figures = {name: share.value for name, share in shares.items() if share is not None}
    if not figures:
        return None
    best = max(figures, key=figures.__getitem__)
    others = {name: own for name, own in methods.items() if name != best}

    def leads(over: Mapping[str, VoteHits], level: float) -> dict[str, Interval | None]:
        less = {name: methods[best] - own for name, own in over.items()}
        found = measure_votes(ballots, less, **settings, level=level)
        sides = {
            name: each.without_ties if decided else each.with_ties for name, each in found.items()
        }
        return {name: None if side is None else side.value for name, side in sides.items()}

    return MethodsByGold(
        by=DECIDED if decided else VOTES,
        figures=figures,
        gold=agreed[best].decisive if decided else agreed[best].used,
        leads=leads(others, LEVEL),
        rules=leads(rule_hits(ballots, first, longer, config.tie_margin), _surer(len(methods))),
    )


def _by_labels(
    grids: Mapping[str, ScoreGrid], longer: ScoreGrid, gold: Gold, config: RankingConfig
) -> MethodsByGold | None:
    settings = _settings(config)
    laid_out, unknown = label_cells(longer, gold.labels)
    found = {
        name: correlate_with_cells(grid, laid_out, unknown, **settings)
        for name, grid in grids.items()
    }
    figures = {name: each.spearman.value for name, each in found.items() if each.spearman}
    if not figures:
        return None
    best = max(figures, key=figures.__getitem__)

    def lead(other: ScoreGrid, level: float) -> Interval | None:
        difference = spearman_difference(grids[best], other, laid_out, **settings, level=level)
        return None if difference is None else difference.value

    return MethodsByGold(
        by=LABELS,
        figures=figures,
        gold=found[best].responses,
        leads={name: lead(grids[name], LEVEL) for name in figures if name != best},
        rules={LONGER: lead(longer, _surer(len(grids)))},
    )


def _by_ratings(
    grids: Mapping[str, ScoreGrid], gold: Gold, config: RankingConfig
) -> MethodsByGold | None:
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
    return MethodsByGold(RATINGS, figures, rated, dict.fromkeys(figures), {})


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
    gaps = {name: math.inf if gap is None else gap.value for name, gap in found.rules.items()}
    rule = min(gaps, key=gaps.__getitem__, default=None)
    advice = MethodAdvice(
        best=found.best,
        by=found.by,
        figure=found.figures[found.best],
        gold=found.gold,
        next=second,
        lead=lead,
        clear=above_zero(lead),
        cheaper=_cheaper(found, usages),
        rule=rule,
        above_rule=found.rules[rule] if rule else None,
        told="",
    )
    sentences = (_lead(advice), _instead(advice), _warning(advice))
    return replace(advice, told=" ".join(filter(None, sentences)))


def _cheaper(found: MethodsByGold, usages: Mapping[str, Usage | None]) -> tuple[str, ...]:
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
        if 0 < cost <= CHEAPER * _computed(own)
        # An unknown interval says nothing.
        and (lead := found.leads[name]) is not None
        and lead.low <= 0.0
    ]
    return tuple(sorted(alike, key=costs.__getitem__))


def _computed(usage: Usage) -> int:
    """Tokens that the judge had to compute, read and not found in its cache, or written.

    Zero where the engine tells none.
    """
    return usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens


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
    names = join_words(advice.cheaper, most=3)
    verb = "costs" if len(advice.cheaper) == 1 else "cost"
    return f"{names} {verb} less and cannot be told apart from it here."


def _warning(advice: MethodAdvice) -> str:
    if advice.rule is None or above_zero(advice.above_rule):
        return ""
    gap = _gap(advice, advice.above_rule)
    return (
        f"It is not clearly better than '{advice.rule}', which reads nothing"
        f"{f': {gap}' if gap else ''}. Trust none of them here yet."
    )


LEAST_SCORED = 0.8
"""A method that scored less than this share of what the best scored is not compared."""


@dataclass(frozen=True, slots=True)
class MethodGrades:
    """What one method made of the responses."""

    grid: ScoreGrid
    usage: Usage | None = None
    """What its judgments cost; None when it asked nothing of its own."""
    unanswered: int = 0
    """Items without a usable answer."""
    unscored: int = 0
    """Responses without a score."""
    unfinished: int = 0
    """Of these, the ones whose judgment failed: another run tries them again."""
    note: str = ""
    """What must be known of its scores, as a sentence without its end."""


@dataclass(frozen=True, slots=True)
class MethodFigures:
    """One method against the gold."""

    name: str
    agreement: Agreement | None = None
    """With votes; None without votes."""
    gain: Interval | None = None
    """Agreement with ties above that of the first method, on the same votes."""
    labels: LabelCorrelation | None = None
    """With labels, on responses that all methods scored; None without labels."""
    ratings: Correlation | None = None
    """Order of the candidates by mean score against reference ratings; None without ratings."""
    unscored: int = 0
    """Responses without a score."""
    unanswered: int = 0
    """Items without a usable answer."""
    usage: Usage | None = None
    """What its judgments cost."""
    unfinished: int = 0
    """Responses whose judgment failed: another run tries them again."""
    note: str = ""
    """What must be known of its scores, as a sentence without its end."""


@dataclass(frozen=True, slots=True)
class ExcludedMethod:
    """A method that is not compared."""

    name: str
    reason: str
    """Why, as the end of a sentence about it."""
    figures: MethodFigures | None = None
    """What it took and what is missing; None when it could not be asked at all."""


@dataclass(frozen=True, slots=True)
class MethodComparison:
    """Methods side by side."""

    FILE: ClassVar[str] = "methods"
    COMMAND: ClassVar[str] = "audit --methods"
    SCHEMA: ClassVar[int] = 1

    rows: tuple[MethodFigures, ...]
    """As they were asked for; then what knows nothing of the responses."""
    voters: VoterAgreement | None
    """How often two voters agree: the ceiling."""
    responses: int
    """Responses that every compared method scored."""
    left_out: int
    """Responses that some compared method did not score, and that therefore do not count."""
    tie_margin: float
    apart: tuple[ExcludedMethod, ...] = ()
    """Methods that are not compared."""
    advice: MethodAdvice | None = None
    """Which method to prefer; None where the gold does not say."""


def compare_methods(
    graded: Mapping[str, MethodGrades],
    lengths: Mapping[tuple[str, str], float],
    gold: Gold,
    config: RankingConfig,
) -> MethodComparison:
    """Return the figures of every method on the responses that all of them scored."""
    apart = _too_few(graded)
    compared = {name: each for name, each in graded.items() if name not in apart}
    grids, left_out = common_responses({name: each.grid for name, each in compared.items()})
    first = next(iter(grids.values()))
    longer = length_grid(first, lengths)
    rows = [
        _figures(name, grid, first, compared.get(name), gold, config)
        for name, grid in {**grids, LONGER: longer}.items()
    ]
    # Of names that no response has, nothing is known: they say nothing about voters either.
    usable = scored_votes(first, gold.votes)[0]
    if usable:
        tie = agreement_with_votes(
            always_tie_grid(first), gold.votes, tie_margin=config.tie_margin, **_settings(config)
        )
        guess = random_agreement(usable, len(gold.votes))
        rows += [MethodFigures(TIE, tie), MethodFigures(GUESS, guess)]
    usages = {name: each.usage for name, each in compared.items()}
    return MethodComparison(
        tuple(rows),
        human_agreement(usable, **_settings(config)),
        int(np.isfinite(first.scores).sum()),
        left_out,
        config.tie_margin,
        tuple(
            ExcludedMethod(name, why, _counts(name, graded[name])) for name, why in apart.items()
        ),
        advise_method(grids, longer, usages, gold, config),
    )


def _too_few(graded: Mapping[str, MethodGrades]) -> dict[str, str]:
    """Return why methods that scored far fewer responses than the best stand apart."""
    scored = {name: int(np.isfinite(each.grid.scores).sum()) for name, each in graded.items()}
    most = max(scored.values(), default=0)
    if not most:
        raise BenchmarkError(
            "Not one of the methods has scored a response.",
            hint="See failures.jsonl and the ledger of each, under methods/ in the run.",
        )
    return {
        name: f"it scored only {own:,} of {most:,} responses"
        for name, own in scored.items()
        if own < LEAST_SCORED * most
    }


def _figures(
    name: str,
    grid: ScoreGrid,
    first: ScoreGrid,
    graded: MethodGrades | None,
    gold: Gold,
    config: RankingConfig,
) -> MethodFigures:
    settings = _settings(config)
    found = MethodFigures(name) if graded is None else _counts(name, graded)
    if gold.votes:
        margin = LENGTH_TIE_MARGIN if graded is None else config.tie_margin
        agreement = agreement_with_votes(grid, gold.votes, tie_margin=margin, **settings)
        gain = None if grid is first else gain_over(grid, first, gold.votes, config, margin)
        found = replace(found, agreement=agreement, gain=gain)
    if gold.labels:
        labels = label_correlation(grid, gold.labels, **settings)
        # Characters are not on the label scale.
        found = replace(found, labels=replace(labels, rmse=None) if graded is None else labels)
    if gold.ratings:
        ratings = correlate(mean_scores(grid), gold.ratings, seed=config.seed)
        found = replace(found, ratings=ratings)
    return found


def _counts(name: str, graded: MethodGrades) -> MethodFigures:
    """What a method took and what is missing, without any comparison."""
    return MethodFigures(
        name,
        unscored=graded.unscored,
        unanswered=graded.unanswered,
        usage=graded.usage,
        unfinished=graded.unfinished,
        note=graded.note,
    )


def _settings(config: RankingConfig) -> dict[str, int]:
    return {"bootstrap": config.bootstrap, "seed": config.seed}
