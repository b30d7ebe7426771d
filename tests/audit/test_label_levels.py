"""Correlation of scores with labels at three levels."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import stats

from rocketeval.audit.labels import (
    CANDIDATES,
    PER_QUERY,
    RESPONSES,
    cells_of,
    label_correlation,
    query_difference,
    spearman_difference,
)
from rocketeval.grid import ScoreGrid
from rocketeval.records import Label
from rocketeval.scoring.learning import label_cells
from rocketeval.stats import correlation as module
from rocketeval.stats.bootstrap import interval_without_spread, resample_queries, sum_draws
from rocketeval.stats.correlation import kendall_adds, tau_b, within_queries
from support.tables import tables


def labels_of(values: np.ndarray) -> list[Label]:
    """Return a label for every cell with a value."""
    return [Label(f"q{q}", f"c{c}", float(values[q, c])) for q, c in np.argwhere(~np.isnan(values))]


def grid_of(scores: np.ndarray) -> ScoreGrid:
    queries, candidates = scores.shape
    ids = tuple(f"q{row}" for row in range(queries))
    return ScoreGrid(ids, tuple(f"c{column}" for column in range(candidates)), scores)


@settings(deadline=None, max_examples=60)
@given(tables((2, 10), (1, 6)))
def test_within_query_coefficients_equal_scipy(table: np.ndarray) -> None:
    """Query by query, with ties and gaps; constant queries are left out and counted."""
    queries = len(table) // 2
    scores, labels = table[:queries], table[queries : 2 * queries]
    expected, labelled = [], 0
    for x, y in zip(scores, labels, strict=True):
        both = ~np.isnan(x - y)
        labelled += both.any()
        if both.any() and np.ptp(x[both]) and np.ptp(y[both]):
            pair = x[both], y[both]
            expected.append(
                (
                    stats.pearsonr(*pair).statistic,
                    stats.spearmanr(*pair).statistic,
                    stats.kendalltau(*pair).statistic,
                )
            )
    found = label_correlation(grid_of(scores), labels_of(labels), bootstrap=2).levels[PER_QUERY]
    assert (found.n, found.left_out) == (len(expected), labelled - len(expected))
    if not expected:
        assert (found.pearson, found.spearman, found.kendall) == (None, None, None)
        assert found.reason is not None
        return
    figures = [found.pearson, found.spearman, found.kendall]
    for figure, mean in zip(figures, np.mean(expected, axis=0), strict=True):
        assert figure is not None
        assert figure.value == pytest.approx(mean, abs=1e-9)


def test_pair_counting_does_not_depend_on_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large queries and many blocks give the same figure."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 9, size=(2, 60)).astype(float)
    places = np.repeat(np.arange(6), 10)
    at_once = within_queries(x, y, places)
    monkeypatch.setattr(module, "_BLOCK_CELLS", 100)
    np.testing.assert_allclose(within_queries(x, y, places), at_once)
    monkeypatch.setattr(module, "_FEW_ENOUGH_FOR_PAIRS", 5)
    np.testing.assert_allclose(within_queries(x, y, places), at_once)


def test_underflowing_differences_count_as_equal() -> None:
    """The query is left out, without a warning or a division by zero."""
    found = within_queries(np.array([0.0, 1e-300]), np.array([1.0, 2.0]), np.array([0, 0]))
    assert np.isnan(found[0, 0])


def test_kendall_draws_match_explicit_resamples() -> None:
    """To first order: the spread is within a tenth of tau-b on explicit resamples."""
    rng = np.random.default_rng(2)
    labels = rng.integers(1, 6, size=(60, 5)).astype(float)
    scores = labels + rng.normal(scale=2.0, size=labels.shape).round(1)
    grid = grid_of(scores)
    cells, _ = cells_of(grid, *label_cells(grid, labels_of(labels)))
    value = tau_b(cells.scores, cells.labels)
    adds = kendall_adds(value, cells.scores, cells.labels, cells.rows)
    assert adds.sum() == pytest.approx(0.0, abs=1e-9)
    fast = value + sum_draws(adds[:, None], 400, 3)[:, 0]
    slow = []
    for counts in resample_queries(60, 400, 3):
        for draw in counts.astype(int):
            again = np.repeat(np.arange(300), draw[cells.rows])
            slow.append(stats.kendalltau(cells.scores[again], cells.labels[again]).statistic)
    assert fast.std() == pytest.approx(np.std(slow), rel=0.1)
    assert np.corrcoef(fast, slow)[0, 1] > 0.95


def test_high_candidate_level_can_hide_low_response_level() -> None:
    """Noisy responses around well separated means show at the three levels."""
    rng = np.random.default_rng(3)
    truth = np.broadcast_to(np.linspace(4.0, 7.0, 12), (60, 12))
    scores, labels = truth + 3.0 * rng.normal(size=(2, 60, 12))
    found = label_correlation(grid_of(scores), labels_of(labels), bootstrap=100)
    single, within, means = (found.levels[name] for name in (RESPONSES, PER_QUERY, CANDIDATES))
    assert (single.n, within.n, means.n) == (720, 60, 12)
    for level in (single, within):
        assert level.spearman is not None
        assert level.spearman.high < 0.35
    assert means.spearman is not None
    assert means.pearson is not None
    assert means.spearman.value > 0.8
    assert means.pearson.low < means.pearson.value < means.pearson.high
    assert single.spearman == found.spearman


def test_agreement_on_every_query_has_an_exact_interval() -> None:
    """With two responses per query, each coefficient is 1 or -1, and resamples may not vary."""
    labels = np.tile([3.0, 7.0], (10, 1))
    grid, laid_out = grid_of(labels), labels
    within = label_correlation(grid, labels_of(labels), bootstrap=50).levels[PER_QUERY]
    for figure in (within.pearson, within.spearman, within.kendall):
        assert figure is not None
        assert figure.value == pytest.approx(1.0)
        assert (figure.low, figure.high) == (pytest.approx(0.383, abs=0.001), 1.0)
    for other, gap in ((labels, 0.0), (np.ones_like(labels), 1.0), (labels[:, ::-1], 2.0)):
        lead = query_difference(grid, grid_of(other), laid_out, bootstrap=50)
        assert lead is not None
        assert lead.value == interval_without_spread(gap, 10, 0.95, (-2.0, 2.0))
    few = label_correlation(grid_of(labels[:5]), labels_of(labels[:5])).levels[PER_QUERY]
    assert few.spearman is not None
    assert math.isnan(few.spearman.low)


def test_few_candidates_have_a_coefficient_and_no_interval() -> None:
    """Below ten candidates there are no bounds, below three no coefficient."""
    rng = np.random.default_rng(4)
    values = rng.normal(size=(9, 4))
    found = label_correlation(grid_of(values), labels_of(values), bootstrap=20).levels[CANDIDATES]
    assert found.pearson is not None
    assert found.pearson.value == pytest.approx(1.0)
    assert math.isnan(found.pearson.low)
    two = label_correlation(grid_of(values[:, :2]), labels_of(values[:, :2]), bootstrap=20)
    assert two.levels[CANDIDATES].pearson is None
    assert two.levels[CANDIDATES].reason is not None
    assert two.levels[RESPONSES].reason is None


def test_better_scores_have_a_significant_lead() -> None:
    """The difference is paired; swapping the two changes only the sign."""
    rng = np.random.default_rng(5)
    labels = rng.normal(size=(50, 4))
    good, bad = (grid_of(labels + noise * rng.normal(size=labels.shape)) for noise in (0.3, 3.0))
    laid_out, _ = label_cells(good, labels_of(labels))
    lead = spearman_difference(good, bad, laid_out, bootstrap=200)
    back = spearman_difference(bad, good, laid_out, bootstrap=200)
    assert lead is not None
    assert back is not None
    assert lead.value.low > 0.0
    assert back.value.value == pytest.approx(-lead.value.value)
    assert (lead.gold, lead.queries) == (200, 50)
    flat = grid_of(np.zeros_like(labels))
    assert spearman_difference(good, flat, laid_out) is None
