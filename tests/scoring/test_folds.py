"""Folds: balanced, stratified by label, and reproducible."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.records import Label
from rocketeval.scoring.split import candidate_folds, query_folds


def labels(candidates: int) -> list[Label]:
    """Return two labels per candidate; later candidates are better."""
    return [
        Label(query, f"c{number:02d}", number / 10 + extra)
        for number in range(candidates)
        for query, extra in (("q1", 0.0), ("q2", 3.0))
    ]


def test_each_fold_covers_the_label_range() -> None:
    """Of every five neighbors by mean label, each fold has exactly one."""
    folds = candidate_folds(labels(20), 5, seed=3)
    ordered = [folds[f"c{number:02d}"] for number in range(20)]
    for start in range(0, 20, 5):
        assert sorted(ordered[start : start + 5]) == [0, 1, 2, 3, 4]
    assert ordered[:5] != ordered[5:10] or ordered[5:10] != ordered[10:15]


@pytest.mark.parametrize("count", [2, 3, 7, 23])
def test_fold_sizes_differ_by_at_most_one(count: int) -> None:
    """With few names there are as many folds as names."""
    for folds in (candidate_folds(labels(count), 5, 0), query_folds(map(str, range(count)), 5, 0)):
        sizes = Counter(folds.values())
        assert len(folds) == count
        assert set(sizes) == set(range(min(5, count)))
        assert max(sizes.values()) - min(sizes.values()) <= 1


def test_only_the_seed_decides() -> None:
    """The order of the data does not matter; another seed gives other folds."""
    given = labels(12)
    shuffled = [given[place] for place in np.random.default_rng(1).permutation(len(given))]
    assert candidate_folds(given, 4, 7) == candidate_folds(shuffled, 4, 7)
    assert candidate_folds(given, 4, 7) != candidate_folds(given, 4, 8)
    names = [f"q{number}" for number in range(12)]
    assert query_folds(names, 4, 7) == query_folds([*names[::-1], "q3"], 4, 7)
    assert query_folds(names, 4, 7) != query_folds(names, 4, 8)


@pytest.mark.parametrize("given", [[], labels(1)])
def test_one_candidate_or_query_is_too_few(given: list[Label]) -> None:
    """The error has the count and a hint."""
    count = len({label.candidate for label in given})
    with pytest.raises(BenchmarkError, match=f"labeled candidates; there are {count}") as caught:
        candidate_folds(given, 5, 0)
    assert "Add labels or votes" in caught.value.hint
    with pytest.raises(BenchmarkError, match=r"queries with reference data; there are 1\."):
        query_folds(["q", "q"], 5, 0)


def test_one_fold_is_refused() -> None:
    """A single fold would be scored by a fit on nothing."""
    with pytest.raises(ConfigError, match="with 1 folds"):
        candidate_folds(labels(4), 1, 0)
