"""Krippendorff's alpha and all agreement figures, against other libraries."""

from __future__ import annotations

import math
from dataclasses import asdict

import numpy as np
import pytest
from hypothesis import given, settings

from rocketeval.stats import agreement as module
from rocketeval.stats.agreement import Level, cohen_kappa, krippendorff_alpha, reliability
from rocketeval.stats.bootstrap import resample_queries
from support.tables import PROBABILITIES, tables

EVERY_LEVEL: list[Level] = ["nominal", "ordinal", "interval"]


def noisy(seed: int, raters: int, units: int) -> np.ndarray:
    """Return ratings 0..3 that mostly agree, with some missing."""
    rng = np.random.default_rng(seed)
    ratings = np.tile(rng.integers(0, 4, units), (raters, 1)).astype(float)
    wrong = rng.random(ratings.shape) < 0.3
    ratings[wrong] = rng.integers(0, 4, wrong.sum())
    ratings[rng.random(ratings.shape) < 0.2] = np.nan
    return ratings


@pytest.mark.parametrize("level", EVERY_LEVEL)
@settings(deadline=None)
@given(ratings=tables((2, 6), (1, 15)) | tables((2, 5), (1, 15), PROBABILITIES))
def test_alpha_equals_the_krippendorff_library(level: Level, ratings: np.ndarray) -> None:
    """At every level, with ties and gaps; units rated less than twice are dropped and counted."""
    krippendorff = pytest.importorskip("krippendorff")
    enough = (~np.isnan(ratings)).sum(axis=0) >= 2
    kept = ratings[:, enough]
    found = krippendorff_alpha(ratings, level)
    assert (found.used, found.dropped) == (enough.sum(), (~enough).sum())
    if len(set(kept[~np.isnan(kept)])) < 2:
        assert found.value is None
        assert found.reason is not None
        return
    expected = krippendorff.alpha(reliability_data=kept, level_of_measurement=level)
    assert found.value == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_identical_ratings_have_no_alpha(level: Level) -> None:
    """There is a reason, not 1 and not NaN."""
    found = krippendorff_alpha(np.array([[2.0, 2.0, 1.0], [2.0, 2.0, np.nan]]), level)
    assert (found.value, found.used, found.dropped) == (None, 2, 1)
    assert found.reason == "every rating is 2, so chance agreement is perfect"


def test_alpha_is_scale_invariant() -> None:
    """Tiny differences far from zero have the same alpha as plain ones."""
    ratings = noisy(1, 3, 20)
    plain = krippendorff_alpha(ratings, "interval").value
    assert krippendorff_alpha(ratings * 1e-200, "interval").value == pytest.approx(plain)
    assert krippendorff_alpha(ratings + 1e6, "interval").value == pytest.approx(plain)


@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_alpha_draws_equal_explicit_resamples(level: Level) -> None:
    """Sums per query give the same alphas as repeating the units of drawn queries."""
    ratings, places = noisy(2, 4, 30), np.arange(30) // 3
    enough = (~np.isnan(ratings)).sum(axis=0) >= 2
    ratings, places = ratings[:, enough], places[enough]
    parts = module._parts(ratings, level, places)
    for counts in resample_queries(10, 20, 5):
        laid_out = [
            krippendorff_alpha(np.repeat(ratings, draw.astype(int)[places], axis=1), level).value
            for draw in counts
        ]
        np.testing.assert_allclose(parts.alphas(counts), laid_out, atol=1e-12)


def test_many_categories_are_counted_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The block size changes nothing."""
    ratings, places = noisy(3, 5, 40), np.arange(40) // 4
    ratings[0] = np.arange(40)
    parts = module._parts(ratings, "nominal", places)
    counts = next(resample_queries(10, 6, 0))
    whole = parts.alphas(counts)
    monkeypatch.setattr(module, "_BLOCK_CELLS", 18)
    np.testing.assert_allclose(parts.alphas(counts), whole, rtol=1e-12)


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_reliability_has_all_figures(level: Level) -> None:
    """Alpha in its interval, kappas by pair, the mean variance, and dropped units."""
    ratings = noisy(4, 4, 120)
    ratings[1:, 7] = np.nan
    groups = [f"q{unit // 4}" for unit in range(120)]
    found = reliability(ratings, groups, list("abcd"), level=level, bootstrap=200)
    assert found.alpha is not None
    assert found.alpha.value == pytest.approx(krippendorff_alpha(ratings, level).value, abs=1e-12)
    assert found.alpha.low < found.alpha.value < found.alpha.high
    for row, one in enumerate(ratings):
        for column, two in enumerate(ratings):
            assert found.cohen[row][column] == cohen_kappa(one, two)
    assert found.cohen[2][2].value == 1.0
    enough = (~np.isnan(ratings)).sum(axis=0) >= 2
    assert found.variance is not None
    mean_variance = np.nanvar(ratings[:, enough], axis=0, ddof=1).mean()
    assert found.variance.value == pytest.approx(mean_variance)
    assert (found.units, found.dropped, found.queries) == (enough.sum(), (~enough).sum(), 30)
    assert asdict(found)["fleiss"]["used"] == found.units


def test_alpha_intervals_cover_the_truth() -> None:
    """Over 150 simulated benchmarks with uneven queries, coverage is 88-99%."""
    rng = np.random.default_rng(6)
    hits = 0
    for _ in range(150):
        hard = np.repeat(rng.normal(size=40), 5)
        ratings = hard + rng.normal(size=(3, 200))
        found = reliability(
            ratings, np.arange(200) // 5, list("abc"), level="interval", bootstrap=300
        )
        assert found.alpha is not None
        hits += found.alpha.low <= 0.5 <= found.alpha.high
    assert 0.88 <= hits / 150 <= 0.99


@pytest.mark.parametrize("level", EVERY_LEVEL)
def test_nothing_to_rate_gives_reasons(level: Level) -> None:
    """No unit rated twice: no alpha, variance or kappa, and no error."""
    ratings = np.array([[1.0, math.nan], [math.nan, 2.0]])
    found = reliability(ratings, ["q", "r"], ["a", "b"], level=level, bootstrap=10)
    assert (found.alpha, found.variance, found.fleiss.value) == (None, None, None)
    assert found.reason == "no unit has ratings by two raters"
    assert found.cohen[0][1].reason == "no unit has ratings by two raters"
    assert (found.units, found.dropped, found.queries) == (0, 2, 0)


def test_names_and_queries_must_match() -> None:
    """One name per rater, one query per unit."""
    with pytest.raises(ValueError, match="1 names for 2 raters"):
        reliability(np.zeros((2, 3)), ["q"] * 3, ["a"])
    with pytest.raises(ValueError, match="2 queries for 3 elements"):
        reliability(np.zeros((2, 3)), ["q"] * 2, ["a", "b"])
    with pytest.raises(ValueError, match="the level is 'ratio'"):
        krippendorff_alpha(np.array([[1.0, 2.0], [1.0, 2.0]]), "ratio")  # type: ignore[arg-type]


def test_perfect_agreement_has_an_exact_interval() -> None:
    """Its bound is the alpha of raters who always differ on as many queries as may be unseen."""
    ratings = np.tile([0.0, 1.0], (2, 60))
    found = reliability(ratings, np.arange(120) // 2, ["a", "b"], bootstrap=20)
    other = ratings.copy()
    other[1, :8] = 1.0 - other[1, :8]
    some = krippendorff_alpha(other).value
    assert found.alpha is not None
    assert found.alpha.high == found.alpha.value == 1.0
    # At most 1 - 0.025 ** (1 / 60), or 6%, of queries differ; here 4 of 60 do.
    assert some is not None
    assert some < found.alpha.low < some + 0.02
    rare = np.zeros((2, 120))
    rare[:, :4] = 1.0
    few = reliability(rare, np.arange(120) // 2, ["a", "b"], bootstrap=20)
    assert few.alpha is not None
    assert few.alpha.low < 0.2
    values = reliability(ratings * 5.0, np.arange(120) // 2, ["a", "b"], level="interval")
    assert values.alpha is not None
    assert values.alpha.low == pytest.approx(found.alpha.low)
