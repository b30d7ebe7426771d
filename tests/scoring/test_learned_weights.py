"""Learned scorers and the weights of a rubric."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rocketeval.config import ScorerConfig
from rocketeval.records import Gold, Label, Vote
from rocketeval.scoring.answers import AnswerTable, RubricColumns
from rocketeval.scoring.base import State, create_scorer
from rocketeval.scoring.extra_trees import ExtraTreesScorer, ForestOptions
from rocketeval.scoring.mean import HardMeanScorer, MeanScorer

KINDS = ("isotonic", "pooled_ridge", "extra_trees", "random_forest", "pooled_logistic")
WEIGHTS = [5.0, 1.0, 0.0]


def weighted(values: np.ndarray[Any, Any], weights: list[float]) -> AnswerTable:
    """Return three queries; every response has a row of `values`."""
    responses, items = values.shape
    flat = np.tile(values.ravel(), 3)
    columns = RubricColumns(flat, np.tile(weights, 3 * responses), np.ones(len(flat)))
    return AnswerTable(
        [f"q{query}" for query in range(3) for _ in range(responses)],
        [f"c{number:02}" for number in range(responses)] * 3,
        flat,
        np.arange(0, len(flat) + 1, items),
        rubric=columns,
    )


def unfitted(kind: str) -> Any:
    """Return a scorer of this kind, which learns from labels or votes."""
    gold = "votes" if kind == "pooled_logistic" else "labels"
    return create_scorer(ScorerConfig(kind=kind, learn_from=gold))


def graded(answers: AnswerTable) -> Gold:
    """Return labels by the first item."""
    first = answers.p_yes[answers.offsets[:-1]]
    rows = zip(answers.query_ids, answers.candidates, first, strict=True)
    return Gold([Label(query, name, 1.0 + 9.0 * value) for query, name, value in rows])


@pytest.mark.parametrize("kind", KINDS)
def test_without_gold_the_score_is_the_weighted_mean(kind: str) -> None:
    """As `fallbacks` promises."""
    answers = weighted(np.array([[1.0, 0.0, 0.2], [0.0, 1.0, 0.9]]), WEIGHTS)
    scorer = unfitted(kind).fit(answers, Gold())
    np.testing.assert_array_equal(scorer.predict(answers), MeanScorer().predict(answers))


@pytest.mark.parametrize("kind", KINDS)
def test_an_item_of_weight_zero_has_no_effect(kind: str) -> None:
    """Neither on fits nor on scores; without any weight there is no score."""
    random = np.random.default_rng(3)
    values = random.random((30, 3))
    other = np.column_stack([values[:, :2], random.random(30)])
    found = []
    for each in (values, other):
        answers = weighted(each, WEIGHTS)
        gold = graded(answers)
        if kind == "pooled_logistic":
            ordered = [(f"c{number:02}", f"c{number + 1:02}") for number in range(0, 30, 2)]
            worth = dict(zip(answers.candidates, values[:, 0], strict=False))
            votes = [
                Vote(f"q{query}", a, b, "a" if worth[a] > worth[b] else "b")
                for query in range(3)
                for a, b in ordered
            ]
            gold = Gold(votes=votes)
        scorer = unfitted(kind).fit(answers, gold)
        assert not scorer.fallbacks()
        found.append(scorer.predict(answers))
        nothing = scorer.predict(weighted(each, [0.0, 0.0, 0.0]))
        assert np.isnan(nothing).all()
    np.testing.assert_array_equal(*found)


def test_the_share_of_an_item_follows_its_weight() -> None:
    """The mean part of a forest's score counts an item by its weight."""
    random = np.random.default_rng(4)
    answers = weighted(random.random((30, 3)), WEIGHTS)
    scorer = ExtraTreesScorer().fit(answers, graded(answers))
    alpha, importance = scorer.weights_["q0"], scorer.importances_["q0"]
    assert 0.0 < alpha < 1.0
    expected = (1.0 - alpha) * np.array(WEIGHTS) / 6.0 + alpha * importance
    np.testing.assert_allclose(scorer.item_weights()["q0"], expected)
    again = ExtraTreesScorer.restore(ScorerConfig(kind="extra_trees"), scorer.state())
    np.testing.assert_allclose(again.item_weights()["q0"], expected)


def test_hard_answers_are_hard_in_the_mean_too() -> None:
    """Responses with the same yes and no get the same score, with and without labels."""
    values = np.array([[0.51, 0.51], [0.99, 0.99], [0.49, 0.49], [0.01, 0.01], [0.9, 0.4]])
    answers = weighted(values, [1.0, 1.0])
    hard = ExtraTreesScorer(options=ForestOptions(answers="hard"))
    for gold in (Gold(), graded(answers)):
        scores = hard.fit(answers, gold).predict(answers)
        assert scores[0] == scores[1]
        assert scores[2] == scores[3]
    plain = hard.fit(answers, Gold()).predict(answers)
    np.testing.assert_array_equal(plain, HardMeanScorer().predict(answers))


@pytest.mark.parametrize("kind", ["pooled_ridge", "extra_trees"])
def test_a_state_of_an_earlier_version_counts_items_alike(kind: str) -> None:
    """It has no item weights; the scorer still loads, with the same scores for plain items."""
    answers = weighted(np.random.default_rng(5).random((30, 3)), [1.0, 1.0, 1.0])
    scorer = unfitted(kind).fit(answers, graded(answers))
    state = scorer.state()
    header, arrays = dict(state.header), dict(state.arrays)
    del header["sized"], arrays["sizes"]
    again = type(scorer).restore(ScorerConfig(kind=kind), State(header, arrays))
    np.testing.assert_array_equal(again.predict(answers), scorer.predict(answers))
    np.testing.assert_array_equal(again.item_weights()["q0"], scorer.item_weights()["q0"])
