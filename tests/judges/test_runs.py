"""Ensembles of judges: means, pooled matches, missing scores and intervals."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.errors import BenchmarkError
from rocketeval.grid import ScoreGrid
from rocketeval.judges.runs import common_grids, ensemble_mean
from rocketeval.ranking.rank import rank, rank_pooled
from rocketeval.stats import bradley_terry
from rocketeval.stats import bradley_terry as pairwise

Floats = NDArray[np.float64]


def grid_of(scores: Floats, names: str = "abcd", first: int = 0) -> ScoreGrid:
    queries = tuple(f"q{first + row}" for row in range(len(scores)))
    return ScoreGrid(queries, tuple(names), np.asarray(scores, dtype=np.float64))


def judges(seed: int, queries: int, count: int, missing: float = 0.0) -> list[ScoreGrid]:
    """Return judges that see the same quality with independent noise."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=(queries, 4)) + np.array([0.0, 0.5, 1.0, 1.5])
    grids = []
    for _ in range(count):
        scores = 5.0 + quality + rng.normal(size=quality.shape)
        scores[rng.random(scores.shape) < missing] = np.nan
        grids.append(grid_of(scores))
    return grids


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_pooled_ratings_fit_all_pairs_of_all_judges(missing: float) -> None:
    """An explicit list of all pairs gives the same strengths."""
    grids = judges(0, 25, 3, missing)
    wins, met = np.zeros(4), np.zeros((4, 4))
    for grid in grids:
        for row in grid.scores:
            for i in range(4):
                for j in range(4):
                    if i != j and not np.isnan(row[i] + row[j]):
                        met[i, j] += 1
                        wins[i] += (1 + pairwise.compare(row[i], row[j], 0.1)) / 2
    strengths = bradley_terry.fit(wins, met)
    expected = 1000 + bradley_terry.ELO_PER_STRENGTH * strengths
    found = {row.candidate: row.rating.value for row in rank_pooled(grids, bootstrap=50).rows}
    assert [found[name] for name in "abcd"] == pytest.approx(expected, abs=1e-5)


def test_repeated_judge_does_not_narrow_intervals() -> None:
    """Intervals come from queries, so a copy of a judge narrows nothing."""
    (grid,) = judges(2, 60, 1)
    once, twice = rank(grid).rows, rank_pooled([grid, grid]).rows
    for one, two in zip(once, twice, strict=True):
        assert two.rating.high - two.rating.low == pytest.approx(
            one.rating.high - one.rating.low, rel=0.02
        )
        assert (one.queries, one.missing) == (two.queries, two.missing)


def test_independent_judges_narrow_intervals() -> None:
    """Three judges have narrower intervals than one, because their noise averages out."""
    grids = judges(3, 80, 3)
    widths = [
        np.mean([row.mean_score.high - row.mean_score.low for row in found.rows])
        for found in (rank(grids[0]), rank(ensemble_mean(grids)))
    ]
    assert widths[1] < 0.9 * widths[0]


def test_missing_scores_are_dropped_or_skipped() -> None:
    """drop needs all judges, skip uses those present; without any there is no mean."""
    grids = [
        grid_of(np.array([[1.0, 2.0, np.nan]]), "abc"),
        grid_of(np.array([[4.0, np.nan, np.nan]]), "abc"),
    ]
    np.testing.assert_array_equal(ensemble_mean(grids).scores, [[2.5, np.nan, np.nan]])
    np.testing.assert_array_equal(ensemble_mean(grids, "skip").scores, [[2.5, 2.0, np.nan]])


def test_missing_scores_do_not_bias_pooled_matches() -> None:
    """A lenient judge of one candidate raises its skipped mean, not its matches."""
    strict = np.tile([5.0, 5.0], (10, 1))
    lenient = np.tile([9.0, np.nan], (10, 1))
    grids = [grid_of(strict, "ab"), grid_of(lenient, "ab")]
    assert {row.rating.value for row in rank_pooled(grids).rows} == {1000.0}
    skipped = rank(ensemble_mean(grids, "skip"))
    assert skipped.rows[0].rating.value > skipped.rows[1].rating.value
    assert common_grids(grids).partly_scored == 10


def test_grids_are_restricted_to_shared_names() -> None:
    """Rows and columns are matched by name; the rest is counted."""
    one = grid_of(np.arange(6.0).reshape(2, 3), "abc")
    other = grid_of(10 + np.arange(6.0).reshape(2, 3), "cbx", first=1)
    found = common_grids([one, other])
    assert found.grids[0].query_ids == found.grids[1].query_ids == ("q1",)
    assert found.grids[0].candidates == found.grids[1].candidates == ("b", "c")
    np.testing.assert_array_equal(found.grids[0].scores, [[4.0, 5.0]])
    np.testing.assert_array_equal(found.grids[1].scores, [[11.0, 10.0]])
    assert (found.queries_left_out, found.candidates_left_out) == (2, ("a", "x"))


def test_runs_with_nothing_in_common_are_refused() -> None:
    """The error says whether a query or a candidate is missing."""
    one = grid_of(np.zeros((2, 2)), "ab")
    with pytest.raises(BenchmarkError, match="no query in common"):
        common_grids([one, grid_of(np.zeros((2, 2)), "ab", first=5)])
    with pytest.raises(BenchmarkError, match="no candidate in common"):
        common_grids([one, grid_of(np.zeros((2, 2)), "xy")])
