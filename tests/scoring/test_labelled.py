"""Labels as columns and grids: averaged, laid out, and refused off the scale."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest

from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Label
from rocketeval.scoring.learning import (
    label_cells,
    label_column,
    mean_by_candidate,
    mean_by_response,
)
from support.made_runs import answer_table

LABELS = [
    Label("q1", "a", 2.0),
    Label("q1", "a", 4.0, labeler="other"),
    Label("q1", "b", 5.0),
    Label("q2", "a", 6.0),
    Label("q9", "a", 1.0),
    Label("q1", "z", 1.0),
]


def test_labels_are_averaged_and_unknown_ones_counted() -> None:
    """Two labels of a response are averaged; labels without a cell are counted."""
    grid = ScoreGrid(("q1", "q2"), ("a", "b"), np.zeros((2, 2)))
    cells, unknown = label_cells(grid, LABELS)
    assert unknown == 2
    assert cells[0].tolist() == [3.0, 5.0]
    assert cells[1, 0] == 6.0
    assert np.isnan(cells[1, 1])


def test_label_column_follows_the_answers() -> None:
    """One value per response, NaN without a label."""
    answers = answer_table([("q2", "b", [0.5]), ("q1", "a", [0.5]), ("q2", "a", [0.5])])
    column = label_column(answers, LABELS, (1.0, 10.0))
    assert np.isnan(column[0])
    assert column[1:].tolist() == [3.0, 6.0]


def test_candidate_mean_of_labels() -> None:
    """Every label counts once, for any query."""
    assert mean_by_candidate(LABELS) == {"a": 13.0 / 4.0, "b": 5.0, "z": 1.0}


def test_label_order_does_not_change_the_mean() -> None:
    """0.1 + 0.2 + 0.3 depends on the order of the sum; the mean does not."""
    labels = [Label("q", "a", value) for value in (0.1, 0.2, 0.3, 0.7)]
    means = {mean_by_response(order)["q", "a"] for order in permutations(labels)}
    assert len(means) == 1


@pytest.mark.parametrize("value", [0.5, 11.0, float("nan")])
def test_label_off_the_scale_is_refused(value: float) -> None:
    """The error names the response and the scale."""
    answers = answer_table([("q1", "a", [0.5])])
    with pytest.raises(ConfigError, match=r"query 'q1', candidate 'a' is not on the scale 1 to 10"):
        label_column(answers, [Label("q1", "a", value)], (1.0, 10.0))
