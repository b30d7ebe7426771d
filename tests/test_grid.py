"""The score grid: order, missing cells and invalid input."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

from rocketeval.errors import BenchmarkError
from rocketeval.grid import GridBuilder, ScoreGrid, compare


def test_from_columns_orders_queries_by_appearance_and_candidates_by_name() -> None:
    """Rows are in input order, columns in alphabetical order."""
    grid = ScoreGrid.from_columns(["q2", "q1", "q2"], ["b", "a", "a"], [1.0, 2.0, 3.0])
    assert grid.query_ids == ("q2", "q1")
    assert grid.candidates == ("a", "b")
    np.testing.assert_array_equal(grid.scores, [[3.0, 1.0], [2.0, np.nan]])


def test_none_nan_and_absent_cells_are_missing() -> None:
    """None, NaN and absent cells are counted as missing and left out of the mean."""
    grid = ScoreGrid.from_columns(
        ["q1", "q1", "q2", "q3"], ["a", "b", "a", "a"], [4.0, None, math.nan, 6.0]
    )
    assert grid.missing == 4
    means = grid.mean_by_candidate()
    assert means["a"] == 5.0
    assert math.isnan(means["b"])


@pytest.mark.parametrize(
    ("values", "problem"), [([1.0, 1.0], "two scores"), ([math.inf, 1.0], "infinite")]
)
def test_contradictory_cells_are_refused_by_name(values: list[float], problem: str) -> None:
    """A response with two scores or an infinite one is an error that names it."""
    with pytest.raises(BenchmarkError, match=f"'q'.*'a'.*{problem}"):
        ScoreGrid.from_columns(["q", "q"], ["a", "a"], values)


def test_rounding_errors_never_win() -> None:
    """Equal answers in another order are tied, also without a margin; a real difference wins."""
    first, second = np.array([0.1 + 0.2 + 0.3, 2.8 + 1e-6]), np.array([0.3 + 0.2 + 0.1, 2.8])
    assert first[0] != second[0]
    assert compare(first, second, 0.0).tolist() == [0, 1]
    assert compare(second, first, 0.0).tolist() == [0, -1]


def test_scores_cannot_be_edited() -> None:
    """The array of scores is read-only."""
    grid = ScoreGrid.from_columns(["q"], ["a"], [1.0])
    with pytest.raises(ValueError, match="read-only"):
        grid.scores[0, 0] = 2.0


def test_shape_must_fit_the_names() -> None:
    """A matrix of another shape than its names is refused."""
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        ScoreGrid(("q",), ("a",), np.zeros((1, 2)))


def test_columns_of_unequal_length_are_refused() -> None:
    """Columns must have the same length."""
    with pytest.raises(ValueError, match="1 scores for 2 responses"):
        ScoreGrid.from_columns(["q", "q"], ["a", "b"], [1.0])


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_parts_give_the_same_grid(size: int) -> None:
    """A grid built from parts equals the grid of the whole."""
    queries = ["z", "z", "a", "a", "m", "z", "m"]
    candidates = ["b", "c", "c", "a", "b", "a", "c"]
    values = np.array([1.0, 2.0, np.nan, 4.0, 5.0, 6.0, 7.0])
    builder = GridBuilder()
    for start in range(0, len(queries), size):
        part = slice(start, start + size)
        builder.add(pa.array(queries[part]), pa.array(candidates[part]), values[part])
    whole = ScoreGrid.from_columns(queries, candidates, values.tolist())
    made = builder.grid()
    assert (made.query_ids, made.candidates) == (whole.query_ids, whole.candidates)
    np.testing.assert_array_equal(made.scores, whole.scores)


def test_contradictions_between_parts_are_refused() -> None:
    """A response scored in two parts is an error that names it."""
    builder = GridBuilder()
    for value in (1.0, 2.0):
        builder.add(pa.array(["q"]), pa.array(["a"]), np.array([value]))
    with pytest.raises(BenchmarkError, match=r"'q'.*'a'.*two scores"):
        builder.grid()


def test_no_parts_give_an_empty_grid() -> None:
    """Without parts, the grid has no cells."""
    assert GridBuilder().grid().scores.shape == (0, 0)
