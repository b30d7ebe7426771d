"""Accuracy by confidence: which cases the evaluator decides, and which go to a person."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.errors import ConfigError
from rocketeval.evolve.predictions import THRESHOLDS, Predictions, confidence_table, threshold_for

CASES = 400
QUERIES = [f"q{number // 2}" for number in range(CASES)]


def predictions(seed: int = 0) -> tuple[Predictions, np.ndarray]:
    """Verdicts whose accuracy rises with their confidence, from a half to one."""
    random = np.random.default_rng(seed)
    sure = np.linspace(0.0, 1.0, CASES)
    probabilities = np.stack([(1.0 - sure) / 3.0, (1.0 - sure) / 3.0, (1.0 + 2 * sure) / 3.0], 1)
    right = random.uniform(size=CASES) < 0.5 + sure / 2.0
    gold = np.where(right, 1.0, -1.0)
    gold[0] = 0.0  # All three outcomes are equally likely: a tie.
    return Predictions(probabilities, None, sure, np.zeros(CASES, dtype=np.int64)), gold


def test_higher_confidence_is_more_accurate() -> None:
    """Each threshold has fewer cases and a higher accuracy."""
    rows = confidence_table(*predictions(), QUERIES)
    assert [row.threshold for row in rows] == list(THRESHOLDS)
    assert [row.cases for row in rows] == [400, 300, 200, 132, 80]
    assert rows[0].coverage == 1.0
    accuracies = [row.accuracy.value for row in rows if row.accuracy]
    assert accuracies == sorted(accuracies)
    for row in rows:
        assert row.accuracy is not None
        assert row.accuracy.low < row.accuracy.value < row.accuracy.high


def test_interval_width_matches_independent_cases() -> None:
    """With 400 cases, five points on either side."""
    row = confidence_table(*predictions(), QUERIES)[0]
    assert row.accuracy is not None
    assert 0.06 < row.accuracy.high - row.accuracy.low < 0.11


def test_cases_of_one_query_are_clustered() -> None:
    """The same verdicts in fewer, consistent queries have wider intervals."""
    predicted, _ = predictions()
    gold = np.where(np.arange(CASES) // 20 % 4 == 0, -1.0, 1.0)
    wide = [f"q{number // 20}" for number in range(CASES)]
    many, few = (confidence_table(predicted, gold, names)[0].accuracy for names in (QUERIES, wide))
    assert many is not None
    assert few is not None
    assert few.low < many.low


def test_few_correct_verdicts_are_not_certain() -> None:
    """Eight of eight leave the lower bound well below 1."""
    sure = np.ones(8)
    predicted = Predictions(
        np.tile([0.0, 0.0, 1.0], (8, 1)), None, sure, np.zeros(8, dtype=np.int64)
    )
    row = confidence_table(predicted, np.ones(8), [f"q{number}" for number in range(8)])[0]
    assert row.accuracy is not None
    assert (row.accuracy.value, row.accuracy.high) == (1.0, 1.0)
    assert row.accuracy.low < 0.75


def test_threshold_lower_bound_reaches_target() -> None:
    """The smallest in hundredths; None if the target is out of reach."""
    predicted, gold = predictions()
    found = threshold_for(0.8, predicted, gold, QUERIES)
    assert found is not None
    at, below = confidence_table(predicted, gold, QUERIES, (found, found - 0.01))
    assert at.accuracy is not None
    assert below.accuracy is not None
    assert at.accuracy.low >= 0.8 > below.accuracy.low
    assert threshold_for(0.999, predicted, gold, QUERIES) is None
    assert threshold_for(0.1, predicted, gold, QUERIES) == 0.0


def test_empty_threshold_has_no_accuracy() -> None:
    """Instead of the accuracy of zero cases."""
    predicted, gold = predictions()
    assert predicted.probabilities is not None
    columns = (
        predicted.probabilities[:100],
        None,
        predicted.confidence[:100],
        predicted.expert[:100],
    )
    first = Predictions(*columns)
    (row,) = confidence_table(first, gold[:100], QUERIES[:100], (0.9,))
    assert (row.cases, row.coverage, row.accuracy) == (0, 0.0, None)


def test_cases_without_reference_are_ignored() -> None:
    """Neither right nor wrong."""
    predicted, gold = predictions()
    gold[:100] = np.nan
    assert confidence_table(predicted, gold, QUERIES)[0].cases == 300


def test_labels_have_no_accuracy() -> None:
    """They are refused with a hint."""
    predicted = Predictions(None, np.ones(2), np.ones(2), np.zeros(2, dtype=np.int64))
    with pytest.raises(ConfigError, match="pairs"):
        confidence_table(predicted, np.ones(2), ["q1", "q2"])
