"""Comparison of grading methods on the same responses and reference data.

Only responses that every method scored count, so that no method gains by skipping hard ones. A
method that scored far fewer than the others is excluded. Differences are paired: both methods see
the same votes in every resample. The advice names the best method on votes, else on labels, else on
ratings, and cheaper methods tied with it.
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
    baseline_hits,
    find_paired_votes,
    hits,
    human_agreement,
    length_grid,
    measure_votes,
    random_agreement,
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
from rocketeval.text import NO_INTERVAL, between, join_words

DECIDED, VOTES, LABELS, RATINGS = "decided votes", "votes", "labels", "ratings"
"""Kinds of reference data that can decide; votes with ties only if all are ties."""


@dataclass(frozen=True, slots=True)
class MethodsByGold:
    """Figures of all methods on one kind of reference data."""

    by: str
    figures: Mapping[str, float]
    gold: int
    leads: Mapping[str, Interval | None]
    """Lead of the best method over each other method."""
    rules: Mapping[str, Interval | None]
    """Lead of the best method over each baseline."""

    @property
    def best(self) -> str:
        """Return the method with the highest figure."""
        return max(self.figures, key=self.figures.__getitem__)


def find_best(
    grids: Mapping[str, ScoreGrid], longer: ScoreGrid, gold: Gold, config: RankingConfig
) -> MethodsByGold | None:
    """Return the methods' figures on the reference data that decides; None without any.

    The grids have the same layout and score the same responses; `longer` scores them by length.
    """
    return (
        _by_votes(grids, longer, gold, config)
        or _by_labels(grids, longer, gold, config)
        or _by_ratings(grids, gold, config)
    )


def _corrected_level(methods: int) -> float:
    """Return the confidence level corrected for choosing the best of several methods."""
    return 1.0 - (1.0 - LEVEL) / methods


def _by_votes(
    grids: Mapping[str, ScoreGrid], longer: ScoreGrid, gold: Gold, config: RankingConfig
) -> MethodsByGold | None:
    first = next(iter(grids.values()))
    paired = find_paired_votes(first, gold.votes)
    settings = _settings(config)
    methods = {name: hits(paired, grid.scores, config.tie_margin) for name, grid in grids.items()}
    measured = measure_votes(paired, methods, **settings)
    agreed = {name: as_agreement(own, paired.given) for name, own in measured.items()}
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
        found = measure_votes(paired, less, **settings, level=level)
        sides = {
            name: each.without_ties if decided else each.with_ties for name, each in found.items()
        }
        return {name: None if side is None else side.value for name, side in sides.items()}

    return MethodsByGold(
        by=DECIDED if decided else VOTES,
        figures=figures,
        gold=agreed[best].decisive if decided else agreed[best].used,
        leads=leads(others, LEVEL),
        rules=leads(
            baseline_hits(paired, first, longer, config.tie_margin), _corrected_level(len(methods))
        ),
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
        rules={LONGER: lead(longer, _corrected_level(len(grids)))},
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
"""A method is cheaper if it computes at most this share of the best method's tokens."""


@dataclass(frozen=True, slots=True)
class MethodAdvice:
    """The best method on the reference data, and cheaper alternatives."""

    best: str
    by: str
    """The data that decides: `decided votes`, `votes` (if all are ties), `labels` or `ratings`."""
    figure: float
    """Agreement or Spearman correlation of the best method."""
    gold: int
    """Number of votes, labeled responses or rated candidates."""
    next: str | None
    """The second-best method; None with one method."""
    lead: Interval | None
    """Lead of the best over the next; None without an interval."""
    clear: bool
    """True if the lead is significant."""
    cheaper: tuple[str, ...]
    """Cheaper methods tied with the best, the cheapest first."""
    rule: str | None
    """The best baseline, of those that it does not beat if there are any."""
    above_rule: Interval | None
    """Lead of the best method over that baseline, corrected for the number of methods."""
    told: str
    """The advice in sentences."""


def advise_method(
    grids: Mapping[str, ScoreGrid],
    longer: ScoreGrid,
    usages: Mapping[str, Usage | None],
    gold: Gold,
    config: RankingConfig,
) -> MethodAdvice | None:
    """Return which method to prefer; None without usable reference data.

    The grids have the same layout and score the same responses; `longer` scores them by length.
    """
    found = find_best(grids, longer, gold, config)
    if found is None:
        return None
    others = [name for name in found.figures if name != found.best]
    second = max(others, key=found.figures.__getitem__, default=None)
    lead = found.leads.get(second) if second else None
    # A baseline that is not beaten comes first, then the best one.
    gaps = {
        name: (math.inf, math.inf) if gap is None else (above_zero(gap), gap.value)
        for name, gap in found.rules.items()
    }
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
    """Return cheaper methods tied with the best, the cheapest first."""
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
        # A method with an unknown interval does not count as tied.
        and (lead := found.leads[name]) is not None
        and lead.low <= 0.0
    ]
    return tuple(sorted(alike, key=costs.__getitem__))


def _computed(usage: Usage) -> int:
    """Return the tokens the judge computed: uncached prompt tokens and completion tokens.

    Zero if the engine reports none.
    """
    return usage.prompt_tokens - usage.cached_tokens + usage.completion_tokens


def _lead(advice: MethodAdvice) -> str:
    if advice.next is None:
        return f"Only {advice.best} was compared: {_does(advice)}."
    gap = _gap(advice, advice.lead)
    opening = f"{advice.best} is best" if _warning(advice) else f"Prefer {advice.best}"
    best, after = f"{opening}: {_does(advice)}", advice.next
    if advice.lead == Interval(0.0, 0.0, 0.0):
        return f"{best}; {advice.next} gives identical results."
    if advice.clear:
        return f"{best}, significantly better than {after} by {gap}."
    return f"{best}. It is tied with {after}{f', a difference of {gap}' if gap else ''}."


def _does(advice: MethodAdvice) -> str:
    if advice.by in (DECIDED, VOTES):
        return f"it agrees with {100 * advice.figure:.1f}% of {advice.gold:,} {advice.by}"
    things = "labeled responses" if advice.by == LABELS else "rated candidates"
    return f"its Spearman is {advice.figure:.2f} over {advice.gold:,} {things}"


def _gap(advice: MethodAdvice, gap: Interval | None) -> str:
    if gap is None:
        return ""
    votes = advice.by in (DECIDED, VOTES)
    scale, digits, unit = (100.0, ".1f", " points") if votes else (1.0, ".2f", "")
    value, low, high = (format(scale * x, digits) for x in (gap.value, gap.low, gap.high))
    known = not (math.isnan(gap.low) or math.isnan(gap.high))
    return f"{value}{unit} ({between(low, high) if known else NO_INTERVAL})"


def _instead(advice: MethodAdvice) -> str:
    if not advice.cheaper:
        return ""
    names = join_words(advice.cheaper, most=3)
    verb = "costs" if len(advice.cheaper) == 1 else "cost"
    return f"{names} {verb} less and {'is' if verb == 'costs' else 'are'} tied with it."


def _warning(advice: MethodAdvice) -> str:
    if advice.rule is None or above_zero(advice.above_rule):
        return ""
    gap = _gap(advice, advice.above_rule)
    return (
        f"It is not significantly better than the baseline '{advice.rule}'"
        f"{f': {gap}' if gap else ''}. Do not rely on any of these methods yet."
    )


LEAST_SCORED = 0.8
"""Exclude a method that scored less than this share of the most complete method's responses."""


@dataclass(frozen=True, slots=True)
class MethodGrades:
    """Scores and cost of one grading method."""

    grid: ScoreGrid
    usage: Usage | None = None
    """Usage of its judgments; None if it sent no requests."""
    unanswered: int = 0
    """Items without a usable answer."""
    unscored: int = 0
    """Responses without a score."""
    unfinished: int = 0
    """Responses whose judgment failed; another run retries them."""
    note: str = ""
    """A remark on its scores, as a sentence without the period."""


@dataclass(frozen=True, slots=True)
class MethodFigures:
    """Figures of one method on the reference data."""

    name: str
    agreement: Agreement | None = None
    """Agreement with votes; None without votes."""
    gain: Interval | None = None
    """Agreement with ties minus that of the first method, on the same votes."""
    labels: LabelCorrelation | None = None
    """Correlation with labels, on responses that all methods scored; None without labels."""
    ratings: Correlation | None = None
    """Correlation of mean scores with reference ratings; None without ratings."""
    unscored: int = 0
    """Responses without a score."""
    unanswered: int = 0
    """Items without a usable answer."""
    usage: Usage | None = None
    """Usage of its judgments."""
    unfinished: int = 0
    """Responses whose judgment failed; another run retries them."""
    note: str = ""
    """A remark on its scores, as a sentence without the period."""


@dataclass(frozen=True, slots=True)
class ExcludedMethod:
    """A method excluded from the comparison."""

    name: str
    reason: str
    """The reason, as a clause that starts with "it"."""
    figures: MethodFigures | None = None
    """Its usage and missing counts; None if it could not be run."""


@dataclass(frozen=True, slots=True)
class MethodComparison:
    """Comparison of grading methods."""

    FILE: ClassVar[str] = "methods"
    COMMAND: ClassVar[str] = "audit --methods"
    SCHEMA: ClassVar[int] = 1

    rows: tuple[MethodFigures, ...]
    """Methods in the requested order, then baselines."""
    voters: VoterAgreement | None
    """Human-human agreement."""
    responses: int
    """Responses that every compared method scored."""
    left_out: int
    """Responses left out because some compared method did not score them."""
    tie_margin: float
    apart: tuple[ExcludedMethod, ...] = ()
    """Excluded methods."""
    advice: MethodAdvice | None = None
    """Which method to prefer; None without usable reference data."""


def compare_methods(
    graded: Mapping[str, MethodGrades],
    lengths: Mapping[tuple[str, str], float],
    gold: Gold,
    config: RankingConfig,
) -> MethodComparison:
    """Return the figures of each method on the responses that all of them scored."""
    apart = _too_few(graded)
    compared = {name: each for name, each in graded.items() if name not in apart}
    grids, left_out = common_responses({name: each.grid for name, each in compared.items()})
    first = next(iter(grids.values()))
    longer = length_grid(first, lengths)
    rows = [
        _figures(name, grid, first, compared.get(name), gold, config)
        for name, grid in {**grids, LONGER: longer}.items()
    ]
    # Votes with unknown names are excluded from human-human agreement, too.
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
        human_agreement(
            usable, clusters=first.cluster_names(), bootstrap=config.bootstrap, seed=config.seed
        ),
        int(np.isfinite(first.scores).sum()),
        left_out,
        config.tie_margin,
        tuple(
            ExcludedMethod(name, why, _counts(name, graded[name])) for name, why in apart.items()
        ),
        advise_method(grids, longer, usages, gold, config),
    )


def _too_few(graded: Mapping[str, MethodGrades]) -> dict[str, str]:
    """Return the reason for each method excluded because it scored too few responses."""
    scored = {name: int(np.isfinite(each.grid.scores).sum()) for name, each in graded.items()}
    most = max(scored.values(), default=0)
    if not most:
        raise BenchmarkError(
            "No method scored any response.",
            hint="See failures.jsonl and the ledger of each method in the run's methods/ folder.",
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
    """Return a method's usage and missing counts, without figures."""
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
