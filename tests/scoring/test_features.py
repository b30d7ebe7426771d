"""Features of a response depend only on its own answers."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.scoring.answers import FEATURES, SUREST, describe, describe_rows
from support.made_runs import answer_table, made_run

NAN = float("nan")


def test_features_equal_numpy() -> None:
    """Each column equals numpy's figure on random rows of several lengths."""
    random = np.random.default_rng(0)
    for items in (1, 2, 5, 8):
        p_yes = random.uniform(0.02, 0.98, size=(30, items))
        found = dict(zip(FEATURES, describe_rows(p_yes).T, strict=True))
        np.testing.assert_allclose(found["mean"], p_yes.mean(axis=1))
        np.testing.assert_allclose(found["log_odds"], np.log(p_yes / (1 - p_yes)).mean(axis=1))
        np.testing.assert_allclose(found["lowest"], p_yes.min(axis=1))
        np.testing.assert_allclose(found["lower_quartile"], np.quantile(p_yes, 0.25, axis=1))
        np.testing.assert_allclose(found["share_yes"], (p_yes >= 0.5).mean(axis=1))
        np.testing.assert_allclose(found["spread"], p_yes.std(axis=1), atol=1e-12)


def test_certain_answers_have_finite_log_odds() -> None:
    """0 and 1 are clipped equally on both sides."""
    low, high = describe_rows(np.array([[0.0], [1.0]]))[:, FEATURES.index("log_odds")]
    assert (high, -low) == pytest.approx((np.log((1 - SUREST) / SUREST),) * 2, rel=1e-12)


def test_missing_answer_is_filled_or_drops_the_row() -> None:
    """skip fills it, drop excludes the row, and a row without answers is never used."""
    table = answer_table([("q", "a", [0.2, NAN, 0.6]), ("q", "b", [NAN] * 3), ("q", "c", [])])
    features, usable = describe(table, "skip")
    assert usable.tolist() == [True, False, False]
    np.testing.assert_allclose(features[0], describe_rows(np.array([[0.2, 0.4, 0.6]]))[0])
    assert describe(table, "drop")[1].tolist() == [False, False, False]


def test_features_depend_only_on_the_response() -> None:
    """Alone or among others in any order: the same bits."""
    answers, _ = made_run(queries=4, candidates=7)
    together, _ = describe(answers, "skip")
    for row in range(len(answers)):
        alone, _ = describe(answers.take([row]), "skip")
        assert alone.tobytes() == together[row].tobytes()
