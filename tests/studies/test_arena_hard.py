"""Arena-Hard: the recorded table follows from the stored judgments, and the docs quote it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from arena_hard import order
from scipy.stats import kendalltau

ROOT = Path(__file__).parents[2]


def recorded() -> str:
    """Return the recorded table."""
    return (order.RECORDED / "order.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(not order.DATA.is_dir(), reason="Arena-Hard is not next to this checkout")
def test_recorded_table_follows_from_the_stored_judgments() -> None:
    """Every line is computed again, to the last digit."""
    assert "\n".join(order.lines_of(order.Arena.read())) + "\n" == recorded()


def test_docs_quote_the_recorded_table() -> None:
    """The table in the docs is the recorded one."""
    docs = (ROOT / "docs" / "evidence" / "reproduction.md").read_text(encoding="utf-8")
    assert f"```\n{recorded()}```" in docs


def planted(prompts: int, noise: float) -> order.Arena:
    """Return an arena whose scores are the ratings and noise; lengths are noise alone."""
    rng = np.random.default_rng(5)
    names = tuple(f"candidate {number}" for number in range(22))
    ratings = np.linspace(0.0, 1.0, len(names))
    scores = {
        order.CHECKLIST: ratings + noise * rng.standard_normal((prompts, len(names))),
        order.LENGTH: rng.standard_normal((prompts, len(names))),
    }
    queries = tuple(f"prompt {number}" for number in range(prompts))
    return order.Arena(queries, names, scores, ratings, np.arange(len(names)) < 12)


def test_kendall_equals_scipy() -> None:
    """All rows at once, also with ties."""
    rng = np.random.default_rng(0)
    rows, ratings = rng.integers(0, 9, (20, 12)).astype(float), rng.permutation(12).astype(float)
    wanted = [kendalltau(row, ratings).statistic for row in rows]
    assert order.kendall(rows, ratings) == pytest.approx(wanted)


def test_a_judge_that_knows_the_ratings_is_limited_by_prompts_only() -> None:
    """More prompts bring the order closer; with unlimited ones nothing is left."""
    arena = planted(120, 1.0)
    by_size = order.by_prompts(arena, order.CHECKLIST)
    assert by_size[5][0] < by_size[20][0] < by_size[40][0] < by_size[120][0] < 0.98
    assert order.unlimited(arena, order.CHECKLIST) == pytest.approx(1.0, abs=0.02)
    limits = order.limits(arena, order.CHECKLIST)
    assert limits.unlimited.low < 1.0 < limits.unlimited.high
    assert limits.unlimited.high - limits.unlimited.low < 0.2
    assert limits.gained.low > 0.0
    assert limits.missing.low < 0.0 < limits.missing.high
    assert order.alpha(arena.scores[order.CHECKLIST]) == pytest.approx(
        order.reliability(arena, order.CHECKLIST), abs=0.01
    )
    found = order.orders(arena, tested=False)
    assert found[order.LENGTH].from_checklist.high < 0.0
    assert found[order.CHECKLIST].from_checklist.value == 0.0
