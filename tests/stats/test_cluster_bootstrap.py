"""Means with intervals that resample queries."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rocketeval.records import Interval
from rocketeval.stats.bootstrap import Resampling, query_places

PLACES = np.repeat(np.arange(8), 3)


def test_mean_of_each_part() -> None:
    """Every value counts once; a part without values is None."""
    rng = np.random.default_rng(0)
    values, parts = rng.random(90), rng.integers(0, 2, 90)
    found = Resampling(200, 0, 0.95).means(values, np.arange(90) // 3, parts * 2, 3)
    assert found[1] is None
    for part, place in ((0, 0), (1, 2)):
        figure = found[place]
        assert figure is not None
        assert figure.value == pytest.approx(values[parts == part].mean())
        assert figure.low < figure.value < figure.high


def test_share_of_all_hits_has_an_interval() -> None:
    """Eight queries of hits leave room for a miss; the mean of eight ones does not."""
    hits = np.ones(24)
    sure = Resampling(50, 0, 0.95)
    assert sure.mean(hits, PLACES) == Interval(1.0, 1.0, 1.0)
    share = sure.share(hits, PLACES)
    assert share is not None
    assert share.low == pytest.approx(0.025 ** (1 / 8))
    assert share.high == 1.0
    none = sure.share(1.0 - hits, PLACES)
    assert none is not None
    assert (none.low, none.high) == (0.0, pytest.approx(1.0 - 0.025 ** (1 / 8)))


def test_share_on_few_queries_has_no_bounds() -> None:
    """Below six queries there is no 95% interval."""
    share = Resampling(50, 0, 0.95).share(np.ones(3), np.arange(3))
    assert share is not None
    assert math.isnan(share.low)


def test_queries_may_be_numbers_or_names() -> None:
    """Their number must match."""
    assert query_places(np.array([7, 3, 7]), 3).tolist() == [1, 0, 1]
    with pytest.raises(ValueError, match="1 queries for 2 elements"):
        query_places(["q"], 2)
