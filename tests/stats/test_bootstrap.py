"""The query bootstrap: reproducible, close to refitting, and with nominal coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.errors import ConfigError
from rocketeval.stats import bootstrap, bradley_terry
from rocketeval.stats import bradley_terry as pairwise
from rocketeval.stats.bootstrap import interval, intervals, known_interval, resample_rows

Floats = NDArray[np.float64]


def fitted(
    seed: int, queries: int, candidates: int, missing: float
) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Return per-query wins, presence and full fit of a simulated grid."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(size=(queries, candidates)) + np.linspace(-0.5, 0.5, candidates)
    scores[rng.random(scores.shape) < missing] = np.nan
    wins = pairwise.win_totals(scores, 0.1)
    strengths = bradley_terry.fit(wins.sum(axis=0), pairwise.pair_counts(scores))
    return wins, ~np.isnan(scores), strengths


def width(draws: Floats) -> Floats:
    """Return the width of the 95% percentile interval of each column."""
    low, high = np.quantile(draws, [0.025, 0.975], axis=0)
    return high - low


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_one_step_draws_match_refits(missing: float) -> None:
    """One Newton step gives the refits draw by draw, with equally wide intervals."""
    wins, present, strengths = fitted(1, 200, 12, missing)
    fast = bootstrap.one_step_draws(wins, present, strengths, resample_rows(len(wins), 300, 0))
    exact = bootstrap.exact_draws(wins, present, strengths, resample_rows(len(wins), 300, 0))
    np.testing.assert_allclose(width(fast), width(exact), rtol=0.04)
    assert min(np.corrcoef(fast[:, c], exact[:, c])[0, 1] for c in range(12)) > 0.998


def test_one_step_draws_match_refits_with_missing_cells() -> None:
    """With four cells in five missing, draws still match, by the scaled curvature."""
    wins, present, strengths = fitted(0, 150, 20, 0.8)
    fast = bootstrap.one_step_draws(wins, present, strengths, resample_rows(len(wins), 300, 0))
    exact = bootstrap.exact_draws(wins, present, strengths, resample_rows(len(wins), 300, 0))
    assert min(np.corrcoef(fast[:, c], exact[:, c])[0, 1] for c in range(20)) > 0.991


def test_few_candidates_with_gaps_are_refitted() -> None:
    """Draws are exact if one step is too short; otherwise they are fast."""
    wins, present, strengths = fitted(2, 30, 5, 0.5)
    settings = {"times": 20, "seed": 0}
    np.testing.assert_array_equal(
        bootstrap.strength_draws(wins, present, strengths, **settings),
        bootstrap.exact_draws(wins, present, strengths, resample_rows(len(wins), **settings)),
    )
    wins, present, strengths = fitted(2, 30, 5, 0.0)
    np.testing.assert_array_equal(
        bootstrap.strength_draws(wins, present, strengths, **settings),
        bootstrap.one_step_draws(wins, present, strengths, resample_rows(len(wins), **settings)),
    )


def test_exact_draws_are_fits_of_resampled_rows() -> None:
    """Each exact draw is the fit of an explicit resample."""
    rng = np.random.default_rng(4)
    scores = rng.normal(size=(12, 4))
    scores[rng.random(scores.shape) < 0.3] = np.nan
    wins, here = pairwise.win_totals(scores, 0.1), ~np.isnan(scores)
    strengths = bradley_terry.fit(wins.sum(axis=0), pairwise.pair_counts(scores))
    draws = bootstrap.exact_draws(wins, here, strengths, resample_rows(len(wins), 10, 0))
    counts = np.concatenate(list(bootstrap.resample_queries(12, 10, 0)))
    for drawn, found in zip(counts.astype(int), draws, strict=True):
        again = np.repeat(scores, drawn, axis=0)
        total = pairwise.win_totals(again, 0.1).sum(axis=0)
        expected = bradley_terry.fit(total, pairwise.pair_counts(again))
        np.testing.assert_allclose(found, expected, atol=1e-8)


def test_rows_of_one_query_are_drawn_together() -> None:
    """Two judges' rows of a query are drawn together, and each draw is the fit of both."""
    one, here_one, _ = fitted(5, 150, 5, 0.1)
    other, here_other, _ = fitted(6, 150, 5, 0.1)
    wins, present = np.concatenate([one, other]), np.concatenate([here_one, here_other])

    def refit(drawn: Floats) -> Floats:
        met = sum(here.T.astype(float) @ (drawn[:, None] * here) for here in (here_one, here_other))
        np.fill_diagonal(met, 0.0)
        return bradley_terry.fit(drawn @ one + drawn @ other, met)

    settings = {"times": 100, "seed": 3, "queries": np.tile(np.arange(150), 2)}
    counts = np.concatenate(list(bootstrap.resample_queries(150, 100, 3)))
    expected = np.array([refit(drawn) for drawn in counts])
    whole = refit(np.ones(150))
    exact = bootstrap.exact_draws(wins, present, whole, resample_rows(len(wins), **settings))
    np.testing.assert_allclose(exact, expected, atol=1e-8)
    fast = bootstrap.one_step_draws(wins, present, whole, resample_rows(len(wins), **settings))
    assert min(np.corrcoef(fast[:, c], expected[:, c])[0, 1] for c in range(5)) > 0.995


def test_queries_are_resampled_not_comparisons() -> None:
    """Ten copies of each candidate make 100 times the comparisons, but no narrower interval."""
    rng = np.random.default_rng(3)
    one = rng.normal(size=(100, 2)) + np.array([0.0, 0.3])
    copied = np.repeat(one, 10, axis=1)

    def difference_width(scores: Floats) -> float:
        wins = pairwise.win_totals(scores, 0.0)
        strengths = bradley_terry.fit(wins.sum(axis=0), pairwise.pair_counts(scores))
        here = np.ones(scores.shape, bool)
        draws = bootstrap.strength_draws(wins, here, strengths, times=500, seed=0)
        return float(width(draws[:, -1] - draws[:, 0]))

    assert difference_width(copied) == pytest.approx(difference_width(one), rel=0.05)


def test_seed_is_independent_of_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resamples are reproducible, and blocks do not change them."""
    whole = np.concatenate(list(bootstrap.resample_queries(20, 50, 7)))
    monkeypatch.setattr(bootstrap, "_BLOCK_CELLS", 100)
    blocks = list(bootstrap.resample_queries(20, 50, 7))
    assert len(blocks) == 10
    np.testing.assert_array_equal(np.concatenate(blocks), whole)
    assert (whole.sum(axis=1) == 20).all()
    other = np.concatenate(list(bootstrap.resample_queries(20, 50, 8)))
    assert (other != whole).any()


@pytest.mark.parametrize("queries", [8, 40])
def test_intervals_of_the_mean_cover_nominally(queries: int) -> None:
    """Over 300 simulated benchmarks, 95% intervals cover 90-98% of the time."""
    rng = np.random.default_rng(11)
    hits = 0
    for trial in range(300):
        scores = 5.0 + rng.normal(size=(queries, 1)) + rng.normal(size=(queries, 1))
        draws = bootstrap.ratio_draws(scores, np.ones_like(scores), times=500, seed=trial)
        found = bootstrap.interval(float(scores.mean()), draws[:, 0], queries=queries, level=0.95)
        hits += found.low <= 5.0 <= found.high
    assert 0.90 <= hits / 300 <= 0.98


def test_intervals_of_a_rating_difference_cover_nominally() -> None:
    """Two equal candidates on unequally hard queries differ significantly about 5% of the time."""
    rng = np.random.default_rng(12)
    hits = 0
    for trial in range(300):
        scores = rng.normal(size=(30, 3)) + 3.0 * rng.normal(size=(30, 1))
        wins, here = pairwise.win_totals(scores, 0.1), np.ones(scores.shape, bool)
        strengths = bradley_terry.fit(wins.sum(axis=0), pairwise.pair_counts(scores))
        draws = bootstrap.strength_draws(wins, here, strengths, times=500, seed=trial)
        difference = float(strengths[0] - strengths[1])
        found = bootstrap.interval(difference, draws[:, 0] - draws[:, 1], queries=30, level=0.95)
        hits += found.low <= 0.0 <= found.high
    assert 0.90 <= hits / 300 <= 0.98


def test_ratio_draws_are_nan_without_data() -> None:
    """A candidate measured on one query has no mean on resamples without that query."""
    values, counted = np.array([[2.0], [0.0], [0.0]]), np.array([[1.0], [0.0], [0.0]])
    draws = bootstrap.ratio_draws(values, counted, times=200, seed=0)[:, 0]
    absent = np.isnan(draws)
    assert 0.1 < absent.mean() < 0.5
    assert (draws[~absent] == 2.0).all()


def test_one_query_has_no_interval() -> None:
    """A figure from a single query has unknown bounds, not zero width."""
    found = bootstrap.interval(3.0, np.full(100, 3.0), queries=1, level=0.95)
    assert found.value == 3.0
    assert np.isnan([found.low, found.high]).all()


def test_tails_shrink_for_few_queries_and_settle_for_many() -> None:
    """Few queries cut less off each side; many cut the plain percentile."""
    tails = [bootstrap.tail_probability(queries, 0.95) for queries in (5, 20, 80, 100_000)]
    assert tails == sorted(tails)
    assert tails[0] < 0.002
    assert tails[-1] == pytest.approx(0.025, abs=1e-4)


def test_invalid_settings_are_refused() -> None:
    """No resamples, or a level outside (0, 1), is an error with a hint."""
    with pytest.raises(ConfigError, match="bootstrap: 0"):
        list(bootstrap.resample_queries(5, 0, 0))
    with pytest.raises(ConfigError, match="level: 95"):
        bootstrap.tail_probability(10, 95)


def test_intervals_together_are_those_of_each() -> None:
    """Intervals of many columns are, to the bit, those of one column at a time."""
    rng = np.random.default_rng(0)
    draws = rng.normal(size=(200, 6))
    draws[3, 2] = np.nan
    draws[:, 5] = np.nan
    values, queries = np.nanmean(draws[:, :5], axis=0), np.array([40, 40, 40, 5, 25])
    values, queries = np.append(values, 0.0), np.append(queries, 40)
    kept = draws.copy()
    for column, found in enumerate(intervals(values, draws, queries, 0.95)):
        own = int(queries[column])
        alone = interval(float(values[column]), draws[:, column], queries=own, level=0.95)
        assert repr(found) == repr(alone)
    assert np.array_equal(draws, kept, equal_nan=True)


def test_draws_without_spread_have_no_bounds() -> None:
    """Neither alone nor together, also if they differ by rounding; the others are as before."""
    rng = np.random.default_rng(0)
    draws = np.column_stack([np.full(50, 0.3), 0.3 + 1e-15 * rng.normal(size=50), rng.random(50)])
    draws = np.column_stack([draws, np.where(np.arange(50) == 0, np.nan, 0.3)])
    values, queries = np.array([0.3, 0.3, 0.5, 0.3]), np.full(4, 8)
    found = intervals(values, draws, queries, 0.95)
    assert np.isnan([found[column].low for column in (0, 1, 3)]).all()
    assert np.isnan([found[column].high for column in (0, 1, 3)]).all()
    assert found[2] == interval(0.5, draws[:, 2], queries=8, level=0.95)
    assert math.isnan(known_interval(0.3, draws[:, 0], queries=8, level=0.95).low)
