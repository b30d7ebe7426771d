"""The agreement of judges in words, by Krippendorff's thresholds and the interval."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.judges.reliability import judge_advice
from rocketeval.stats.agreement import Reliability, rank_matrix, reliability

ORDERS = rank_matrix({"j1": {"a": 1, "b": 2, "c": 3}, "j2": {"a": 1, "b": 2, "c": 3}})


def rated(flipped: float, queries: int = 60, seed: int = 0) -> Reliability:
    """Two judges on five items per query, the second with some answers flipped."""
    rng = np.random.default_rng(seed)
    one = (rng.random(5 * queries) < 0.5).astype(float)
    two = np.where(rng.random(one.shape) < flipped, 1.0 - one, one)
    groups = np.arange(len(one)) // 5
    return reliability(np.stack([one, two]), groups, ["j1", "j2"], bootstrap=200)


@pytest.mark.parametrize(
    ("flipped", "words"),
    [
        (0.01, "the judges are interchangeable: alpha 0.9"),
        (0.10, "conclusions from one judge are tentative"),
        (0.40, "results depend on the judge"),
    ],
)
def test_verdict_follows_the_interval(flipped: float, words: str) -> None:
    """Reliable, tentative, or neither."""
    first, *_, last = judge_advice(rated(flipped), ORDERS, [])
    assert first.startswith(f"Item by item, {words}")
    assert "can all be wrong" in last


def test_judges_that_always_disagree_depend_on_the_judge() -> None:
    """A negative verdict needs no interval."""
    first, *_ = judge_advice(rated(1.0), ORDERS, [])
    assert first.startswith("Item by item, results depend on the judge: alpha -")
    assert "nan" not in first


def test_too_little_data_is_reported() -> None:
    """Few queries give a figure without an interval, one category gives a reason."""
    assert "3 queries are too few" in next(judge_advice(rated(0.1, queries=3), ORDERS, []))
    same = reliability(np.ones((2, 9)), np.arange(9), ["j1", "j2"], bootstrap=5)
    assert "unknown: " in next(judge_advice(same, ORDERS, []))


def test_judges_that_never_disagree_need_enough_queries() -> None:
    """Without a disagreement, the exact interval decides: wide on six queries, narrow on 500."""
    few = next(judge_advice(rated(0.0, queries=6), ORDERS, []))
    assert "conclusions from one judge are tentative: alpha 1.00 (" in few
    many = next(judge_advice(rated(0.0, queries=500), ORDERS, []))
    assert "the judges are interchangeable: alpha 1.00 (" in many


def test_least_similar_rankings_are_named() -> None:
    """The pair is named only if another pair is closer."""
    alike = "\n".join(judge_advice(rated(0.1), ORDERS, []))
    assert "3 candidates by mean score: Spearman 1.00." in alike
    three = rank_matrix(
        {
            "j1": {"a": 1, "b": 2, "c": 3},
            "j2": {"a": 1, "b": 2, "c": 3},
            "j3": {"a": 1, "b": 3, "c": 2},
        }
    )
    words = "\n".join(judge_advice(rated(0.1), three, [("j1", "j2")]))
    assert "between j1 and j3" in words
    assert "j1 and j2 are the same judge" in words
    two = rank_matrix({"j1": {"a": 1, "b": 2}, "j2": {"a": 1, "b": 2}})
    assert len(list(judge_advice(rated(0.1), two, []))) == 2
