"""Two-phase samples: probabilities, draws, combined scores and tests."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.stats.two_phase import (
    FLOOR,
    TwoPhaseSample,
    combine,
    inclusion_probabilities,
    query_numbers,
)

Floats = NDArray[np.float64]


def make_sample(seed: int, share: float, queries: int = 60) -> tuple[TwoPhaseSample, Floats]:
    """Return a sample whose cheap scores are biased by candidate, and its better scores."""
    rng = np.random.default_rng(seed)
    better = 5.0 + rng.normal(size=(queries, 1)) + rng.normal(size=(queries, 3))
    cheap = better + 0.5 * rng.normal(size=better.shape) + np.array([0.0, 1.0, -2.0])
    probabilities = inclusion_probabilities(rng.random(better.shape), share)
    numbers = (rng.permutation(queries) + rng.random(queries)) / queries
    sample = TwoPhaseSample(cheap, better, probabilities, numbers, np.arange(queries))
    return sample, better


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 1.0])
def test_probabilities_have_the_share_as_mean_and_a_floor(share: float) -> None:
    """The mean is exact even where some would exceed 1; the order follows the uncertainty."""
    uncertainty = np.random.default_rng(0).exponential(size=(40, 5))
    uncertainty[0, 0] = np.nan
    found = inclusion_probabilities(uncertainty, share)
    assert np.isnan(found[0, 0])
    assert np.nanmean(found) == pytest.approx(share)
    assert np.nanmin(found) >= FLOOR * share - 1e-9
    assert np.nanmax(found) <= 1.0
    order = np.argsort(uncertainty.ravel()[1:])
    assert (np.diff(found.ravel()[1:][order]) >= -1e-12).all()


def test_a_judge_without_doubt_gives_equal_probabilities() -> None:
    """Hard answers have no uncertainty anywhere."""
    assert set(inclusion_probabilities(np.zeros((4, 2)), 0.25).ravel().tolist()) == {0.25}


def test_numbers_are_even_and_depend_on_the_seed() -> None:
    """Each interval of length 1/n has one number; names decide which."""
    names = [f"q{number}" for number in range(50)]
    numbers = query_numbers(names, 0)
    assert sorted((numbers * 50).astype(int).tolist()) == list(range(50))
    again = dict(zip(names[::-1], query_numbers(names[::-1], 0), strict=True))
    assert [again[name] for name in names] == numbers.tolist()
    assert (query_numbers(names, 1) != numbers).any()


def test_everything_drawn_gives_the_better_scores() -> None:
    """With a share of 1, nothing is estimated."""
    sample, better = make_sample(1, 1.0)
    assert combine(sample).scores == pytest.approx(better)


def test_estimate_is_unbiased_over_draws() -> None:
    """The mean over many draws of one grid is the mean of the better scores."""
    sample, better = make_sample(2, 0.3)
    rng, queries = np.random.default_rng(3), len(better)
    found = []
    for _ in range(400):
        numbers = (rng.permutation(queries) + rng.random(queries)) / queries
        drawn = TwoPhaseSample(sample.cheap, better, sample.probabilities, numbers, sample.clusters)
        found.append(combine(drawn).scores.mean(axis=0))
    error = np.std(found, axis=0) / np.sqrt(len(found))
    assert (np.abs(np.mean(found, axis=0) - better.mean(axis=0)) < 4.0 * error).all()
    assert (np.abs(sample.cheap.mean(axis=0) - better.mean(axis=0))[1:] > 0.9).all()


def test_undrawn_scores_are_not_used_and_failures_reweight() -> None:
    """Better scores of responses that were not drawn change nothing; a failure leaves a weight."""
    sample, better = make_sample(4, 0.4)
    other = np.where(sample.drawn, better, 1000.0)
    changed = TwoPhaseSample(
        sample.cheap, other, sample.probabilities, sample.numbers, sample.clusters
    )
    assert combine(changed).scores.tolist() == combine(sample).scores.tolist()
    failing = better.copy()
    row, column = np.argwhere(sample.drawn)[0]
    failing[row, column] = np.nan
    holed = TwoPhaseSample(
        sample.cheap, failing, sample.probabilities, sample.numbers, sample.clusters
    )
    found = combine(holed)
    assert not np.isnan(found.scores).any()
    assert found.corrections[row, column] == 0.0


def test_tests_agree_with_intervals() -> None:
    """Of two candidates, a difference is significant if its interval excludes zero."""
    for seed in range(20):
        sample, _ = make_sample(seed, 0.3)
        found = combine(sample).take([0, 1])
        interval = found.difference(0, 1, 0.95)
        significant = bool(found.tests(0.95).better().any())
        assert significant == (interval.low > 0.0 or interval.high < 0.0)


def test_clusters_widen_the_interval() -> None:
    """Rows that repeat each other in a cluster count once."""
    sample, better = make_sample(5, 0.5, queries=40)
    twice = TwoPhaseSample(
        *(np.repeat(x, 2, axis=0) for x in (sample.cheap, better, sample.probabilities)),
        np.repeat(sample.numbers, 2),
        np.repeat(np.arange(40), 2),
    )
    apart = TwoPhaseSample(
        twice.cheap, twice.better, twice.probabilities, twice.numbers, np.arange(80)
    )
    one, two = (combine(each).mean(0, 0.95) for each in (twice, apart))
    assert one.high - one.low > 1.2 * (two.high - two.low)


def test_a_perfect_cheap_judge_leaves_the_spread_of_the_queries() -> None:
    """Without any error to correct, the interval is that of all better scores."""
    sample, better = make_sample(6, 0.3)
    drawn = (sample.numbers, sample.clusters)
    part = combine(TwoPhaseSample(better, better, sample.probabilities, *drawn)).mean(0, 0.95)
    whole = combine(TwoPhaseSample(better, better, np.ones_like(better), *drawn)).mean(0, 0.95)
    assert part.value == pytest.approx(whole.value)
    assert part.high - part.low == pytest.approx(whole.high - whole.low, rel=0.05)
