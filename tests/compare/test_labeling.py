"""Choice of labels: optimal allocation, random and reproducible draws, accurate forecasts."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from rocketeval.compare.labeling import STEPS, advise, allocate, expected_width, measure_spread
from rocketeval.errors import ConfigError
from rocketeval.stats.prediction_powered import (
    FEWEST_IN_STRATUM,
    LabeledSample,
    LabelTarget,
    estimate,
    make_strata,
)

QUERIES = 300


def world(seed: int, labelled: int, groups: int = 3) -> tuple[LabeledSample, np.ndarray]:
    """Return a sample whose errors grow with the score, and all labels."""
    rng = np.random.default_rng(seed)
    scores = rng.uniform(1, 10, QUERIES)
    labels = scores + (0.3 + 0.25 * scores) * rng.normal(size=QUERIES)
    known = np.full(QUERIES, np.nan)
    rows = rng.permutation(QUERIES)[:labelled]
    known[rows] = labels[rows]
    names = tuple(f"q{row}" for row in range(QUERIES))
    return LabeledSample("a", names, scores, known, make_strata(scores, groups)), labels


def labelled_as(sample: LabeledSample, labels: np.ndarray, query_ids: set[str]) -> LabeledSample:
    """Return the sample with these queries labeled, too."""
    asked = np.array([query in query_ids for query in sample.query_ids])
    known = np.where(asked, labels, sample.labels)
    return replace(sample, labels=known)


def test_allocation_is_optimal() -> None:
    """No other allocation of the same labels has less variance, by brute force."""
    strata = np.repeat([0, 1, 2], [30, 20, 10])
    residual = np.repeat([1.0, 9.0, 4.0], [30, 20, 10])
    labelled = np.zeros(60, bool)
    labelled[[*range(7), *range(30, 36), *range(50, 55)]] = True
    have, more = np.array([7, 6, 5]), 12

    def variance(added: np.ndarray) -> float:
        shares = np.array([30, 20, 10]) / 60
        return float((shares**2 * np.array([1.0, 9.0, 4.0]) / (have + added)).sum())

    chosen = np.bincount(allocate(strata, residual, labelled, more), minlength=3)
    best = min(
        variance(np.array(way)) for way in product(range(more + 1), repeat=3) if sum(way) == more
    )
    assert chosen.sum() == more
    assert variance(chosen) == pytest.approx(best)


def test_every_stratum_gets_its_minimum_first() -> None:
    """Even a stratum without errors gets enough labels for an estimate."""
    strata = np.repeat([0, 1], [50, 50])
    residual = np.repeat([0.0, 4.0], [50, 50])
    places = allocate(strata, residual, np.zeros(100, bool), 30)
    assert places[: 2 * FEWEST_IN_STRATUM].count(0) == FEWEST_IN_STRATUM
    assert places.count(0) == FEWEST_IN_STRATUM


def test_allocation_stops_when_queries_run_out() -> None:
    """A stratum never gets more labels than it has queries."""
    strata = np.repeat([0, 1], [3, 50])
    residual = np.repeat([99.0, 1.0], [3, 50])
    places = allocate(strata, residual, np.zeros(53, bool), 100)
    assert (places.count(0), len(places)) == (3, 53)


def test_without_labels_strata_are_equal() -> None:
    """Strata of equal size get equally many, and the result is marked as assumed."""
    sample, _ = world(0, 0)
    advice = advise([sample], LabelTarget(("a",), strata=3), more=30)
    counts = np.bincount([row.stratum for row in advice.wanted])
    assert counts.tolist() == [10, 10, 10]
    assert advice.assumed
    assert math.isnan(advice.forecasts[0].with_scores)


def test_more_labels_go_where_errors_are_large() -> None:
    """The stratum with the largest errors gets the most labels."""
    sample, _ = world(1, 60)
    advice = advise([sample], LabelTarget(("a",), strata=3), more=60)
    total = np.bincount([row.stratum for row in advice.wanted], minlength=3)
    total += np.bincount(sample.strata[sample.labelled], minlength=3)
    assert total[0] < total[1] < total[2]
    assert not advice.assumed


def test_choice_is_random_reproducible_and_new() -> None:
    """A seed always draws the same queries, another seed others; never labeled ones."""
    sample, labels = world(2, 20)
    target = LabelTarget(("a",), strata=3)
    one, again, other = (advise([sample], target, seed=seed).wanted for seed in (0, 0, 1))
    assert one == again != other
    names = {row.query_id for row in one}
    assert len(names) == 20
    assert not names & {q for q, k in zip(sample.query_ids, sample.labelled, strict=True) if k}
    later = advise([labelled_as(sample, labels, names)], target).wanted
    assert not names & {row.query_id for row in later}


def test_difference_needs_labels_of_both_candidates() -> None:
    """A query needs both labels, except existing ones."""
    sample, _ = world(3, 0)
    target = LabelTarget(("a",), against="b", strata=3)
    free = advise([sample], target, more=5)
    assert [row.candidate for row in free.wanted] == ["a", "b"] * 5
    assert [row.order for row in free.wanted] == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5]
    first = free.wanted[0].query_id
    rest = advise([sample], target, given={(first, "a")}, more=5)
    assert [row.candidate for row in rest.wanted] == ["b"] + ["a", "b"] * 4


def test_forecasts_are_accurate() -> None:
    """Over many draws the width with 20 and 50 more labels equals the forecast."""
    ratios: dict[int, list[tuple[float, float]]] = {20: [], 50: []}
    for seed in range(60):
        sample, labels = world(seed, 25)
        advice = advise([sample], LabelTarget(("a",), strata=3), more=50, seed=seed)
        for forecast in advice.forecasts:
            step = forecast.labelled - 25
            if step in ratios:
                asked = {row.query_id for row in advice.wanted if row.order <= step}
                found = estimate(labelled_as(sample, labels, asked))
                with_scores = found.with_scores.high - found.with_scores.low
                alone = found.labels_only.high - found.labels_only.low
                ratios[step].append(
                    (forecast.with_scores / with_scores, forecast.labels_only / alone)
                )
    for pairs in ratios.values():
        assert np.median(pairs, axis=0) == pytest.approx([1.0, 1.0], abs=0.1)


def clustered(seed: int, labelled: int, shared: float) -> tuple[LabeledSample, np.ndarray]:
    """Return a sample of 30 clusters whose scores are close and whose errors are correlated."""
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(30), QUERIES // 30)
    scores = rng.normal(5.0, 1.5, 30)[clusters] + rng.normal(0.0, 0.5, QUERIES)
    errors = math.sqrt(shared) * rng.normal(size=30)[clusters]
    labels = scores + errors + math.sqrt(1.0 - shared) * rng.normal(size=QUERIES)
    known = np.full(QUERIES, np.nan)
    rows = rng.permutation(QUERIES)[:labelled]
    known[rows] = labels[rows]
    names = tuple(f"q{row}" for row in range(QUERIES))
    return LabeledSample("a", names, scores, known, make_strata(scores, 3), clusters), labels


@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_forecasts_of_clusters_are_not_too_narrow(shared: float) -> None:
    """With 50 more labels the forecast is near the width that the estimate has for clusters."""
    ratios = []
    for seed in range(60):
        sample, labels = clustered(seed, 25, shared)
        advice = advise([sample], LabelTarget(("a",), strata=3), more=50, seed=seed)
        (forecast,) = (each for each in advice.forecasts if each.labelled == 75)
        found = estimate(labelled_as(sample, labels, {row.query_id for row in advice.wanted}))
        widths = (forecast.with_scores, forecast.labels_only)
        intervals = (found.with_scores, found.labels_only)
        ratios.append([w / (i.high - i.low) for w, i in zip(widths, intervals, strict=True)])
    assert np.median(ratios, axis=0) == pytest.approx([1.0, 1.0], abs=0.1)


def test_forecast_of_clusters_whose_scores_differ_in_opposite_ways() -> None:
    """An easy and a hard turn per conversation: their mean varies little, and no width is NaN."""
    half = np.linspace(0.2, 2.0, 10)
    scores = np.stack([3.0 + half, 3.0 - half], axis=1).reshape(-1)
    known = np.arange(20) % 2 == 0
    noisy = scores + 0.3 * np.random.default_rng(0).standard_normal(20)
    names, strata = tuple(f"q{row}" for row in range(20)), np.zeros(20, dtype=np.intp)
    labels = np.where(known, noisy, np.nan)
    sample = LabeledSample("a", names, scores, labels, strata, np.repeat(np.arange(10), 2))
    width = expected_width(measure_spread(sample), strata, known, 0.95, use_scores=True)
    found = estimate(sample).with_scores
    assert width == pytest.approx(found.high - found.low, rel=0.5)


def test_forecasts_narrow_and_end_with_the_queries() -> None:
    """More labels never widen the interval, and no forecast exceeds the number of queries."""
    sample, _ = world(4, 40)
    advice = advise([sample], LabelTarget(("a",), strata=3))
    assert [forecast.labelled - 40 for forecast in advice.forecasts] == list(STEPS)
    widths = [forecast.with_scores for forecast in advice.forecasts]
    assert widths == sorted(widths, reverse=True)
    almost_all, _ = world(4, QUERIES - 15)
    late = advise([almost_all], LabelTarget(("a",), strata=3))
    assert [forecast.labelled for forecast in late.forecasts] == [QUERIES - 15, QUERIES - 5]
    assert len(late.wanted) == 15


def test_stratum_spread_shrinks_to_the_mean() -> None:
    """With few labels a stratum's spread is near the mean, with many it is its own."""
    few, many = (measure_spread(world(5, labelled)[0]) for labelled in (12, 250))

    def contrast(residual: np.ndarray) -> float:
        return float(residual.max() / residual.min())

    assert contrast(few.residual) < contrast(many.residual)
    truth = [np.mean((0.3 + 0.25 * s) ** 2) for s in (2.5, 8.5)]
    assert contrast(many.residual) == pytest.approx(truth[1] / truth[0], rel=0.5)


def test_few_labels_of_categories_of_different_sizes_are_not_pooled_as_if_drawn_evenly() -> None:
    """Each category gets as many labels first; the estimate counts categories by their size."""
    sizes, means = (80, 10, 10), (8.0, 5.0, 5.0)
    kind = np.repeat(np.arange(3), sizes)
    names = tuple(f"q{row}" for row in range(100))
    found = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        labels = np.array(means)[kind] + rng.normal(size=100)
        sample = LabeledSample("a", names, rng.normal(5.0, 1.0, 100), np.full(100, np.nan), kind)
        advice = advise([sample], LabelTarget(("a",)), more=12, seed=seed)
        found.append(
            estimate(labelled_as(sample, labels, {each.query_id for each in advice.wanted}))
        )
    assert found[0].strata == 1
    for values in ([each.with_scores for each in found], [each.labels_only for each in found]):
        assert np.mean([each.value for each in values]) == pytest.approx(7.4, abs=0.2)
        assert np.mean([each.low <= 7.4 <= each.high for each in values]) >= 0.93


def test_zero_queries_are_refused() -> None:
    """Choosing zero queries is an error."""
    with pytest.raises(ConfigError, match="0 queries"):
        advise([world(6, 0)[0]], LabelTarget(("a",)), more=0)
