"""Several grading methods on the same responses, held against the same gold, in one table.

Only responses that every method scored count, so that no method looks better for having skipped
what is hard. A method that scored far fewer than the others would leave nothing to compare, so it
stands apart. Differences are paired: both methods meet the same votes in every resample.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rocketeval.audit.agreement import agreement_with_votes, human_agreement, scored_votes
from rocketeval.audit.ballots import find_ballots, hits, vote_differences
from rocketeval.audit.baselines import (
    GUESS,
    LENGTH_TIE_MARGIN,
    LONGER,
    TIE,
    always_tie_grid,
    length_grid,
    random_agreement,
)
from rocketeval.audit.correlation import Correlation, correlate
from rocketeval.audit.figures import Agreement, VoterAgreement
from rocketeval.audit.label_correlation import LabelCorrelation, label_correlation
from rocketeval.audit.method_advice import MethodAdvice, advise_method
from rocketeval.audit.same_cells import common_cells, laid_out_like, mean_scores
from rocketeval.config import RankingConfig
from rocketeval.errors import BenchmarkError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Interval, Usage, Vote

LEAST_SCORED = 0.8
"""A method that scored less than this share of what the best scored is not compared."""


@dataclass(frozen=True, slots=True)
class GradedBy:
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
    agreement: Agreement | None
    """With votes; None without votes."""
    gain: Interval | None
    """Agreement with ties above that of the first method, on the same votes."""
    labels: LabelCorrelation | None
    """With labels, on responses that all methods scored; None without labels."""
    ratings: Correlation | None
    """Order of the candidates by mean score against reference ratings; None without ratings."""
    unscored: int
    """Responses without a score."""
    unanswered: int
    """Items without a usable answer."""
    usage: Usage | None
    """What its judgments cost."""
    unfinished: int = 0
    """Responses whose judgment failed: another run tries them again."""
    note: str = ""
    """What must be known of its scores, as a sentence without its end."""


@dataclass(frozen=True, slots=True)
class Apart:
    """A method that is not compared."""

    name: str
    reason: str
    """Why, as the end of a sentence about it."""
    figures: MethodFigures | None = None
    """What it took and what is missing; None when it could not be asked at all."""


@dataclass(frozen=True, slots=True)
class MethodComparison:
    """Methods side by side."""

    rows: tuple[MethodFigures, ...]
    """As they were asked for; then what knows nothing of the responses."""
    voters: VoterAgreement | None
    """How often two voters agree: the ceiling."""
    responses: int
    """Responses that every compared method scored."""
    left_out: int
    """Responses that some compared method did not score, and that therefore do not count."""
    tie_margin: float
    apart: tuple[Apart, ...] = ()
    """Methods that are not compared."""
    advice: MethodAdvice | None = None
    """Which method to prefer; None where the gold does not say."""


def compare_methods(
    graded: Mapping[str, GradedBy],
    lengths: Mapping[tuple[str, str], float],
    gold: Gold,
    config: RankingConfig,
) -> MethodComparison:
    """Return the figures of every method on the responses that all of them scored."""
    apart = _too_few(graded)
    compared = {name: each for name, each in graded.items() if name not in apart}
    grids, left_out = common_cells({name: each.grid for name, each in compared.items()})
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
        rows += [
            _knows_nothing(TIE, tie),
            _knows_nothing(GUESS, random_agreement(usable, len(gold.votes))),
        ]
    usages = {name: each.usage for name, each in compared.items()}
    return MethodComparison(
        tuple(rows),
        human_agreement(usable, **_settings(config)),
        int(np.isfinite(first.scores).sum()),
        left_out,
        config.tie_margin,
        tuple(Apart(name, why, _counts(name, graded[name])) for name, why in apart.items()),
        advise_method(grids, longer, usages, gold, config),
    )


def _too_few(graded: Mapping[str, GradedBy]) -> dict[str, str]:
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


def gain_over(
    grid: ScoreGrid,
    other: ScoreGrid,
    votes: Sequence[Vote],
    config: RankingConfig,
    margin: float | None = None,
) -> Interval | None:
    """How much more often `grid` than `other` says what the votes say; None without votes.

    On votes that both speak about. `margin` is that of `grid`, where its scale is another.
    """
    own_margin = config.tie_margin if margin is None else margin
    ballots = find_ballots(grid, votes)
    ours = hits(ballots, grid.scores, own_margin)
    theirs = hits(ballots, laid_out_like(grid, other), config.tie_margin)
    found = vote_differences(ballots, ours, {"": theirs}, **_settings(config))[""].with_ties
    return None if found is None else found.value


def _figures(
    name: str,
    grid: ScoreGrid,
    first: ScoreGrid,
    graded: GradedBy | None,
    gold: Gold,
    config: RankingConfig,
) -> MethodFigures:
    settings = _settings(config)
    margin = LENGTH_TIE_MARGIN if graded is None else config.tie_margin
    agreement = gain = labels = ratings = None
    if gold.votes:
        agreement = agreement_with_votes(grid, gold.votes, tie_margin=margin, **settings)
        gain = None if grid is first else gain_over(grid, first, gold.votes, config, margin)
    if gold.labels:
        labels = label_correlation(grid, gold.labels, **settings)
    if gold.ratings:
        ratings = correlate(mean_scores(grid), gold.ratings, seed=config.seed)
    if graded is None:
        # Characters are not on the label scale.
        labels = labels and replace(labels, rmse=None)
        return MethodFigures(name, agreement, gain, labels, ratings, 0, 0, None)
    counts = _counts(name, graded)
    return replace(counts, agreement=agreement, gain=gain, labels=labels, ratings=ratings)


def _counts(name: str, graded: GradedBy) -> MethodFigures:
    """What a method took and what is missing, without any comparison."""
    missing = (graded.unscored, graded.unanswered, graded.usage, graded.unfinished)
    return MethodFigures(name, None, None, None, None, *missing, graded.note)


def _knows_nothing(name: str, agreement: Agreement) -> MethodFigures:
    return MethodFigures(name, agreement, None, None, None, 0, 0, None)


def _settings(config: RankingConfig) -> dict[str, int]:
    return {"bootstrap": config.bootstrap, "seed": config.seed}
