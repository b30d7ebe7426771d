"""All-pairs comparison gives the same results as `compare` for each pair."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.compare.pair import ComparisonVerdict, compare
from rocketeval.grid import ScoreGrid
from rocketeval.report import all_pairs as module
from rocketeval.report.all_pairs import compare_all


def grid(queries: int, candidates: int, missing: float = 0.0, digits: int = 12) -> ScoreGrid:
    random = np.random.default_rng(queries)
    better = np.linspace(1.5, 0.0, candidates)
    scores = np.clip(random.normal(5, 1, (queries, candidates)) + better, 1, 10).round(digits)
    scores[random.random(scores.shape) < missing] = np.nan
    return ScoreGrid(
        tuple(f"q{q}" for q in range(queries)), tuple(f"c{c}" for c in range(candidates)), scores
    )


@pytest.mark.parametrize(
    ("queries", "candidates", "missing", "digits"),
    [(40, 7, 0.0, 12), (40, 7, 0.3, 12), (12, 5, 0.2, 12), (30, 6, 0.2, 0), (3, 3, 0.0, 12)],
)
def test_same_results_as_compare(
    queries: int, candidates: int, missing: float, digits: int
) -> None:
    """With and without missing scores, with exact ties, and with all signs enumerated."""
    scores = grid(queries, candidates, missing, digits)
    found = compare_all(scores, bootstrap=300, seed=3)
    assert found.first == candidates
    place = 0
    for a in range(candidates):
        for b in range(a + 1, candidates):
            one = compare(scores, f"c{a}", f"c{b}", bootstrap=300, seed=3)
            assert place == a * candidates - a * (a + 1) // 2 + (b - a - 1)
            assert found.p_value[place] == one.p_value
            assert found.verdict[place] == one.verdict
            counts = (found.wins[place], found.ties[place], found.losses[place])
            assert counts == (one.wins, one.ties, one.losses)
            effect = (found.effect[place], found.low[place], found.high[place])
            expected = (one.effect.value, one.effect.low, one.effect.high)
            assert effect == pytest.approx(expected, abs=1e-9, nan_ok=True)
            place += 1
    assert place == len(found.verdict)


def test_candidates_without_a_common_query_have_no_figures() -> None:
    """`compare` refuses such a pair."""
    scores = ScoreGrid(("x", "y"), ("a", "b"), np.array([[5.0, np.nan], [np.nan, 6.0]]))
    found = compare_all(scores)
    assert found.verdict == ("share no query",)
    assert (found.wins[0], found.ties[0], found.losses[0]) == (0, 0, 0)
    figures = (found.effect[0], found.low[0], found.high[0], found.p_value[0])
    assert np.isnan(figures).all()


def test_identical_scores_are_tied() -> None:
    """A difference of zero is a result, not missing data."""
    scores = ScoreGrid(("x", "y"), ("a", "b"), np.full((2, 2), 5.0))
    found = compare_all(scores)
    assert found.verdict == (ComparisonVerdict.UNKNOWN,)
    assert (found.effect[0], found.p_value[0], found.ties[0]) == (0.0, 1.0, 2)


def test_work_limit_reduces_the_candidates(monkeypatch: pytest.MonkeyPatch) -> None:
    """The top candidates keep the same figures."""
    scores = grid(40, 10)
    whole = compare_all(scores, bootstrap=50)
    monkeypatch.setattr(module, "MOST_WORK", module.MOST_WORK / 2_000)
    part = compare_all(scores, bootstrap=50)
    assert 2 <= part.first < whole.first
    assert part.p_value[: part.first - 1].tolist() == whole.p_value[: part.first - 1].tolist()


def test_a_long_ranking_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the top candidates are compared."""
    monkeypatch.setattr(module, "MOST_CANDIDATES", 4)
    assert compare_all(grid(20, 9), bootstrap=20).first == 4


def test_flipped_sums_equal_to_the_observed_one_are_counted() -> None:
    """With few distinct differences, many flipped sums equal the observed one exactly."""
    random = np.random.default_rng(5)
    steps = np.array([0.0, 1.0, 3.0]) * random.choice([-1.0, 1.0], (30, 1)) + 4.0
    scores = 1.0 + 9.0 * (steps + 0.5 * random.integers(0, 2, (30, 3)) * [1, 0, 1]) / 11.0
    ties = ScoreGrid(tuple(map(str, range(30))), ("a", "b", "c"), scores)
    found = compare_all(ties, bootstrap=50)
    pairs = [("a", "b"), ("a", "c"), ("b", "c")]
    expected = [compare(ties, *pair, bootstrap=50).p_value for pair in pairs]
    assert found.p_value.tolist() == expected


@pytest.mark.parametrize("scale", [None, (1.0, 10.0)])
@pytest.mark.parametrize("clustered", [False, True])
def test_constant_differences_are_those_of_compare(
    scale: tuple[float, float] | None, clustered: bool
) -> None:
    """Equal candidates and constant leads: the same bounds, or none, and the same verdict."""
    scores = np.column_stack([np.full(8, 9.0), np.full(8, 9.0), np.full(8, 7.5)])
    clusters = tuple(f"c{row}" for row in range(8)) if clustered else None
    made = ScoreGrid(tuple(f"q{row}" for row in range(8)), ("a", "b", "c"), scores, clusters)
    found = compare_all(made, scale=scale)
    for place, (one, other) in enumerate((("a", "b"), ("a", "c"), ("b", "c"))):
        expected = compare(made, one, other, scale=scale)
        assert found.verdict[place] == expected.verdict
        bounds = (expected.effect.low, expected.effect.high)
        assert (found.low[place], found.high[place]) == pytest.approx(bounds, nan_ok=True)
        assert np.isnan(found.low[place]) == (scale is None or place > 0)
