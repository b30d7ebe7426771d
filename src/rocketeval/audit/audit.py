"""The audit: agreement of the scores with reference data, compared with trivial baselines."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.audit.bias import Bias, find_bias
from rocketeval.audit.figures import (
    GUESS,
    LONGER,
    Agreement,
    MeasuredFigure,
    MeasuredVotes,
    VoteHits,
    VoterAgreement,
    as_agreement,
    find_paired_votes,
    hits,
    human_agreement,
    human_hits,
    length_grid,
    measure_votes,
    random_agreement,
)
from rocketeval.audit.labels import (
    LabelCorrelation,
    correlate_with_cells,
    query_difference,
    spearman_difference,
)
from rocketeval.audit.votes import (
    JUDGE,
    CategoryAgreement,
    MarginAgreement,
    ScoreVariants,
    by_category,
    merged_labels,
    share_of_ties,
    split_votes,
    tried_margins,
)
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Basis, Gold
from rocketeval.scoring.learning import label_cells
from rocketeval.scoring.split import RefusedGold, honest_gold, labels_by_basis
from rocketeval.stats.correlation import Correlation, correlate
from rocketeval.store.codec import OPTIONAL
from rocketeval.text import count_of


@dataclass(frozen=True, slots=True)
class MarkedAnswers:
    """Answers of a judge that people marked as wrong while they read.

    People choose what to mark, so the share is of a selected sample and no error rate.
    """

    answers: int
    """Different answers that were marked."""
    repeated: int
    """Those to which this run's judge gives the same answer, yes or no."""
    gone: int
    """Marked answers whose item or response is not in this run."""
    people: int

    def sentence(self) -> str:
        """Return the counts, and what they do not show."""
        known = self.answers - self.gone
        said = f"People marked {count_of(self.answers, 'answer', 'answers')} of a judge as wrong"
        if not known:
            return f"{said}; none of these items is in this run."
        share = f"{self.repeated} of {known} ({self.repeated / known:.0%})"
        return (
            f"{said}; this judge gives the same answer to {share}. People chose what to mark, so "
            "this is no error rate."
        )


@dataclass(frozen=True, slots=True)
class Audit:
    """Agreement of a run's scores with reference data; None or empty for a kind that is missing."""

    FILE: ClassVar[str] = "audit"
    COMMAND: ClassVar[str] = "audit"
    SCHEMA: ClassVar[int] = 1

    agreement: Mapping[str, Agreement] = field(default_factory=dict)
    """By method: `judge`, simpler scorers, `labeler` (labels used as scores), then baselines."""
    voters: VoterAgreement | None = None
    """Human-human agreement."""
    ratings: Correlation | None = None
    """Correlation of the ranking with reference ratings."""
    labels: Mapping[str, Mapping[str, LabelCorrelation]] = field(default_factory=dict)
    """Correlation of scores with labels: by kind of labels (`all labels`, or `held-out labels` and
    `labels out of fold` if the scorer was fitted on some), then by method."""
    refused: RefusedGold = field(default_factory=RefusedGold)
    """Reference data left out because the scorer was fitted on it."""
    categories: tuple[CategoryAgreement, ...] = ()
    """Agreement of the judge by category of query; empty without categories."""
    tie_margin: float = 0.1
    """Scores closer than this are a tie (`ranking.tie_margin`)."""
    margins: tuple[MarginAgreement, ...] = ()
    """Agreement of the judge at several tie margins."""
    vote_differences: Mapping[str, MeasuredVotes] = field(default_factory=dict)
    """Agreement of the judge minus that of each other method, on the same votes."""
    judge_with_humans: MeasuredVotes | None = None
    """Agreement of the judge on the votes that human-human agreement rests on."""
    human_difference: MeasuredVotes | None = None
    """Agreement of the judge minus human-human agreement, on the same votes."""
    label_differences: Mapping[str, Mapping[str, MeasuredFigure]] = field(default_factory=dict)
    """By kind of labels, then by method: the judge's Spearman over responses minus the method's."""
    query_differences: Mapping[str, MeasuredFigure] | None = field(default=None, metadata=OPTIONAL)
    """By kind of labels: the judge's mean Spearman within a query minus that of response length;
    None without labels, and in audits of earlier versions."""
    bias: Bias | None = None
    """Length bias and self-preference; None in an empty audit."""
    advice: tuple[str, ...] = ()
    """Conclusions in sentences."""
    marked: MarkedAnswers | None = field(default=None, metadata=OPTIONAL)
    """Answers that people marked as wrong; None if there are none."""

    @property
    def has_gold(self) -> bool:
        """Return whether the run has any usable reference data."""
        return bool(self.agreement or self.labels or self.ratings)


def audit(
    grid: ScoreGrid,
    rivals: Mapping[str, ScoreGrid],
    lengths: Mapping[tuple[str, str], float],
    ranked: Mapping[str, float],
    gold: Gold,
    basis: Mapping[tuple[str, str], Basis],
    config: RankingConfig,
    *,
    categories: Mapping[str, str] | None = None,
    scale: tuple[float, float] = (1.0, 10.0),
    family: AbstractSet[str] = frozenset(),
) -> Audit:
    """Compare the scores in `grid`, and simpler scores, with the reference data.

    `rivals` are grids of the same judgments from simpler scorers, with the layout of `grid`.
    `lengths` holds response lengths, at least for every query with reference data. `basis` gives
    the fit behind the score of each response with reference data. `categories` are by query id,
    `scale` is the scale of scores and labels, `family` names candidates of the judge's family.
    """
    honest, refused = honest_gold(gold, basis)
    parts = {
        part: label_cells(grid, labels)
        for part, labels in labels_by_basis(honest.labels, basis).items()
    }
    labels = merged_labels(grid, [cells for cells, _ in parts.values()]) if parts else None
    long, looked_at = length_grid(grid, lengths), {query for query, _ in lengths}
    found = Audit(
        voters=human_agreement(
            honest.votes,
            clusters=grid.cluster_names(),
            bootstrap=config.bootstrap,
            seed=config.seed,
        ),
        ratings=correlate(ranked, gold.ratings, seed=config.seed) if gold.ratings else None,
        refused=refused,
        tie_margin=config.tie_margin,
        bias=find_bias(grid, long, looked_at, labels, honest.votes, family, config),
    )
    if not (honest.votes or honest.labels):
        return found
    scorings = ScoreVariants({JUDGE: grid, **rivals}, long, labels, scale)
    if honest.votes:
        found = _with_votes(found, scorings, honest, config, categories or {})
    return _with_labels(found, scorings, parts, config)


def _with_votes(
    found: Audit,
    scorings: ScoreVariants,
    gold: Gold,
    config: RankingConfig,
    categories: Mapping[str, str],
) -> Audit:
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}
    grid = scorings.judged[JUDGE]
    paired = find_paired_votes(grid, gold.votes)
    methods = scorings.hits(paired, config.tie_margin)
    judged = methods[JUDGE]
    usable = [paired.votes[vote] for vote in np.flatnonzero(~np.isnan(judged.with_ties)).tolist()]
    margins = tried_margins(config.tie_margin, scorings.scale)
    split = split_votes(gold.votes, paired, judged, categories)
    named: dict[tuple[str, str | float], VoteHits] = {
        **{("method", name): own for name, own in methods.items()},
        **{("less", name): judged - own for name, own in methods.items() if name != JUDGE},
        **{("margin", margin): hits(paired, grid.scores, margin) for margin in margins},
        **{("category", name): judged.where(own) for name, own in split.chosen.items()},
    }
    people = human_hits(paired)
    shared = ~np.isnan(people.with_ties)
    if shared.any():
        named["people", "judge"] = judged.where(shared)
        named["people", "less"] = judged - people
    measured = measure_votes(paired, named, **settings)
    agreement = {name: as_agreement(measured["method", name], paired.given) for name in methods}
    return replace(
        found,
        agreement={**agreement, GUESS: random_agreement(usable, paired.given)},
        categories=by_category(
            split,
            {name: measured["category", name] for name in split.chosen},
            clusters=grid.cluster_names(),
            **settings,
        ),
        margins=tuple(
            MarginAgreement(
                margin,
                as_agreement(measured["margin", margin], paired.given).with_ties,
                share_of_ties(grid, paired, margin),
            )
            for margin in margins
        ),
        vote_differences={name: measured["less", name] for name in methods if name != JUDGE},
        judge_with_humans=measured.get(("people", "judge")),
        human_difference=measured.get(("people", "less")),
    )


def _with_labels(
    found: Audit,
    scorings: ScoreVariants,
    parts: Mapping[str, tuple[Floats, int]],
    config: RankingConfig,
) -> Audit:
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}
    grid = scorings.judged[JUDGE]
    methods = {**scorings.judged, LONGER: scorings.lengths}
    labels: dict[str, dict[str, LabelCorrelation]] = {}
    differences: dict[str, dict[str, MeasuredFigure]] = {}
    within: dict[str, MeasuredFigure] = {}
    for part, (laid_out, unknown) in parts.items():
        figures = {
            name: correlate_with_cells(scores, laid_out, unknown, **settings)
            for name, scores in methods.items()
        }
        # Characters are not on the label scale.
        figures[LONGER] = replace(figures[LONGER], rmse=None)
        labels[part] = figures
        compared = {
            name: spearman_difference(grid, scores, laid_out, **settings)
            for name, scores in methods.items()
            if name != JUDGE
        }
        differences[part] = {name: each for name, each in compared.items() if each is not None}
        lead = query_difference(grid, scorings.lengths, laid_out, **settings)
        if lead is not None:
            within[part] = lead
    return replace(
        found, labels=labels, label_differences=differences, query_differences=within or None
    )
