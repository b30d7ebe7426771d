"""The audit stage: how far the scores agree with people, beside baselines that know nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.agreement import (
    Agreement,
    Ballots,
    Hits,
    Measured,
    MeasuredVotes,
    VoterAgreement,
    as_agreement,
    find_ballots,
    hits,
    human_agreement,
    measure_votes,
)
from rocketeval.audit.baselines import (
    GUESS,
    LABEL_TIE_MARGIN,
    LABELER,
    LENGTH_TIE_MARGIN,
    LONGER,
    TIE,
    always_tie_grid,
    guess_hits,
    length_grid,
    on_scale,
    random_agreement,
)
from rocketeval.audit.categories import CategoryAgreement, by_category, split_votes
from rocketeval.audit.correlation import Correlation, correlate
from rocketeval.audit.label_correlation import (
    LabelCorrelation,
    correlate_with_cells,
    spearman_difference,
)
from rocketeval.audit.training import Refused, honest_gold, labels_by_basis
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.outcomes import compare
from rocketeval.records import Basis, Gold, Interval
from rocketeval.scoring.labelled import label_cells

Floats = NDArray[np.float64]

JUDGE = "judge"
MARGINS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Tie margins that are tried beside the run's own, on a scale from 1 to 10."""


@dataclass(frozen=True, slots=True)
class MarginAgreement:
    """Agreement with votes by one tie margin."""

    margin: float
    with_ties: Interval | None
    ties: float | None
    """Share of the votes' comparisons that it makes a tie; None without usable votes."""


@dataclass(frozen=True, slots=True)
class Audit:
    """Every figure the gold allows; None or empty where there is no gold of that kind."""

    agreement: Mapping[str, Agreement]
    """By method: `judge`, simpler scorers, `labeler` (labels read as scores), then the baselines
    that know nothing."""
    voters: VoterAgreement | None
    """How often two voters agree: the ceiling."""
    ratings: Correlation | None
    """Our ratings against reference ratings."""
    labels: Mapping[str, Mapping[str, LabelCorrelation]]
    """Scores against labels: by which labels (`all labels`, or `held-out labels` and `labels out
    of fold` when the scorer learned from some), then by method."""
    refused: Refused
    """Gold left out because the fit that made the scores has learned from it."""
    categories: tuple[CategoryAgreement, ...] = ()
    """The judge's agreement by category of query; empty without categories."""
    tie_margin: float = 0.1
    """Scores closer than this are a tie (`ranking.tie_margin`)."""
    margins: tuple[MarginAgreement, ...] = ()
    """The judge's agreement by other tie margins."""
    vote_differences: Mapping[str, MeasuredVotes] = field(default_factory=dict)
    """The judge's agreement less that of each other method, on the same votes."""
    label_differences: Mapping[str, Mapping[str, Measured]] = field(default_factory=dict)
    """By which labels, then by method: the judge's Spearman over responses less the method's."""
    advice: tuple[str, ...] = ()
    """What all this means, in sentences."""


@dataclass(frozen=True, slots=True, eq=False)
class _Scorings:
    """The same responses scored in several ways, laid out alike."""

    judged: Mapping[str, ScoreGrid]
    """The run's own scores first, then simpler ways to score the same answers."""
    lengths: ScoreGrid
    labels: Floats
    """Laid out like the grids, where the run has a score."""
    scale: tuple[float, float]

    def hits(self, ballots: Ballots, tie_margin: float) -> dict[str, Hits]:
        """What every method, the guess included, makes of the votes."""
        grid = self.judged[JUDGE]
        found = {name: hits(ballots, own.scores, tie_margin) for name, own in self.judged.items()}
        labeled = hits(ballots, self.labels, on_scale(LABEL_TIE_MARGIN, self.scale))
        if not np.isnan(labeled.with_ties).all():
            found[LABELER] = labeled
        found[LONGER] = hits(ballots, self.lengths.scores, LENGTH_TIE_MARGIN)
        found[TIE] = hits(ballots, always_tie_grid(grid).scores, tie_margin)
        found[GUESS] = guess_hits(ballots)
        return found


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
) -> Audit:
    """Return the agreement of `grid` with the gold, beside that of simpler ways to score.

    `rivals` are grids of the same judgments scored otherwise, laid out like `grid`; `basis` says
    for every response with gold what its score in `grid` rests on; `categories` are by query id,
    and `scale` is that of scores and labels.
    """
    honest, refused = honest_gold(gold, basis)
    found = Audit(
        agreement={},
        voters=human_agreement(honest.votes, bootstrap=config.bootstrap, seed=config.seed),
        ratings=correlate(ranked, gold.ratings, seed=config.seed) if gold.ratings else None,
        labels={},
        refused=refused,
        tie_margin=config.tie_margin,
    )
    if not (honest.votes or honest.labels):
        return found
    parts = {
        part: label_cells(grid, labels)
        for part, labels in labels_by_basis(honest.labels, basis).items()
    }
    scorings = _Scorings(
        judged={JUDGE: grid, **rivals},
        lengths=length_grid(grid, lengths),
        labels=_merged(grid, [cells for cells, _ in parts.values()]),
        scale=scale,
    )
    if honest.votes:
        found = _with_votes(found, scorings, honest, config, categories or {})
    return _with_labels(found, scorings, parts, config)


def _merged(grid: ScoreGrid, parts: Sequence[Floats]) -> Floats:
    """The labels of all parts, no response being in two, where the grid has a score."""
    merged = np.full(grid.scores.shape, np.nan)
    for cells in parts:
        merged = np.where(np.isnan(cells), merged, cells)
    return np.where(np.isnan(grid.scores), np.nan, merged)


def _with_votes(
    found: Audit,
    scorings: _Scorings,
    gold: Gold,
    config: RankingConfig,
    categories: Mapping[str, str],
) -> Audit:
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}
    grid = scorings.judged[JUDGE]
    ballots = find_ballots(grid, gold.votes)
    methods = scorings.hits(ballots, config.tie_margin)
    judged = methods[JUDGE]
    margins = _margins(config.tie_margin, scorings.scale)
    split = split_votes(gold.votes, ballots, judged, categories)
    named: dict[tuple[str, str | float], Hits] = {
        **{("method", name): own for name, own in methods.items()},
        **{("less", name): judged - own for name, own in methods.items() if name != JUDGE},
        **{("margin", margin): hits(ballots, grid.scores, margin) for margin in margins},
        **{("category", name): judged.where(own) for name, own in split.chosen.items()},
    }
    measured = measure_votes(ballots, named, **settings)
    agreement = {name: as_agreement(measured["method", name], ballots.given) for name in methods}
    return replace(
        found,
        agreement={**agreement, GUESS: random_agreement(gold.votes)},
        categories=by_category(
            split, {name: measured["category", name] for name in split.chosen}, **settings
        ),
        margins=tuple(
            MarginAgreement(
                margin,
                as_agreement(measured["margin", margin], ballots.given).with_ties,
                _ties(grid, ballots, margin),
            )
            for margin in margins
        ),
        vote_differences={name: measured["less", name] for name in methods if name != JUDGE},
    )


def _margins(used: float, scale: tuple[float, float]) -> list[float]:
    return sorted({used, *(round(on_scale(margin, scale), 6) for margin in MARGINS)})


def _ties(grid: ScoreGrid, ballots: Ballots, margin: float) -> float | None:
    """The share of the votes' comparisons that the margin makes a tie."""
    first = grid.scores[ballots.rows, ballots.first]
    second = grid.scores[ballots.rows, ballots.second]
    scored = ~np.isnan(first - second)
    if not scored.any():
        return None
    return float((compare(first, second, margin)[scored] == 0).mean())


def _with_labels(
    found: Audit,
    scorings: _Scorings,
    parts: Mapping[str, tuple[Floats, int]],
    config: RankingConfig,
) -> Audit:
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}
    grid = scorings.judged[JUDGE]
    methods = {**scorings.judged, LONGER: scorings.lengths}
    labels: dict[str, dict[str, LabelCorrelation]] = {}
    differences: dict[str, dict[str, Measured]] = {}
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
    return replace(found, labels=labels, label_differences=differences)
