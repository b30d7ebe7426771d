"""Correlation of scores with labels, over responses and over candidates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from rocketeval.audit.labels import LabelledCells, cells_of, label_correlation
from rocketeval.grid import ScoreGrid
from rocketeval.records import Label
from rocketeval.scoring.learning import label_cells
from rocketeval.stats import correlation as kendall
from rocketeval.stats.bootstrap import interval, resample_queries, sum_draws
from rocketeval.stats.correlation import moments, pearson, pearson_of
from support.tables import tables


def labelled(
    seed: int, queries: int, candidates: int, noise: float = 1.0
) -> tuple[ScoreGrid, list[Label]]:
    """Return scores that follow labels with noise."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(1, 11, size=(queries, candidates)).astype(float)
    truth += np.arange(candidates)
    names = tuple(f"c{column}" for column in range(candidates))
    ids = tuple(f"q{row}" for row in range(queries))
    grid = ScoreGrid(ids, names, truth + noise * rng.normal(size=truth.shape))
    labels = [
        Label(ids[row], names[column], float(truth[row, column]))
        for row in range(queries)
        for column in range(candidates)
    ]
    return grid, labels


def test_coefficients_equal_scipy_and_lie_in_their_intervals() -> None:
    """All three response-level figures equal SciPy's, with an interval around them."""
    grid, labels = labelled(1, 30, 4, noise=3.0)
    found = label_correlation(grid, labels, bootstrap=200)
    x, y = grid.scores.ravel(), [label.value for label in labels]
    expected = (
        stats.pearsonr(x, y).statistic,
        stats.spearmanr(x, y).statistic,
        stats.kendalltau(x, y).statistic,
    )
    figures = (found.pearson, found.spearman, found.kendall)
    for figure, value in zip(figures, expected, strict=True):
        assert figure is not None
        assert figure.value == pytest.approx(value)
        assert figure.low < figure.value < figure.high
    assert (found.responses, found.unusable, found.reason) == (120, 0, None)
    assert found.candidates.n == 4
    assert found.candidates.spearman is not None


@settings(deadline=None, max_examples=50)
@given(tables((2, 10), (1, 5)))
def test_coefficients_equal_scipy_with_ties_and_gaps(table: np.ndarray) -> None:
    """Equal to nine digits on responses with a score and a label; the others are counted."""
    queries, candidates = len(table) // 2, table.shape[1]
    scores, labels = table[:queries], table[queries : 2 * queries]
    ids, names = [f"q{n}" for n in range(queries)], [f"c{n}" for n in range(candidates)]
    given_labels = [
        Label(ids[q], names[c], float(labels[q, c])) for q, c in np.argwhere(~np.isnan(labels))
    ]
    x, y = (side[~np.isnan(scores - labels)] for side in (scores, labels))
    grid = ScoreGrid(tuple(ids), tuple(names), scores)
    found = label_correlation(grid, given_labels, bootstrap=2)
    assert (found.responses, found.unusable) == (len(x), len(given_labels) - len(x))
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        assert (found.pearson, found.spearman, found.kendall) == (None, None, None)
        assert found.reason is not None
        return
    assert found.pearson is not None
    assert found.spearman is not None
    assert found.kendall is not None
    assert found.rmse is not None
    assert found.pearson.value == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-9)
    assert found.spearman.value == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-9)
    assert found.kendall.value == pytest.approx(stats.kendalltau(x, y).statistic, abs=1e-9)
    assert found.rmse.value == pytest.approx(np.sqrt(((x - y) ** 2).mean()), abs=1e-9)


def pearson_draws(cells: LabelledCells, times: int, seed: int) -> np.ndarray:
    """Return Pearson on every resample of the queries."""
    return pearson_of(sum_draws(moments(cells.scores, cells.labels, cells.rows), times, seed))


def test_pearson_draws_equal_explicit_resamples() -> None:
    """Sums per query give the same draws as repeating the responses of drawn queries."""
    grid, labels = labelled(2, 12, 3)
    cells, _ = cells_of(grid, *label_cells(grid, labels))
    fast = pearson_draws(cells, 20, 5)
    slow = []
    for counts in resample_queries(12, 20, 5):
        for draw in counts.astype(int):
            again = np.repeat(np.arange(36), draw[cells.rows])
            slow.append(np.corrcoef(cells.scores[again], cells.labels[again])[0, 1])
    np.testing.assert_allclose(fast, slow)


def test_intervals_of_pearson_cover_the_truth() -> None:
    """Over 200 simulated benchmarks with uneven queries, coverage is 88-99%."""
    rng = np.random.default_rng(4)
    ids, names = tuple(f"q{n}" for n in range(40)), ("a", "b", "c")
    hits = 0
    for _ in range(200):
        hard = rng.normal(size=(40, 1))
        scores, labels = hard + rng.normal(size=(2, 40, 3))
        grid = ScoreGrid(ids, names, scores)
        rows = [Label(ids[q], names[c], float(labels[q, c])) for q in range(40) for c in range(3)]
        cells, _ = cells_of(grid, *label_cells(grid, rows))
        draws = pearson_draws(cells, 300, 0)
        value = pearson(cells.scores, cells.labels)
        found = interval(value, draws, queries=40, level=0.95)
        hits += found.low <= 0.5 <= found.high
    assert 0.88 <= hits / 200 <= 0.99


def test_labels_without_a_score_are_counted_and_several_labels_averaged() -> None:
    """Missing and unknown responses are counted; two labels of one response are averaged."""
    grid = ScoreGrid.from_columns(["q"] * 4, list("abcd"), [1.0, 2.0, 3.0, None])
    labels = [
        Label("q", "a", 1.0),
        Label("q", "b", 1.0, "p1"),
        Label("q", "b", 3.0, "p2"),
        Label("q", "c", 3.0),
        Label("q", "d", 9.0),
        Label("nowhere", "a", 9.0),
    ]
    found = label_correlation(grid, labels, bootstrap=10)
    assert (found.responses, found.unusable) == (3, 2)
    assert found.pearson is not None
    assert found.pearson.value == pytest.approx(1.0)
    assert np.isnan(found.pearson.low)


def test_too_few_labels_give_a_reason() -> None:
    """Two labeled responses give no coefficient."""
    grid = ScoreGrid.from_columns(["q", "q"], ["a", "b"], [1.0, 2.0])
    found = label_correlation(grid, [Label("q", "a", 1.0), Label("q", "b", 2.0)])
    assert found.pearson is None
    assert found.reason == "only 2 labeled responses have both figures; 3 are needed"


def test_kendalls_interval_is_left_out_for_many_responses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Above the limit the value remains and the bounds are unknown."""
    monkeypatch.setattr(kendall, "MOST_FOR_KENDALL_INTERVAL", 10)
    found = label_correlation(*labelled(3, 6, 2), bootstrap=50)
    assert found.kendall is not None
    assert found.kendall.value > 0.0
    assert np.isnan(found.kendall.low)
    assert found.pearson is not None
    assert not np.isnan(found.pearson.low)


def test_equal_scores_have_rmse_but_no_correlation() -> None:
    """The RMSE needs no variation; the reason is for the coefficients."""
    grid = ScoreGrid(("q1", "q2", "q3"), ("c",), np.full((3, 1), 5.0))
    labels = [Label(f"q{number}", "c", 5.0 + number) for number in (1, 2, 3)]
    found = label_correlation(grid, labels, bootstrap=50)
    assert found.pearson is None
    assert found.reason is not None
    assert found.rmse is not None
    assert found.rmse.value == pytest.approx(np.sqrt(14 / 3))


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_resample_without_spread_has_no_coefficient(scale: float) -> None:
    """Rounding error does not count as spread, but a small spread does."""
    rows = np.repeat(np.arange(3), 4)
    scores = scale * np.where(rows == 0, 0.1, np.arange(12) / 7.0)
    cells = LabelledCells(rows, np.arange(12), scores, np.arange(12) ** 2 / 3.0)
    per_query = moments(cells.scores, cells.labels, rows)
    draws = pearson_of(np.array([[3.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 2.0, 1.0]]) @ per_query)
    assert np.isnan(draws[0])
    expected = [
        np.corrcoef(np.repeat(scores, each), np.repeat(cells.labels, each))[0, 1]
        for each in (np.ones(12, int), np.repeat([0, 2, 1], 4))
    ]
    assert draws[1:] == pytest.approx(expected)
