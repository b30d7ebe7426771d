"""Held-out scores come from fits without their fold."""

from __future__ import annotations

from typing import ClassVar, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.config import ScorerConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Gold
from rocketeval.scoring import crossfit as held_out
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.mean import MeanScorer
from support.made_runs import made_run


class Witness(MeanScorer):
    """A scorer that records what each fit and prediction was given."""

    seen: ClassVar[list[tuple[AnswerTable, Gold, AnswerTable]]] = []

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        self.shown_ = answers, gold
        return self

    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        Witness.seen.append((*self.shown_, answers))
        return super().predict(answers)


@pytest.fixture
def witness(monkeypatch: pytest.MonkeyPatch) -> type[Witness]:
    monkeypatch.setattr(held_out, "create_scorer", lambda config: Witness())
    Witness.seen.clear()
    return Witness


def test_candidate_is_scored_without_its_labels(witness: type[Witness]) -> None:
    """Neither its labels nor its answers are in the fit that scores it; all are scored once."""
    answers, gold = made_run(queries=4)
    found = held_out.held_out_scores(ScorerConfig(), answers, gold)
    assert len(found.scorers) == 5
    assert np.isfinite(found.scores).all()
    for shown, learned, scored in witness.seen:
        assert not {label.candidate for label in learned.labels} & set(scored.candidates)
        assert not set(shown.candidates) & set(scored.candidates)
        assert len(learned.labels) == len(shown)


def test_query_is_scored_without_its_votes(witness: type[Witness]) -> None:
    """Votes are cut by query; labels do not reach a scorer that learns from votes."""
    answers, gold = made_run(queries=7)
    found = held_out.held_out_scores(ScorerConfig(learn_from="votes"), answers, gold)
    assert np.isfinite(found.scores).all()
    for _, learned, scored in witness.seen:
        assert learned.labels == ()
        assert learned.votes
        assert not {vote.query_id for vote in learned.votes} & set(scored.query_ids)


def test_responses_without_reference_data_are_not_scored() -> None:
    """A candidate without labels is in no fold."""
    answers, gold = made_run(queries=4)
    some = Gold([label for label in gold.labels if label.candidate != "c3"])
    scores = held_out.held_out_scores(ScorerConfig(), answers, some).scores
    assert np.isnan(scores).tolist() == [name == "c3" for name in answers.candidates]


def test_labels_of_other_responses_make_no_fold() -> None:
    """Only labels of responses in the table count; one candidate is too few."""
    answers, gold = made_run(queries=4)
    rows = [row for row, name in enumerate(answers.candidates) if name == "c1"]
    with pytest.raises(BenchmarkError, match="there are 1"):
        held_out.held_out_scores(ScorerConfig(), answers.take(rows), gold)
