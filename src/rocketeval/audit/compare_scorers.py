"""Comparison of scorer kinds by nested cross-validation on the run's reference data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rocketeval.audit.figures import agreement_with_votes
from rocketeval.audit.labels import label_correlation
from rocketeval.config import RankingConfig, RunConfig, ScorerConfig
from rocketeval.errors import BenchmarkError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Interval
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import Learner, create_scorer
from rocketeval.scoring.crossfit import HeldOut, gold_about, held_out_scores
from rocketeval.scoring.read_answers import read_answers
from rocketeval.scoring.select import DEFAULTS, SelectScorer, choices
from rocketeval.scoring.split import split_gold
from rocketeval.store.run import RunStore

LEVEL = 0.95
"""Confidence level of the intervals."""


@dataclass(frozen=True, slots=True)
class LabelFigures:
    """Figures of one kind of scorer on held-out labels."""

    kind: str
    chosen: int | None
    """In how many outer folds the inner ones chose it; None for `select` itself."""
    pearson: Interval | None
    spearman: Interval | None
    rmse: Interval | None
    """Root mean squared error on the label scale."""


@dataclass(frozen=True, slots=True)
class VoteFigures:
    """Figures of one kind of scorer on held-out votes."""

    kind: str
    chosen: int | None
    """In how many outer folds the inner ones chose it; None for `select` itself."""
    with_ties: Interval | None
    """Share of votes that the scores predict, with ties by the tie margin."""
    without_ties: Interval | None
    """Share of decided votes won by the response with the higher score."""


@dataclass(frozen=True, slots=True)
class ScorerComparison:
    """Several kinds of scorers on the same held-out reference data."""

    learn_from: str
    """`labels` or `votes`."""
    rows: tuple[LabelFigures | VoteFigures, ...]
    """Simpler kinds first; `select`, which chooses among them, last."""
    take: str
    """The kind that `select` chooses on all reference data."""
    folds: int
    """Outer folds."""
    gold: int
    """Number of labels or votes on responses of the run."""
    queries: int
    """Number of queries with such labels or votes."""


@dataclass(frozen=True, eq=False)
class _Measure:
    """Reference data and settings for measuring held-out scores."""

    config: ScorerConfig
    ranking: RankingConfig
    answers: AnswerTable
    gold: Gold

    def figures(self, kind: str, chosen: int | None, held: HeldOut) -> LabelFigures | VoteFigures:
        answers, times, seed = self.answers, self.ranking.bootstrap, self.ranking.seed
        columns = (answers.query_ids, answers.candidates, held.scores.tolist())
        grid = ScoreGrid.from_columns(*columns).clustered(self.gold.clusters)
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
    """Return the figures of each kind that `config` (kind `select`) chooses among."""
    known = gold_about(answers, gold, config.learn_from)
    measure = _Measure(config, ranking, answers, known)
    nested = held_out_scores(config, answers, known)
    picked = Counter(each.chosen_ for each in nested.scorers if isinstance(each, SelectScorer))
    rows = [
        measure.figures(choice.kind, picked[choice.kind], held_out_scores(choice, answers, known))
        for choice in choices(config)
    ]
    rows.append(measure.figures("select", None, nested))
    reference = known.votes if config.learn_from == "votes" else known.labels
    return ScorerComparison(
        config.learn_from,
        tuple(rows),
        take=SelectScorer.create(config).fit(answers, known).chosen_,
        folds=len(nested.scorers),
        gold=len(reference),
        queries=len({each.query_id for each in reference}),
    )


def compare_kinds(
    store: RunStore, config: RunConfig, among: Sequence[str] | None
) -> ScorerComparison:
    """Compare kinds of scorers on the reference data that scorers may be fitted on.

    Candidates held out for the audit are excluded.
    """
    answers, _ = read_answers(store)
    inputs = store.inputs
    gold = Gold(inputs.labels(), inputs.votes(), clusters=inputs.clusters())
    _refuse_absent(gold, config.scorer.learn_from)
    scorer = _choice(config, among)
    learned = split_gold(gold, set(answers.candidates), scorer).learned
    return compare_scorers(scorer, answers, learned, config.ranking)


def _choice(config: RunConfig, among: Sequence[str] | None) -> ScorerConfig:
    """Return a `select` config for these kinds; the run's own kind keeps its options."""
    own = config.scorer
    if own.kind == "select" and among is None:
        return own
    kinds = list(among or DEFAULTS[own.learn_from])
    if among is None and own.kind not in kinds and isinstance(create_scorer(own), Learner):
        kinds.append(own.kind)
    settings = {own.kind: own.options} if own.kind in kinds else {}
    options = {"among": kinds, "settings": settings}
    return own.model_copy(update={"kind": "select", "options": options})


def _refuse_absent(gold: Gold, learn_from: str) -> None:
    found, other = (
        (gold.labels, gold.votes) if learn_from == "labels" else (gold.votes, gold.labels)
    )
    if found:
        return
    instead = "votes" if learn_from == "labels" else "labels"
    raise BenchmarkError(
        f"The run has no {learn_from}, so scorers cannot be compared on them.",
        hint=f"It has {len(other)} {instead}: set `scorer.learn_from: {instead}`."
        if other
        else f"Add {learn_from} to the benchmark and load it again.",
    )
