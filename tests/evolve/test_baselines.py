"""Baselines: the sign of an answer, two cut points, a line."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest

from evolve.planted import CORRECT, planted_labels, planted_pairs
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.predictions import LinearFit, Thresholds
from rocketeval.evolve.validate import SINGLE, SINGLE_FITTED, mean_outcome, single_outcomes


def test_cut_points_are_optimal() -> None:
    """Compared with every pair of cut points."""
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


def test_constant_answers_give_the_most_common_outcome() -> None:
    """If answers carry no information."""
    found = Thresholds.learn(np.zeros(3), np.array([1.0, 1.0, -1.0]))
    assert found.verdicts(np.zeros(2)).tolist() == [1.0, 1.0]


def test_line_fit_and_scaling() -> None:
    """Least squares, and the line from 0 and 1 to the range of labels."""
    numbers = np.array([0.0, 0.5, 1.0])
    np.testing.assert_allclose(
        LinearFit.learn(numbers, 2.0 * numbers + 1.0).labels(numbers), [1, 2, 3]
    )
    assert LinearFit.across(np.array([1.0, 5.0])).labels(numbers).tolist() == [1.0, 3.0, 5.0]
    assert LinearFit.learn(np.zeros(2), np.array([1.0, 3.0])).labels(np.ones(1)).tolist() == [2.0]


def test_single_prompt_uses_the_sign() -> None:
    """Zero is a tie."""
    table = planted_pairs(10).table
    table.answers[:3, 2] = [0.0, 0.4, -0.4]
    outcomes = single_outcomes(table, table, CORRECT.id)
    assert outcomes[SINGLE][:3].tolist() == [0.0, 1.0, -1.0]
    assert set(outcomes) == {SINGLE, SINGLE_FITTED["pairs"]}


def test_mean_of_answers_decides() -> None:
    """If people follow the mean, it votes for a when all answers do, and likewise for b."""
    table = planted_pairs(10).table
    means = table.answers.mean(axis=1)
    decided = tuple(
        replace(case, gold=float(np.sign(mean)))
        for case, mean in zip(table.cases, means.tolist(), strict=True)
    )
    new = table.take([0, 1])
    new.answers[0], new.answers[1] = 1.0, -1.0
    assert mean_outcome(replace(table, cases=decided), new).tolist() == [1.0, -1.0]


def test_labels_are_scaled_and_fitted() -> None:
    """Fitting never increases the squared error on the training cases."""
    table = planted_labels(20).table
    outcomes = single_outcomes(table, table, CORRECT.id)
    errors = {name: np.mean((found - table.gold) ** 2) for name, found in outcomes.items()}
    assert errors[SINGLE_FITTED["scores"]] < errors[SINGLE]


def test_missing_overall_perspective_is_named() -> None:
    """No other perspective replaces it."""
    table = planted_pairs(5).table
    with pytest.raises(BenchmarkError, match="nobody"):
        single_outcomes(table, table, "nobody")
