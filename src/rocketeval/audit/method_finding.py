"""Which grading method does best on the gold: votes where there are any, then labels, then ratings.

A method is picked as the best of all that were compared, which flatters it. Whether it is better
than a rule that reads nothing is therefore asked as surely as if all had been asked (Bonferroni).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocketeval.audit.ballots import Hits, agreements, find_ballots, hits, vote_differences
from rocketeval.audit.baselines import LONGER, rule_hits
from rocketeval.audit.correlation import correlate
from rocketeval.audit.label_correlation import correlate_with_cells, spearman_difference
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Interval
from rocketeval.scoring.labelled import label_cells

DECIDED, VOTES, LABELS, RATINGS = "decided votes", "votes", "labels", "ratings"
"""What can decide; votes with ties only where all of them are ties."""
LEVEL = 0.95
"""How sure a difference must be."""


@dataclass(frozen=True, slots=True)
class Found:
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
) -> Found | None:
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
) -> Found | None:
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

    def leads(over: Mapping[str, Hits], level: float) -> dict[str, Interval | None]:
        found = vote_differences(ballots, methods[best], over, **settings, level=level)
        sides = {
            name: each.without_ties if decided else each.with_ties for name, each in found.items()
        }
        return {name: None if side is None else side.value for name, side in sides.items()}

    return Found(
        by=DECIDED if decided else VOTES,
        figures=figures,
        gold=agreed[best].decisive if decided else agreed[best].used,
        leads=leads(others, LEVEL),
        rules=leads(rule_hits(ballots, first, longer, config.tie_margin), _surer(len(methods))),
    )


def _by_labels(
    grids: Mapping[str, ScoreGrid], longer: ScoreGrid, gold: Gold, config: RankingConfig
) -> Found | None:
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

    def lead(other: ScoreGrid, level: float) -> Interval | None:
        difference = spearman_difference(grids[best], other, laid_out, **settings, level=level)
        return None if difference is None else difference.value

    return Found(
        by=LABELS,
        figures=figures,
        gold=found[best].responses,
        leads={name: lead(grids[name], LEVEL) for name in figures if name != best},
        rules={LONGER: lead(longer, _surer(len(grids)))},
    )


def _by_ratings(grids: Mapping[str, ScoreGrid], gold: Gold, config: RankingConfig) -> Found | None:
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
    return Found(RATINGS, figures, rated, dict.fromkeys(figures), {})
