"""Scorers on held-out reference data, and the unbiased figure of the selection."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.audit.compare_scorers import LabelFigures, VoteFigures, compare_scorers
from rocketeval.audit.figures import agreement_with_votes
from rocketeval.config import RankingConfig, ScorerConfig
from rocketeval.errors import BenchmarkError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Interval, Label
from rocketeval.scoring.mean import MeanScorer
from support.made_runs import answer_table, made_run

RANKING = RankingConfig(bootstrap=100)


def config(*among: str, learn_from: str = "labels") -> ScorerConfig:
    """Return a selection among some kinds."""
    return ScorerConfig.model_validate(
        {"kind": "select", "learn_from": learn_from, "folds": 3, "options": {"among": among}}
    )


def test_labels_give_correlations_and_errors() -> None:
    """The mean has the figures of its plain scores; the ridge is better and chosen."""
    answers, gold = made_run(queries=8)
    found = compare_scorers(config("mean", "pooled_ridge"), answers, gold, RANKING)
    mean, ridge, select = found.rows
    assert [row.kind for row in found.rows] == ["mean", "pooled_ridge", "select"]
    assert (found.folds, found.gold, found.queries, found.take) == (3, 80, 8, "pooled_ridge")
    assert [row.chosen for row in found.rows] == [0, 3, None]
    assert isinstance(mean, LabelFigures)
    assert isinstance(ridge, LabelFigures)
    assert isinstance(select, LabelFigures)
    scores, labels = MeanScorer().predict(answers), np.array([x.value for x in gold.labels])
    assert mean.pearson is not None
    assert mean.pearson.value == pytest.approx(np.corrcoef(scores, labels)[0, 1])
    assert mean.rmse is not None
    assert mean.rmse.value == pytest.approx(np.sqrt(np.mean((scores - labels) ** 2)))
    assert mean.rmse.low < mean.rmse.value < mean.rmse.high
    assert ridge.rmse is not None
    assert ridge.rmse.value < mean.rmse.value
    assert select.rmse == ridge.rmse


def test_selection_on_noise_is_not_optimistic() -> None:
    """With nothing to learn, the row `select` is not better than the mean."""
    random = np.random.default_rng(1)
    rows = [(f"q{q}", f"c{c}", random.uniform(size=3).tolist()) for q in range(8) for c in range(6)]
    labels = [Label(query, name, float(random.uniform(1, 10))) for query, name, _ in rows]
    kinds = config("mean", "isotonic", "pooled_ridge")
    found = compare_scorers(kinds, answer_table(rows), Gold(labels), RANKING)
    pearson = {row.kind: row.pearson for row in found.rows if isinstance(row, LabelFigures)}
    assert isinstance(pearson["select"], Interval)
    assert pearson["select"].low < 0.0
    assert sum(row.chosen or 0 for row in found.rows) == 3


def test_votes_give_agreement() -> None:
    """The mean has the agreement of its plain scores, by the run's margin."""
    answers, gold = made_run(queries=9)
    ranking = RankingConfig(bootstrap=100, tie_margin=0.5)
    found = compare_scorers(config("mean", "hard", learn_from="votes"), answers, gold, ranking)
    grid = ScoreGrid.from_columns(
        answers.query_ids, answers.candidates, MeanScorer().predict(answers).tolist()
    )
    expected = agreement_with_votes(grid, gold.votes, tie_margin=0.5, bootstrap=100)
    first = found.rows[0]
    assert isinstance(first, VoteFigures)
    assert first.with_ties == expected.with_ties
    assert first.without_ties == expected.without_ties
    assert found.gold == len(gold.votes)


def test_one_labeled_candidate_is_too_few() -> None:
    """Nothing can be left out, and the error has the count."""
    answers, gold = made_run(queries=3)
    one = Gold([label for label in gold.labels if label.candidate == "c0"])
    with pytest.raises(BenchmarkError, match="labeled candidates; there are 1"):
        compare_scorers(config("mean", "isotonic"), answers, one, RANKING)
