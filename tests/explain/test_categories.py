"""Sums over categories: means by hand, and intervals from queries."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rocketeval.explain import candidate as module
from rocketeval.explain.candidate import explain_candidates
from support.graded import make_graded


def test_points_lost_are_means_over_the_category() -> None:
    """Two coding queries cost 9 and 0 points, a mean of 4.5; the largest loss comes first."""
    graded = make_graded(
        {
            "c1": {"own": [0.0], "other": [1.0]},
            "c2": {"own": [0.5], "other": [0.5]},
            "m1": {"own": [1.0], "other": [0.0]},
            "plain": {"own": [0.0], "other": [1.0]},
        },
        ["other", "own"],
        categories={"c1": "coding", "c2": "coding", "m1": "maths"},
    )
    (found,) = explain_candidates(graded, ["own"], most=1, bootstrap=50)
    assert [(part.category, part.points.value, part.queries) for part in found.categories] == [
        ("coding", 4.5, 2),
        ("maths", -9.0, 1),
    ]
    assert all(math.isnan(part.points.low) for part in found.categories)
    assert found.overall is not None
    assert (found.overall.points.value, found.overall.queries) == (pytest.approx(2.25), 4)


def test_intervals_cover_and_narrow_with_queries() -> None:
    """A true loss of 0.9 is inside; four times the queries halve the width."""
    rng = np.random.default_rng(0)

    def width(queries: int) -> float:
        answers = {
            f"q{n}": {"own": [rng.uniform(0.3, 0.5)], "other": [rng.uniform(0.4, 0.6)]}
            for n in range(queries)
        }
        graded = make_graded(answers, ["other", "own"], categories=dict.fromkeys(answers, "all"))
        (found,) = explain_candidates(graded, ["own"], most=1, bootstrap=400)
        (part,) = found.categories
        assert part.points.low < 0.9 < part.points.high
        return part.points.high - part.points.low

    assert width(400) == pytest.approx(width(100) / 2, rel=0.3)


def test_category_without_a_comparison_is_left_out() -> None:
    """No response in a category gives no figure, not zero."""
    graded = make_graded(
        {"c": {"other": [1.0], "third": [0.5]}, "m": {"own": [0.0], "other": [1.0]}},
        ["other", "third", "own"],
        categories={"c": "coding", "m": "maths"},
    )
    (found,) = explain_candidates(graded, ["own"], most=1, bootstrap=50)
    assert [part.category for part in found.categories] == ["maths"]


def test_only_the_largest_categories_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """One category per query does not make an endless list."""
    monkeypatch.setattr(module, "MOST_CATEGORIES", 1)
    answers = {name: {"own": [0.0], "other": [1.0]} for name in ("a1", "a2", "b1")}
    graded = make_graded(answers, ["other", "own"], categories={"a1": "a", "a2": "a", "b1": "b"})
    (found,) = explain_candidates(graded, ["own"], most=1, bootstrap=50)
    assert [part.category for part in found.categories] == ["a"]
