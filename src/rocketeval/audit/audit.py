"""The audit stage: how far the scores agree with people, beside baselines that know nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rocketeval.audit.agreement import (
    Agreement,
    VoterAgreement,
    agreement_with_votes,
    human_agreement,
)
from rocketeval.audit.baselines import LENGTH_TIE_MARGIN, length_grid, random_agreement
from rocketeval.audit.correlation import Correlation, correlate
from rocketeval.audit.label_correlation import LabelCorrelation, label_correlation
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold


@dataclass(frozen=True, slots=True)
class Audit:
    """Every figure the gold allows; None where there is no gold of that kind."""

    agreement: Mapping[str, Agreement]
    """By method: `judge`, then `hard yes/no`, `longer response`, `random guess`."""
    voters: VoterAgreement | None
    """How often two voters agree: the ceiling."""
    ratings: Correlation | None
    """Our ratings against reference ratings."""
    labels: LabelCorrelation | None
    """Scores against labels."""


def audit(
    grid: ScoreGrid,
    hard_grid: ScoreGrid,
    lengths: Mapping[tuple[str, str], float],
    ranked: Mapping[str, float],
    gold: Gold,
    config: RankingConfig,
) -> Audit:
    """Return the agreement of `grid` with the gold, and of the baselines on the same votes."""

    def agree(scores: ScoreGrid, margin: float) -> Agreement:
        return agreement_with_votes(
            scores, gold.votes, tie_margin=margin, bootstrap=config.bootstrap, seed=config.seed
        )

    agreement: dict[str, Agreement] = {}
    if gold.votes:
        agreement = {
            "judge": agree(grid, config.tie_margin),
            "hard yes/no": agree(hard_grid, config.tie_margin),
            "longer response": agree(length_grid(grid, lengths), LENGTH_TIE_MARGIN),
            "random guess": random_agreement(gold.votes),
        }
    return Audit(
        agreement=agreement,
        voters=human_agreement(gold.votes, bootstrap=config.bootstrap, seed=config.seed),
        ratings=correlate(ranked, gold.ratings, seed=config.seed) if gold.ratings else None,
        labels=label_correlation(grid, gold.labels, bootstrap=config.bootstrap, seed=config.seed)
        if gold.labels
        else None,
    )
