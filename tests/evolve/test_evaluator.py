"""Evaluators: experts per query type, found by cross-validation and routed by traits."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

from evolve.planted import Planted, planted_labels, planted_pairs
from rocketeval.config import EvolveConfig
from rocketeval.errors import ArtifactError
from rocketeval.evolve.cases import Case, CaseTable, query_numbers
from rocketeval.evolve.evaluator import Evaluator, fit_evaluator
from rocketeval.evolve.predictions import Predictions, joined

SETTINGS = EvolveConfig(folds=3, experts=(1, 2, 3))


def halves(planted: Planted) -> tuple[CaseTable, CaseTable]:
    """The cases of the first half of the queries, and the others."""
    table = planted.table
    numbers = query_numbers(table.query_ids)
    middle = int(numbers.max()) // 2
    return table.take(np.flatnonzero(numbers <= middle)), table.take(
        np.flatnonzero(numbers > middle)
    )


@cache
def pairs() -> tuple[Evaluator, CaseTable]:
    """An evaluator of pairs with two query types, and unseen cases."""
    seen, new = halves(planted_pairs(200))
    return fit_evaluator(seen, SETTINGS), new


def accuracy(evaluator: Evaluator, table: CaseTable) -> float:
    """Share of correct verdicts."""
    return float(np.mean(evaluator.predict_table(table).verdict == table.gold))


def test_two_experts_come_near_the_optimum() -> None:
    """Without experts it stays far below: only the router uses traits."""
    evaluator, new = pairs()
    alone = fit_evaluator(halves(planted_pairs(200))[0], SETTINGS, experts=1)
    assert len(evaluator.experts) == 2
    assert accuracy(evaluator, new) > planted_pairs(200).ceiling - 0.15
    assert accuracy(alone, new) < accuracy(evaluator, new) - 0.2


def test_one_expert_if_types_do_not_matter() -> None:
    """More experts are chosen only if they gain."""
    evaluator = fit_evaluator(planted_pairs(80, types=1).table, SETTINGS)
    assert len(evaluator.experts) == 1
    assert evaluator.provenance["counts"]["experts"] == 1


def test_labels_are_predicted_by_experts() -> None:
    """Values on the label scale, in the right order."""
    seen, new = halves(planted_labels(160))
    evaluator = fit_evaluator(seen, SETTINGS)
    predicted = evaluator.predict_table(new)
    assert evaluator.task == "scores"
    assert len(evaluator.experts) == 2
    assert predicted.values is not None
    assert np.corrcoef(predicted.values, new.gold)[0, 1] > 0.6
    assert predicted.values.min() >= 1.0
    assert predicted.values.max() <= 5.0
    assert np.isnan(predicted.verdict).all()
    assert predicted.confidence.min() >= 0.0
    assert predicted.confidence.max() <= 1.0


def test_swapping_the_responses_swaps_the_verdict() -> None:
    """Exactly, because each response was asked about on its own."""
    evaluator, new = pairs()
    there, back = (
        evaluator.predict(sign * _answers(evaluator, new), _traits(evaluator, new))
        for sign in (1.0, -1.0)
    )
    assert there.probabilities is not None
    assert back.probabilities is not None
    assert there.probabilities.tobytes() == back.probabilities[:, ::-1].tobytes()
    assert (there.verdict == -back.verdict).all()


def test_mirroring_helps_without_position_bias() -> None:
    """The same few cases teach more in both orders."""
    gains = []
    for seed in range(3):
        seen, new = halves(planted_pairs(80, types=1, seed=seed))
        both, one = (fit_evaluator(seen, SETTINGS, experts=1, mirror=way) for way in (True, False))
        gains.append(accuracy(both, new) - accuracy(one, new))
    assert np.mean(gains) > 0.0


def test_side_by_side_pairs_are_not_mirrored() -> None:
    """So that a position bias can be learned."""
    table = planted_pairs(20).table
    asked_at_once = fit_evaluator(table, EvolveConfig(asking="pairs"), experts=1)
    assert not asked_at_once.mixture.mirrored
    assert fit_evaluator(table, EvolveConfig(), experts=1).mixture.mirrored


def test_confidence_is_the_lead_of_the_likeliest_outcome() -> None:
    """Confident verdicts are right more often."""
    evaluator, new = pairs()
    predicted = evaluator.predict_table(new)
    assert predicted.probabilities is not None
    ordered = np.sort(predicted.probabilities, axis=1)
    np.testing.assert_allclose(predicted.confidence, ordered[:, 2] - ordered[:, 1])
    right, sure = (
        predicted.verdict == new.gold,
        predicted.confidence > np.median(predicted.confidence),
    )
    assert right[sure].mean() > right[~sure].mean()


def test_missing_answers_are_filled_and_counted() -> None:
    """A case without answers still gets a prediction, with low confidence."""
    evaluator, new = pairs()
    answers, traits = _answers(evaluator, new)[:3].copy(), _traits(evaluator, new)[:3].copy()
    answers[0], traits[1, 0] = np.nan, np.nan
    predicted = evaluator.predict(answers, traits)
    assert (predicted.missing_answers, predicted.missing_traits) == (answers.shape[1], 1)
    assert predicted.verdict[0] == 0.0


def test_cases_without_reference_are_counted_and_unused() -> None:
    """The evaluator equals one fitted to the other cases."""
    table = planted_pairs(20).table
    cases = tuple(
        Case(case.query_id, case.candidates, None if place % 5 == 0 else case.gold)
        for place, case in enumerate(table.cases)
    )
    holed = CaseTable(
        cases, table.about_responses, table.answers, table.about_queries, table.traits
    )
    evaluator = fit_evaluator(holed, SETTINGS, experts=1)
    others = holed.take([place for place in range(len(holed)) if place % 5])
    same = fit_evaluator(others, SETTINGS, experts=1)
    assert evaluator.provenance["counts"]["cases without gold"] == 16
    assert evaluator.predict_table(table).confidence.tobytes() == (
        same.predict_table(table).confidence.tobytes()
    )


def test_columns_are_found_by_perspective() -> None:
    """In any order; a missing one is named."""
    evaluator, new = pairs()
    turned = CaseTable(
        new.cases,
        new.about_responses[::-1],
        new.answers[:, ::-1],
        new.about_queries[::-1],
        new.traits[:, ::-1],
    )
    predicted = evaluator.predict_table(turned).confidence.tobytes()
    assert predicted == evaluator.predict_table(new).confidence.tobytes()
    with pytest.raises(ArtifactError, match="were not asked"):
        evaluator.predict_table(new.narrow([evaluator.about_responses[0].id]))
    with pytest.raises(ArtifactError, match="needs"):
        evaluator.predict(new.answers[:, :1], new.traits)


def test_equally_likely_outcomes_are_a_tie() -> None:
    """For any two outcomes."""
    chances = np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.6, 0.2, 0.2]])
    predicted = Predictions(chances, None, np.zeros(3), np.zeros(3, dtype=np.int64))
    assert predicted.verdict.tolist() == [0.0, 0.0, -1.0]


def test_joined_predictions_are_in_order() -> None:
    """With the sum of missing answers."""
    parts = []
    for places in ([2, 0], [1]):
        values = np.array(places, dtype=float)
        expert = np.array(places, dtype=np.int64)
        parts.append((np.array(places), Predictions(None, values, values / 4.0, expert, 1, 2)))
    whole = joined(parts)
    assert whole.outcome.tolist() == [0.0, 1.0, 2.0]
    assert whole.expert.tolist() == [0, 1, 2]
    assert (whole.missing_answers, whole.missing_traits) == (2, 4)


def _answers(evaluator: Evaluator, table: CaseTable) -> np.ndarray:
    return table.narrow(each.id for each in evaluator.about_responses).answers


def _traits(evaluator: Evaluator, table: CaseTable) -> np.ndarray:
    return table.narrow(each.id for each in evaluator.about_queries).traits
