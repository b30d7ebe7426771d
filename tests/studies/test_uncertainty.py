"""Effect of earlier answers: planted answers that depend on them more and more, or not at all."""

from __future__ import annotations

import numpy as np
import pytest
from papers import uncertainty

from rocketeval.scoring.answers import AnswerTable

QUERIES, CANDIDATES, ITEMS = 20, 6, 8


def planted(share_at: list[float], seed: int) -> tuple[AnswerTable, AnswerTable]:
    """Return two gradings; at each position this share of the answers differs, on average."""
    rng = np.random.default_rng(seed)
    shape = (QUERIES * CANDIDATES, ITEMS)
    one = rng.uniform(0.0, 1.0, shape)
    two = np.where(rng.uniform(size=shape) < np.array(share_at), 1.0 - one, one)
    queries = tuple(np.repeat([f"q{row}" for row in range(QUERIES)], CANDIDATES).tolist())
    names = tuple(f"c{row}" for row in range(CANDIDATES)) * QUERIES
    offsets = np.arange(len(names) + 1, dtype=np.int64) * ITEMS
    first, second = (
        AnswerTable(queries, names, table.ravel(), offsets, {}) for table in (one, two)
    )
    return first, second


def test_a_rise_is_seen() -> None:
    """The difference of later and earlier positions is close to the planted one."""
    found = uncertainty.compared(*planted([0.0, 0.1, 0.1, 0.1, 0.5, 0.5, 0.5, 0.5], 0))
    assert found.rise.value == pytest.approx(0.4, abs=0.06)
    assert found.rise.low > 0.3
    shares = [each.differing.value for each in found.found.by_position]
    assert shares[0] == 0.0
    assert shares[7] == pytest.approx(0.5, abs=0.15)


def test_without_a_rise_intervals_cover_zero() -> None:
    """About one interval in twenty leaves out 0."""
    outside = 0
    for seed in range(60):
        rise = uncertainty.compared(*planted([0.2] * ITEMS, seed)).rise
        outside += not rise.low <= 0.0 <= rise.high
    assert outside / 60 == pytest.approx(0.05, abs=0.07)


def test_gradings_of_different_responses_are_refused() -> None:
    """Instead of a comparison of other items."""
    one, two = planted([0.2] * ITEMS, 0)
    with pytest.raises(ValueError, match="different responses"):
        uncertainty.compared(one, two.take(range(12)))
