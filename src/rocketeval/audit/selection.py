"""How well each kind of scorer does on gold it has not seen, and how well choosing one does.

Outer folds measure, inner folds choose (nested cross-validation): a kind that is picked because it
did best looks better than it is, so what picking is worth stands in a row of its own, `select`,
whose scores come from choices that never saw them. Folds are of candidates when labels are learned
from, of queries when votes are. Intervals resample queries.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from rocketeval.audit.agreement import agreement_with_votes
from rocketeval.audit.label_correlation import label_correlation
from rocketeval.config import RankingConfig, ScorerConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Interval
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.held_out import HeldOut, gold_about, held_out_scores
from rocketeval.scoring.select import SelectScorer, choices

LEVEL = 0.95
"""Confidence level of the intervals."""


@dataclass(frozen=True, slots=True)
class LabelFigures:
    """How one kind of scorer does on left-out labels."""

    kind: str
    chosen: int | None
    """In how many outer folds the inner ones chose it; None for `select` itself."""
    pearson: Interval | None
    spearman: Interval | None
    rmse: Interval | None
    """Root mean squared distance from the label, on the label scale."""


@dataclass(frozen=True, slots=True)
class VoteFigures:
    """How one kind of scorer does on left-out votes."""

    kind: str
    chosen: int | None
    """In how many outer folds the inner ones chose it; None for `select` itself."""
    with_ties: Interval | None
    """Share of votes whose outcome the scores give, ties by the margin."""
    without_ties: Interval | None
    """Share of votes that are not ties which the higher score won."""


@dataclass(frozen=True, slots=True)
class ScorerComparison:
    """Several kinds of scorers on the same left-out gold."""

    learn_from: str
    """`labels` or `votes`."""
    rows: tuple[LabelFigures | VoteFigures, ...]
    """Simpler kinds first; `select`, the choice among them, last."""
    take: str
    """The kind that a choice on all the gold takes."""
    folds: int
    """Outer folds."""
    gold: int
    """Labels or votes about responses of the run."""
    queries: int
    """Queries that they are about."""


@dataclass(frozen=True, eq=False)
class _Measure:
    """Gold and settings, against which held-out scores are measured."""

    config: ScorerConfig
    ranking: RankingConfig
    answers: AnswerTable
    gold: Gold

    def figures(self, kind: str, chosen: int | None, held: HeldOut) -> LabelFigures | VoteFigures:
        answers, times, seed = self.answers, self.ranking.bootstrap, self.ranking.seed
        grid = ScoreGrid.from_columns(answers.query_ids, answers.candidates, held.scores.tolist())
        if self.config.learn_from == "votes":
            agreement = agreement_with_votes(
                grid,
                self.gold.votes,
                tie_margin=self.ranking.tie_margin,
                bootstrap=times,
                seed=seed,
                level=LEVEL,
            )
            return VoteFigures(kind, chosen, agreement.with_ties, agreement.without_ties)
        found = label_correlation(grid, self.gold.labels, bootstrap=times, seed=seed, level=LEVEL)
        return LabelFigures(kind, chosen, found.pearson, found.spearman, found.rmse)


def compare_scorers(
    config: ScorerConfig, answers: AnswerTable, gold: Gold, ranking: RankingConfig
) -> ScorerComparison:
    """Return the figures of every kind that `config`, of kind `select`, chooses among."""
    known = gold_about(answers, gold, config.learn_from)
    measure = _Measure(config, ranking, answers, known)
    nested = held_out_scores(config, answers, known)
    picked = Counter(each.chosen_ for each in nested.scorers if isinstance(each, SelectScorer))
    rows = [
        measure.figures(choice.kind, picked[choice.kind], held_out_scores(choice, answers, known))
        for choice in choices(config)
    ]
    rows.append(measure.figures("select", None, nested))
    told = known.votes if config.learn_from == "votes" else known.labels
    return ScorerComparison(
        config.learn_from,
        tuple(rows),
        take=SelectScorer.create(config).fit(answers, known).chosen_,
        folds=len(nested.scorers),
        gold=len(told),
        queries=len({each.query_id for each in told}),
    )
