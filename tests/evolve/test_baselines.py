"""Simple ways to judge: a sign, two cut points, a line."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from evolve.planted import CORRECT, planted_labels, planted_pairs
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.validate import (
    SINGLE,
    SINGLE_FITTED,
    LinearFit,
    Thresholds,
    mean_outcome,
    single_outcomes,
)


def test_cut_points_are_the_best_there_are() -> None:
    """Held against every pair of cut points."""
    random = np.random.default_rng(0)
    for _ in range(20):
        gold = random.integers(-1, 2, 25).astype(float)
        numbers = np.round(gold * 0.3 + random.normal(size=25), 1)
        found = Thresholds.learn(numbers, gold)
        ends = np.concatenate([[-9.0], np.unique(numbers) + 0.05, [9.0]])
        most = max(
            np.mean(Thresholds(low, high).verdicts(numbers) == gold)
            for low, high in combinations_with_replacement(ends, 2)
        )
        assert np.mean(found.verdicts(numbers) == gold) == pytest.approx(most)


def test_cut_points_of_one_number_name_the_usual_outcome() -> None:
    """Where answers tell nothing."""
    found = Thresholds.learn(np.zeros(3), np.array([1.0, 1.0, -1.0]))
    assert found.verdicts(np.zeros(2)).tolist() == [1.0, 1.0]


def test_a_line_fits_and_stretches() -> None:
    """Least squares; and from 0 and 1 to the ends of the labels."""
    numbers = np.array([0.0, 0.5, 1.0])
    np.testing.assert_allclose(
        LinearFit.learn(numbers, 2.0 * numbers + 1.0).labels(numbers), [1, 2, 3]
    )
    assert LinearFit.across(np.array([1.0, 5.0])).labels(numbers).tolist() == [1.0, 3.0, 5.0]
    assert LinearFit.learn(np.zeros(2), np.array([1.0, 3.0])).labels(np.ones(1)).tolist() == [2.0]


def test_a_single_prompt_judges_by_its_sign() -> None:
    """Exactly nothing is a tie."""
    table = planted_pairs(10).table
    table.answers[:3, 2] = [0.0, 0.4, -0.4]
    said = single_outcomes(table, table, CORRECT.id)
    assert said[SINGLE][:3].tolist() == [0.0, 1.0, -1.0]
    assert set(said) == {SINGLE, SINGLE_FITTED["pairs"]}


def test_the_mean_of_all_answers_judges_by_its_size() -> None:
    """Learned from people who go by it, it is for a where all answers are, and likewise for b."""
    table = planted_pairs(10).table
    means = table.answers.mean(axis=1)
    decided = tuple(
        replace(case, gold=float(np.sign(mean)))
        for case, mean in zip(table.cases, means.tolist(), strict=True)
    )
    new = table.take([0, 1])
    new.answers[0], new.answers[1] = 1.0, -1.0
    assert mean_outcome(replace(table, cases=decided), new).tolist() == [1.0, -1.0]


def test_labels_are_stretched_and_fitted() -> None:
    """Fitting can only lower the squared error of the cases seen."""
    table = planted_labels(20).table
    said = single_outcomes(table, table, CORRECT.id)
    errors = {name: np.mean((found - table.gold) ** 2) for name, found in said.items()}
    assert errors[SINGLE_FITTED["scores"]] < errors[SINGLE]


def test_an_overall_perspective_that_was_not_asked_is_named() -> None:
    """Rather than another one taken for it."""
    table = planted_pairs(5).table
    with pytest.raises(BenchmarkError, match="nobody"):
        single_outcomes(table, table, "nobody")
