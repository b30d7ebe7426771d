"""Rank correlation between judges: SciPy's coefficients on common candidates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from rocketeval.stats.agreement import rank_matrix
from support.tables import tables


@settings(deadline=None, max_examples=50)
@given(tables((2, 4), (3, 8)))
def test_every_cell_equals_scipy_on_common_candidates(table: np.ndarray) -> None:
    """Candidates that a judge lacks are left out of all cells, and named."""
    figures = {
        f"judge {row}": {f"c{column}": value for column, value in enumerate(own)}
        for row, own in enumerate(table)
    }
    found = rank_matrix(figures)
    complete = ~np.isnan(table).any(axis=0)
    common = table[:, complete]
    assert found.candidates == tuple(f"c{column}" for column in np.flatnonzero(complete))
    assert found.left_out == tuple(f"c{column}" for column in np.flatnonzero(~complete))
    for row, one in enumerate(common):
        for column, two in enumerate(common):
            cell = found.cells[row][column]
            assert cell.n == len(one)
            if len(one) < 3 or np.ptp(one) == 0 or np.ptp(two) == 0:
                assert (cell.spearman, cell.kendall) == (None, None)
                assert cell.reason is not None
                continue
            assert cell.spearman is not None
            assert cell.kendall is not None
            assert cell.spearman.value == pytest.approx(stats.spearmanr(one, two)[0], abs=1e-9)
            assert cell.kendall.value == pytest.approx(stats.kendalltau(one, two)[0], abs=1e-9)


def test_too_few_common_candidates_give_a_reason() -> None:
    """Two in common give a reason in every cell."""
    found = rank_matrix({"one": {"a": 1, "b": 2, "c": 3}, "two": {"a": 1, "b": 2, "d": 3}})
    assert found.judges == ("one", "two")
    assert found.left_out == ("c", "d")
    assert found.cells[0][1].reason == "only 2 candidates have both figures; 3 are needed"


def test_no_judges_give_an_empty_matrix() -> None:
    """There is no error."""
    assert rank_matrix({}).cells == ()
