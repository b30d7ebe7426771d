"""Folds of candidates or of queries: what is scored is never what was learned from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.records import Label
from rocketeval.scoring.labelled import mean_by_candidate


def candidate_folds(labels: Iterable[Label], folds: int, seed: int) -> dict[str, int]:
    """Return the fold of each labelled candidate, every fold with good, middling and bad ones.

    Candidates are sorted by their mean label and dealt out a hand at a time, one to each fold in a
    fresh random order. With fewer candidates than folds there are as many folds as candidates.

    >>> candidate_folds([Label("q", name, value) for name, value in zip("abcd", range(4))], 2, 0)
    {'a': 0, 'b': 1, 'c': 0, 'd': 1}
    """
    means = mean_by_candidate(labels)
    ordered = sorted(means, key=lambda name: (means[name], name))
    return _deal(ordered, folds, np.random.default_rng(seed), "labelled candidates")


def query_folds(query_ids: Iterable[str], folds: int, seed: int) -> dict[str, int]:
    """Return the fold of each query, at random; with few queries, as many folds as queries.

    >>> query_folds(["q1", "q2", "q3", "q1"], 2, 0)
    {'q1': 0, 'q2': 0, 'q3': 1}
    """
    names = sorted(set(query_ids))
    random = np.random.default_rng(seed)
    shuffled = [names[place] for place in random.permutation(len(names))]
    dealt = _deal(shuffled, folds, random, "queries with gold")
    return {name: dealt[name] for name in names}


def _deal(
    names: Sequence[str], folds: int, random: np.random.Generator, what: str
) -> dict[str, int]:
    """Deal names to folds, in their order, whose sizes differ by one at most."""
    if folds < 2:
        raise ConfigError(f"The gold cannot be cut into {folds} fold.", hint="Use at least 2.")
    if len(names) < 2:
        raise BenchmarkError(
            f"Cross-validation needs at least 2 {what}; there are {len(names)}.",
            hint="Add labels or votes, or take the scorer `mean`, which learns nothing.",
        )
    hand = min(folds, len(names))
    dealt = [fold for _ in range(0, len(names), hand) for fold in random.permutation(hand).tolist()]
    return dict(zip(names, dealt, strict=False))
