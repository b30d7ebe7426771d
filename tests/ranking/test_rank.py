"""Rankings: order, intervals, groups, islands and reproducibility."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.errors import RocketEvalError
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import Ranking, rank

Floats = NDArray[np.float64]


def grid_of(scores: Floats, names: str = "abcdefghij") -> ScoreGrid:
    """Return a grid whose candidates are single letters."""
    queries = tuple(f"q{row}" for row in range(len(scores)))
    return ScoreGrid(queries, tuple(names[: scores.shape[1]]), scores)


def noisy(seed: int, queries: int, skills: list[float], missing: float = 0.0) -> Floats:
    """Return scores around each candidate's skill."""
    rng = np.random.default_rng(seed)
    scores = 5.0 + rng.normal(size=(queries, len(skills))) + skills
    scores[rng.random(scores.shape) < missing] = np.nan
    return scores


def by_name(ranking: Ranking, field: str) -> dict[str, object]:
    """Return one field of every row."""
    return {row.candidate: getattr(row, field) for row in ranking.rows}


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_clear_differences_are_ranked_and_separated(missing: float) -> None:
    """Very different skills give the true order, exact ranks and separate groups."""
    ranking = rank(grid_of(noisy(1, 100, [0.0, 2.0, 4.0], missing)))
    assert [row.candidate for row in ranking.rows] == ["c", "b", "a"]
    assert [(row.rank, row.rank_low, row.rank_high, row.group) for row in ranking.rows] == [
        (1, 1, 1, 1),
        (2, 2, 2, 2),
        (3, 3, 3, 3),
    ]
    ratings = [row.rating for row in ranking.rows]
    assert all(rating.low < rating.value < rating.high for rating in ratings)
    assert np.mean([rating.value for rating in ratings]) == pytest.approx(1000.0, abs=1e-5)


def test_equal_skills_share_a_group_and_wide_ranks() -> None:
    """Candidates of equal skill are tied."""
    ranking = rank(grid_of(noisy(2, 40, [0.0, 0.0, 0.0])))
    assert {row.group for row in ranking.rows} == {1}
    assert any(row.rank_low < row.rank_high for row in ranking.rows)


def test_group_is_compared_with_its_first_candidate() -> None:
    """A group ends where a candidate is significantly worse than its first."""
    ranking = rank(grid_of(noisy(3, 60, [0.0, 0.3, 0.6, 0.9, 1.2, 1.5])))
    groups = [row.group for row in ranking.rows]
    assert groups == sorted(groups)
    assert 1 < max(groups) < 6


def test_later_group_is_compared_with_its_own_first() -> None:
    """Two different pairs of equal candidates are two groups of two."""
    ranking = rank(grid_of(noisy(3, 60, [0.0, 0.0, 3.0, 3.0])))
    assert [row.group for row in ranking.rows] == [1, 1, 2, 2]


def test_identical_candidates_share_a_rank_and_are_listed_by_name() -> None:
    """Equal candidates have equal ratings despite rounding, and are sorted by name."""
    one = noisy(4, 30, [0.0, 1.0])
    ranking = rank(grid_of(np.column_stack([one[:, 1], one[:, 0], one[:, 1]])))
    assert [(row.candidate, row.rank, row.group) for row in ranking.rows] == [
        ("a", 1, 1),
        ("c", 1, 1),
        ("b", 3, 2),
    ]
    assert [(row.rank_low, row.rank_high) for row in ranking.rows[:2]] == [(1, 2), (1, 2)]


def test_two_runs_give_the_same_bytes() -> None:
    """The ranking depends only on grid and settings, also in a new process."""
    program = (
        "import numpy as np\n"
        "from rocketeval.grid import ScoreGrid\n"
        "from rocketeval.ranking.rank import rank\n"
        "scores = np.random.default_rng(0).normal(size=(30, 5))\n"
        "scores[0, 0] = np.nan\n"
        "names = tuple('abcde')\n"
        "grid = ScoreGrid(tuple(map(str, range(30))), names, scores)\n"
        "import sys; sys.stdout.write(repr(rank(grid, bootstrap=200)))\n"
    )
    runs = [
        subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout
        for _ in range(2)
    ]
    assert runs[0] == runs[1]
    assert runs[0].startswith(b"Ranking(rows=(RankedCandidate(")


def test_seed_changes_only_the_intervals() -> None:
    """Ratings do not depend on the seed; intervals do."""
    grid = grid_of(noisy(5, 40, [0.0, 0.5, 1.0]))
    first, second = rank(grid, seed=0), rank(grid, seed=1)
    assert [row.rating.value for row in first.rows] == [row.rating.value for row in second.rows]
    assert [row.rating.low for row in first.rows] != [row.rating.low for row in second.rows]


def test_missing_cells_are_counted_and_left_out_of_means() -> None:
    """Missing counts are relative to the whole grid."""
    scores = np.array([[1.0, 2.0], [3.0, np.nan], [np.nan, np.nan], [5.0, 4.0]])
    ranking = rank(grid_of(scores))
    assert ranking.queries == 3
    assert by_name(ranking, "queries") == {"a": 3, "b": 2}
    assert by_name(ranking, "missing") == {"a": 1, "b": 2}
    assert {row.candidate: row.mean_score.value for row in ranking.rows} == {"a": 3.0, "b": 3.0}


def test_candidate_without_scores_is_unranked() -> None:
    """It is listed separately, and the others are unchanged."""
    scores = noisy(6, 20, [0.0, 1.0, 2.0])
    without = rank(grid_of(scores[:, [0, 2]], "ac"))
    scores[:, 1] = np.nan
    ranking = rank(grid_of(scores))
    assert ranking.unranked == ("b",)
    assert ranking.rows == without.rows


def test_one_query_separates_nothing() -> None:
    """With a single query, every rank is possible, and all share a group."""
    ranking = rank(grid_of(np.array([[1.0, 9.0, 5.0]])))
    assert [row.candidate for row in ranking.rows] == ["b", "c", "a"]
    assert {(row.rank_low, row.rank_high, row.group) for row in ranking.rows} == {(1, 3, 1)}
    assert all(math.isnan(row.rating.low) for row in ranking.rows)


def test_wins_on_all_queries_give_ratings_without_interval() -> None:
    """Resamples do not vary if the order is the same on all queries; the tests still decide."""
    rng = np.random.default_rng(0)
    base = rng.normal(5.0, 1.0, 8)
    scores = np.column_stack([base + 2.0 + rng.random(8), base + 1.0, np.full(8, 1.0)])
    ranking = rank(ScoreGrid(tuple(f"q{i}" for i in range(8)), ("a", "b", "c"), scores))
    assert all(math.isnan(row.rating.low) and math.isnan(row.rating.high) for row in ranking.rows)
    assert [row.beats_next for row in ranking.rows] == [True, True, None]
    assert [math.isnan(row.mean_score.low) for row in ranking.rows] == [False, False, True]


@pytest.mark.parametrize("missing", [0.0, 0.2])
@pytest.mark.parametrize("sign", [1.0, -1.0], ids=["wins", "loses"])
def test_candidate_that_wins_or_loses_everything_has_no_interval(
    sign: float, missing: float
) -> None:
    """The ratings of the others vary, but say nothing about its own."""
    scores = noisy(5, 30, [0.0] * 5, missing)
    scores[:, 4] = 20.0 * sign
    ranking = rank(grid_of(scores), bootstrap=100)
    extreme = ranking.rows[0 if sign > 0.0 else -1]
    assert extreme.candidate == "e"
    assert math.isnan(extreme.rating.low)
    assert math.isnan(extreme.rating.high)
    others = [row for row in ranking.rows if row is not extreme]
    assert all(row.rating.low < row.rating.high for row in others)
    assert [row.group == extreme.group for row in others] == [False] * 4
    anchored = rank(grid_of(scores), bootstrap=100, anchor="e").rows
    assert {row.candidate: math.isnan(row.rating.low) for row in anchored} == {
        **dict.fromkeys("abcd", True),
        "e": False,
    }


def test_one_loss_gives_a_rating_an_interval() -> None:
    """One lost query among 30 shows how wide it must be."""
    scores = noisy(5, 30, [0.0] * 5)
    scores[:, 4] = 20.0
    scores[0, 4] = scores[0, :4].min() - 1.0
    rating = rank(grid_of(scores), bootstrap=200).rows[0].rating
    assert rating.high - rating.low > 100.0


def test_constant_share_over_clusters_gives_no_interval() -> None:
    """A candidate that beats the same number of others on all queries has no interval."""
    rng = np.random.default_rng(0)
    sides = np.where(rng.random((12, 1)) < 0.7, [[1.0, 9.0]], [[9.0, 1.0]])
    scores = np.column_stack([sides, np.full(12, 5.0), rng.choice([0.0, 2.0], 12)])
    rows = rank(grid_of(scores), bootstrap=100).rows
    assert {row.candidate for row in rows if math.isnan(row.rating.low)} == {"c"}


def test_candidates_that_share_no_query_are_not_compared() -> None:
    """Islands are numbered, no group crosses them, and rank intervals allow for the other one."""
    scores = np.full((40, 4), np.nan)
    scores[:20, :2] = noisy(7, 20, [0.0, 5.0])
    scores[20:, 2:] = noisy(8, 20, [0.0, 5.0])
    ranking = rank(grid_of(scores))
    assert len(set(by_name(ranking, "group").values())) == 4
    assert [row.beats_next for row in ranking.rows] == [None] * 4
    assert (ranking.pairs, ranking.significant_pairs) == (2, 2)
    assert ranking.islands == 2
    assert by_name(ranking, "island") == {"a": 1, "b": 1, "c": 2, "d": 2}
    bounds = {row.candidate: (row.rank_low, row.rank_high) for row in ranking.rows}
    assert bounds == {"b": (1, 3), "d": (1, 3), "a": (2, 4), "c": (2, 4)}


def test_ties_are_within_an_island() -> None:
    """Equal candidates of an island are one group, also if others are ranked between them."""
    rng = np.random.default_rng(3)
    scores = np.full((40, 4), np.nan)
    scores[:20, :2] = rng.normal(size=(20, 1)) + 0.3 * rng.normal(size=(20, 2))
    scores[20:, 2:] = noisy(8, 20, [0.0, 5.0])
    groups = by_name(rank(grid_of(scores)), "group")
    assert groups["a"] == groups["b"]
    assert len({groups["a"], groups["c"], groups["d"]}) == 3


def test_single_candidate_has_rank_one() -> None:
    """A single candidate has rank 1 and the mean rating."""
    (row,) = rank(grid_of(noisy(9, 8, [0.0]))).rows
    assert (row.rank, row.rank_low, row.rank_high) == (1, 1, 1)
    assert row.rating.value == 1000.0
    assert row.mean_score.low < row.mean_score.value < row.mean_score.high


def test_neighbors_are_compared_with_each_other() -> None:
    """Neighbors of different groups may be tied, as `beats_next` shows."""
    rows = rank(grid_of(noisy(3, 60, [0.0, 0.3, 0.6, 0.9, 1.2, 1.5]))).rows
    assert rows[-1].beats_next is None
    borders = [a for a, b in pairwise(rows) if a.group != b.group]
    assert any(not row.beats_next for row in borders)
    clear = rank(grid_of(noisy(1, 100, [0.0, 2.0, 4.0]))).rows
    assert [row.beats_next for row in clear] == [True, True, None]


def test_win_matrix_is_in_ranking_order() -> None:
    """Shares match the names, and the diagonal is empty."""
    scores = noisy(1, 50, [0.0, 4.0, 2.0])
    found = rank(grid_of(scores), tie_margin=0.0).wins
    assert found is not None
    assert found.candidates == ("b", "c", "a")
    assert found.shares[0][2] == np.mean(scores[:, 1] > scores[:, 0]).round(6)
    assert [found.shares[place][place] for place in range(3)] == [None, None, None]


def test_no_win_matrix_above_the_limit() -> None:
    """With too many candidates, there is no win matrix."""
    scores = np.random.default_rng(0).normal(size=(6, 201))
    grid = ScoreGrid(tuple("abcdef"), tuple(map(str, range(201))), scores)
    assert rank(grid, bootstrap=50).wins is None


def test_grid_without_scores_is_refused() -> None:
    """A grid without scores is an error, not an empty table."""
    with pytest.raises(RocketEvalError, match="none of 2 candidates has a score"):
        rank(grid_of(np.full((3, 2), np.nan)))


def test_import_loads_neither_scipy_nor_sklearn() -> None:
    """Heavy packages are imported only when they are used."""
    program = (
        "import sys, rocketeval.ranking.rank, rocketeval.audit.figures, "
        "rocketeval.audit.labels, rocketeval.audit.figures\n"
        "assert not {'scipy', 'sklearn', 'threadpoolctl'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("queries", [2, 3, 4, 5])
def test_fewer_than_six_queries_give_a_tie(queries: int) -> None:
    """Even a candidate that wins every query has no interval and is tied."""
    ranking = rank(grid_of(np.tile([9.0, 1.0], (queries, 1))))
    assert [row.group for row in ranking.rows] == [1, 1]
    assert [(row.rank_low, row.rank_high) for row in ranking.rows] == [(1, 2), (1, 2)]
    assert all(math.isnan(row.rating.low) for row in ranking.rows)


def test_six_wins_out_of_six_are_enough() -> None:
    """With six queries, winning all of them is significant."""
    ranking = rank(grid_of(np.tile([9.0, 1.0], (6, 1))))
    assert [row.group for row in ranking.rows] == [1, 2]


@pytest.mark.parametrize("queries", [6, 8, 12, 40])
def test_false_positive_rate_of_equal_candidates(queries: int) -> None:
    """Of 200 pairs of equal candidates, at most 10% are separated, for any number of queries."""
    separated = 0
    for seed in range(200):
        ranking = rank(grid_of(noisy(seed, queries, [0.0, 0.0])), bootstrap=200)
        separated += ranking.rows[-1].group == 2
    assert separated <= 20
