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
from rocketeval.audit.training import Refused, honest_gold, labels_by_basis
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Basis, Gold


@dataclass(frozen=True, slots=True)
class Audit:
    """Every figure the gold allows; None or empty where there is no gold of that kind."""

    agreement: Mapping[str, Agreement]
    """By method: `judge`, then the baselines."""
    voters: VoterAgreement | None
    """How often two voters agree: the ceiling."""
    ratings: Correlation | None
    """Our ratings against reference ratings."""
    labels: Mapping[str, Mapping[str, LabelCorrelation]]
    """Scores against labels: by which labels (`all labels`, or `held-out labels` and `labels out
    of fold` when the scorer learned from some), then by method."""
    refused: Refused
    """Gold left out because the fit that made the scores has learned from it."""


def audit(
    grid: ScoreGrid,
    rivals: Mapping[str, ScoreGrid],
    lengths: Mapping[tuple[str, str], float],
    ranked: Mapping[str, float],
    gold: Gold,
    basis: Mapping[tuple[str, str], Basis],
    config: RankingConfig,
) -> Audit:
    """Return the agreement of `grid` with the gold, beside that of simpler ways to score.

    `rivals` are grids of the same judgments scored otherwise; `basis` says for every response with
    gold what its score in `grid` rests on.
    """
    honest, refused = honest_gold(gold, basis)
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}

    def agree(scores: ScoreGrid, margin: float) -> Agreement:
        return agreement_with_votes(scores, honest.votes, tie_margin=margin, **settings)

    methods = {"judge": grid, **rivals}
    agreement: dict[str, Agreement] = {}
    if honest.votes:
        agreement = {name: agree(scores, config.tie_margin) for name, scores in methods.items()}
        agreement["longer response"] = agree(length_grid(grid, lengths), LENGTH_TIE_MARGIN)
        agreement["random guess"] = random_agreement(honest.votes)
    return Audit(
        agreement=agreement,
        voters=human_agreement(honest.votes, **settings),
        ratings=correlate(ranked, gold.ratings, seed=config.seed) if gold.ratings else None,
        labels={
            part: {
                name: label_correlation(scores, labels, **settings)
                for name, scores in methods.items()
            }
            for part, labels in labels_by_basis(honest.labels, basis).items()
        },
        refused=refused,
    )
