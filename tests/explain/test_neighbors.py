"""Windows of neighbors equal sorting by distance, and means equal a plain loop."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.explain.candidate import Neighbourhood, mean_of_others, nearest


@pytest.mark.parametrize("most", [1, 2, 4, 7, 50])
def test_windows_contain_the_nearest(most: int) -> None:
    """Each window is the others sorted by distance, the better first."""
    rng = np.random.default_rng(0)
    places = np.sort(rng.choice(100, size=20, replace=False))
    first, last = nearest(places, most)
    for own in range(20):
        others = [n for n in range(20) if n != own]
        by_distance = sorted(others, key=lambda n: (abs(places[n] - places[own]), places[n]))
        found = [n for n in range(first[own], last[own] + 1) if n != own]
        assert found == sorted(by_distance[:most])


def test_few_candidates_have_few_neighbors() -> None:
    """A single candidate has none, and none has more than there are."""
    assert [side.tolist() for side in nearest(np.array([3]), 4)] == [[0], [0]]
    assert [side.tolist() for side in nearest(np.array([], dtype=np.int64), 4)] == [[], []]
    assert [side.tolist() for side in nearest(np.array([0, 1]), 4)] == [[0, 0], [1, 1]]


def test_means_exclude_self_and_missing_answers() -> None:
    """The mean of the others equals a plain loop; NaN if no other has an answer."""
    rng = np.random.default_rng(1)
    p_yes = rng.random((15, 6))
    p_yes[rng.random(p_yes.shape) < 0.4] = np.nan
    p_yes[:5, 0] = np.nan
    first, last = nearest(np.arange(15), 4)
    found = mean_of_others(p_yes, first, last)
    for row in range(15):
        for item in range(6):
            window = [p_yes[n, item] for n in range(first[row], last[row] + 1) if n != row]
            given = [p for p in window if not np.isnan(p)]
            expected = np.mean(given) if given else np.nan
            np.testing.assert_allclose(found[row, item], expected, atol=1e-12)


def test_neighbors_are_table_rows() -> None:
    """Rows of the table, best candidate first, without itself."""
    around = Neighbourhood(np.array([12, 10, 11]), np.array([0, 0, 1]), np.array([1, 2, 2]))
    assert around.neighbours_of(10) == [12, 11]
    assert around.neighbours_of(12) == [10]
