"""Several judges as one: means, pooled matches, gaps that are counted, and no false certainty."""

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
    """Judges that see the same quality through noise of their own."""
    rng = np.random.default_rng(seed)
    quality = rng.normal(size=(queries, 4)) + np.array([0.0, 0.5, 1.0, 1.5])
    grids = []
    for _ in range(count):
        scores = 5.0 + quality + rng.normal(size=quality.shape)
        scores[rng.random(scores.shape) < missing] = np.nan
        grids.append(grid_of(scores))
    return grids


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_pooled_ratings_are_the_fit_of_every_judges_pairs(missing: float) -> None:
    """Listing each pair of each judge and query gives the same strengths."""
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


def test_the_same_judge_twice_is_no_more_certain() -> None:
    """Intervals come from queries: an echo doubles the comparisons and narrows nothing."""
    (grid,) = judges(2, 60, 1)
    once, twice = rank(grid).rows, rank_pooled([grid, grid]).rows
    for one, two in zip(once, twice, strict=True):
        assert two.rating.high - two.rating.low == pytest.approx(
            one.rating.high - one.rating.low, rel=0.02
        )
        assert (one.queries, one.missing) == (two.queries, two.missing)


def test_judges_with_noise_of_their_own_make_it_more_certain() -> None:
    """Three judges' intervals are narrower than one's, for what the judges add is averaged."""
    grids = judges(3, 80, 3)
    widths = [
        np.mean([row.mean_score.high - row.mean_score.low for row in found.rows])
        for found in (rank(grids[0]), rank(ensemble_mean(grids)))
    ]
    assert widths[1] < 0.9 * widths[0]


def test_the_mean_is_of_all_judges_or_of_those_there_are() -> None:
    """drop leaves a gap where one judge has one; skip takes the others; nobody's stays a gap."""
    grids = [
        grid_of(np.array([[1.0, 2.0, np.nan]]), "abc"),
        grid_of(np.array([[4.0, np.nan, np.nan]]), "abc"),
    ]
    np.testing.assert_array_equal(ensemble_mean(grids).scores, [[2.5, np.nan, np.nan]])
    np.testing.assert_array_equal(ensemble_mean(grids, "skip").scores, [[2.5, 2.0, np.nan]])


def test_a_missing_judge_cannot_tilt_pooled_matches() -> None:
    """A lenient judge that scored one candidate only lifts its skipped mean, not its matches."""
    strict = np.tile([5.0, 5.0], (10, 1))
    lenient = np.tile([9.0, np.nan], (10, 1))
    grids = [grid_of(strict, "ab"), grid_of(lenient, "ab")]
    assert {row.rating.value for row in rank_pooled(grids).rows} == {1000.0}
    skipped = rank(ensemble_mean(grids, "skip"))
    assert skipped.rows[0].rating.value > skipped.rows[1].rating.value
    assert common_grids(grids).partly_scored == 10


def test_grids_are_cut_to_what_they_share() -> None:
    """Rows and columns are matched by name, whatever their order; the rest is counted."""
    one = grid_of(np.arange(6.0).reshape(2, 3), "abc")
    other = grid_of(10 + np.arange(6.0).reshape(2, 3), "cbx", first=1)
    found = common_grids([one, other])
    assert found.grids[0].query_ids == found.grids[1].query_ids == ("q1",)
    assert found.grids[0].candidates == found.grids[1].candidates == ("b", "c")
    np.testing.assert_array_equal(found.grids[0].scores, [[4.0, 5.0]])
    np.testing.assert_array_equal(found.grids[1].scores, [[11.0, 10.0]])
    assert (found.queries_left_out, found.candidates_left_out) == (2, ("a", "x"))


def test_runs_with_nothing_in_common_are_refused() -> None:
    """No shared query, or no shared candidate, is named."""
    one = grid_of(np.zeros((2, 2)), "ab")
    with pytest.raises(BenchmarkError, match="no query in common"):
        common_grids([one, grid_of(np.zeros((2, 2)), "ab", first=5)])
    with pytest.raises(BenchmarkError, match="no candidate in common"):
        common_grids([one, grid_of(np.zeros((2, 2)), "xy")])
