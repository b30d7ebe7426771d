"""Ratings with an anchor: they shift, but ranks stay, and islands are refused."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import rank, to_ratings

NAMES = ("gpt-large", "mistral", "tiny")


def grid_of(scores: np.ndarray, names: tuple[str, ...] = NAMES) -> ScoreGrid:
    return ScoreGrid(tuple(f"q{row}" for row in range(len(scores))), names, scores)


def skilled(queries: int = 40) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(queries, 3)) + np.array([2.0, 1.0, 0.0])


def test_ten_to_one_odds_are_400_points() -> None:
    """The scale is Elo, around the mean or relative to a candidate."""
    strengths, together = np.array([[np.log(10.0), 0.0]]), np.array([1, 1])
    assert to_ratings(strengths, together, None, 1000.0)[0].tolist() == pytest.approx([1200, 800])
    assert to_ratings(strengths, together, 1, 1100.0)[0].tolist() == pytest.approx([1500, 1100])


def test_anchor_fixes_one_rating_and_shifts_the_others() -> None:
    """The anchor's interval has no width; differences, ranks and groups are unchanged."""
    free, anchored = (
        rank(grid_of(skilled()), anchor=anchor, anchor_rating=1250.0)
        for anchor in (None, "mistral")
    )
    rating = {row.candidate: row.rating for row in anchored.rows}
    own = rating["mistral"]
    assert (own.value, own.low, own.high) == (1250.0, 1250.0, 1250.0)
    shifts = [
        after.rating.value - before.rating.value
        for before, after in zip(free.rows, anchored.rows, strict=True)
    ]
    assert shifts == pytest.approx([shifts[0]] * 3, abs=1e-5)
    for before, after in zip(free.rows, anchored.rows, strict=True):
        assert (before.rank, before.rank_low, before.rank_high) == (
            after.rank, after.rank_low, after.rank_high,
        )  # fmt: skip
        assert (before.group, before.beats_next) == (after.group, after.beats_next)
    assert anchored.anchor == "mistral"


def test_intervals_are_of_the_difference_to_the_anchor() -> None:
    """A candidate with the anchor's scores never differs from it, and has no interval."""
    scores = skilled()
    twins = np.column_stack([scores[:, 1], scores[:, 1], scores[:, 2]])
    rows = {row.candidate: row.rating for row in rank(grid_of(twins), anchor="mistral").rows}
    twin, other = rows["gpt-large"], rows["tiny"]
    assert (twin.value, np.isnan(twin.low), np.isnan(twin.high)) == (1000.0, True, True)
    assert other.low < other.value < other.high < 1000.0


def test_anchor_has_a_rating_with_too_few_queries() -> None:
    """The given rating needs no data; a rating from two queries has no interval."""
    rows = {row.candidate: row.rating for row in rank(grid_of(skilled(2)), anchor="tiny").rows}
    assert rows["tiny"].low == rows["tiny"].high == 1000.0
    assert np.isnan(rows["mistral"].low)


def test_unknown_anchor_names_the_nearest() -> None:
    """The hint names the nearest candidate."""
    with pytest.raises(ConfigError, match="'mistrall', not one of the 3") as caught:
        rank(grid_of(skilled()), anchor="mistrall")
    assert caught.value.hint == "Did you mean 'mistral'?"


def test_anchor_without_scores_is_refused() -> None:
    """An anchor needs at least one score."""
    scores = skilled()
    scores[:, 2] = np.nan
    with pytest.raises(ConfigError, match="'tiny', which has no score"):
        rank(grid_of(scores), anchor="tiny")


def test_candidates_on_other_islands_are_named() -> None:
    """The error lists exactly the candidates that share no query with the anchor."""
    scores = np.full((20, 4), np.nan)
    scores[:10, :2] = skilled(10)[:, :2]
    scores[10:, 2:] = skilled(10)[:, :2]
    grid = grid_of(scores, ("a", "b", "c", "d"))
    with pytest.raises(
        ConfigError, match=r"2 of 4 candidates share no query .* 'c', 'd'"
    ) as caught:
        rank(grid, anchor="a")
    assert "remove `ranking.anchor`" in caught.value.hint
    assert rank(grid).islands == 2


def test_anchor_rating_must_be_finite() -> None:
    """An infinite anchor rating is refused."""
    with pytest.raises(ConfigError, match="anchor_rating"):
        rank(grid_of(skilled()), anchor_rating=float("inf"))
