"""Evaluators: experts for types of query, found by validation and told by traits."""

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
    """An evaluator of pairs with two types of query, and cases that it did not see."""
    seen, new = halves(planted_pairs(200))
    return fit_evaluator(seen, SETTINGS), new


def accuracy(evaluator: Evaluator, table: CaseTable) -> float:
    """Share of right verdicts."""
    return float(np.mean(evaluator.predict_table(table).verdict == table.gold))


def test_it_finds_the_two_types_and_comes_near_the_ceiling() -> None:
    """Without experts it stays far below: traits reach the router alone."""
    evaluator, new = pairs()
    alone = fit_evaluator(halves(planted_pairs(200))[0], SETTINGS, experts=1)
    assert len(evaluator.experts) == 2
    assert accuracy(evaluator, new) > planted_pairs(200).ceiling - 0.15
    assert accuracy(alone, new) < accuracy(evaluator, new) - 0.2


def test_one_expert_is_enough_where_types_do_not_matter() -> None:
    """No number is chosen that does not gain."""
    evaluator = fit_evaluator(planted_pairs(80, types=1).table, SETTINGS)
    assert len(evaluator.experts) == 1
    assert evaluator.provenance["counts"]["experts"] == 1


def test_labels_are_predicted_by_experts() -> None:
    """Values on the scale of the labels, in their order."""
    seen, new = halves(planted_labels(160))
    evaluator = fit_evaluator(seen, SETTINGS)
    said = evaluator.predict_table(new)
    assert evaluator.task == "scores"
    assert len(evaluator.experts) == 2
    assert said.values is not None
    assert np.corrcoef(said.values, new.gold)[0, 1] > 0.6
    assert said.values.min() >= 1.0
    assert said.values.max() <= 5.0
    assert np.isnan(said.verdict).all()
    assert said.confidence.min() >= 0.0
    assert said.confidence.max() <= 1.0


def test_swapping_the_responses_swaps_the_verdict() -> None:
    """Answers of each response alone know no first place: to the last bit."""
    evaluator, new = pairs()
    there, back = (
        evaluator.predict(sign * _answers(evaluator, new), _traits(evaluator, new))
        for sign in (1.0, -1.0)
    )
    assert there.probabilities is not None
    assert back.probabilities is not None
    assert there.probabilities.tobytes() == back.probabilities[:, ::-1].tobytes()
    assert (there.verdict == -back.verdict).all()


def test_mirrored_cases_help_where_no_place_is_favoured() -> None:
    """The same few cases teach more when they are learned from both sides."""
    gains = []
    for seed in range(3):
        seen, new = halves(planted_pairs(80, types=1, seed=seed))
        both, one = (fit_evaluator(seen, SETTINGS, experts=1, mirror=way) for way in (True, False))
        gains.append(accuracy(both, new) - accuracy(one, new))
    assert np.mean(gains) > 0.0


def test_pairs_seen_at_once_are_not_mirrored() -> None:
    """The favour of a place can then be learned."""
    table = planted_pairs(20).table
    asked_at_once = fit_evaluator(table, EvolveConfig(asking="pairs"), experts=1)
    assert not asked_at_once.mixture.mirrored
    assert fit_evaluator(table, EvolveConfig(), experts=1).mixture.mirrored


def test_confidence_is_the_lead_of_the_likeliest_outcome() -> None:
    """And those it is sure of are right more often."""
    evaluator, new = pairs()
    said = evaluator.predict_table(new)
    assert said.probabilities is not None
    ordered = np.sort(said.probabilities, axis=1)
    np.testing.assert_allclose(said.confidence, ordered[:, 2] - ordered[:, 1])
    right, sure = said.verdict == new.gold, said.confidence > np.median(said.confidence)
    assert right[sure].mean() > right[~sure].mean()


def test_missing_answers_are_filled_and_counted() -> None:
    """A case without any answer still gets a prediction, an unsure one."""
    evaluator, new = pairs()
    answers, traits = _answers(evaluator, new)[:3].copy(), _traits(evaluator, new)[:3].copy()
    answers[0], traits[1, 0] = np.nan, np.nan
    said = evaluator.predict(answers, traits)
    assert (said.missing_answers, said.missing_traits) == (answers.shape[1], 1)
    assert said.verdict[0] == 0.0


def test_cases_without_gold_are_counted_and_not_learned_from() -> None:
    """The evaluator is that of the others."""
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
    """In any order; one that was not asked is named."""
    evaluator, new = pairs()
    turned = CaseTable(
        new.cases,
        new.about_responses[::-1],
        new.answers[:, ::-1],
        new.about_queries[::-1],
        new.traits[:, ::-1],
    )
    said = evaluator.predict_table(turned).confidence.tobytes()
    assert said == evaluator.predict_table(new).confidence.tobytes()
    with pytest.raises(ArtifactError, match="were not asked"):
        evaluator.predict_table(new.narrow([evaluator.about_responses[0].id]))
    with pytest.raises(ArtifactError, match="needs"):
        evaluator.predict(new.answers[:, :1], new.traits)


def test_equally_likely_outcomes_are_a_tie() -> None:
    """Whichever two they are."""
    chances = np.array([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5], [0.6, 0.2, 0.2]])
    said = Predictions(chances, None, np.zeros(3), np.zeros(3, dtype=np.int64))
    assert said.verdict.tolist() == [0.0, 0.0, -1.0]


def test_predictions_of_parts_come_back_in_order() -> None:
    """Each at its place, with what was missing summed."""
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
