"""Cases in groups: those of one query are never apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rocketeval.evolve.cases import Floats
from rocketeval.scoring.folds import query_folds

Ints = NDArray[np.int64]


def group_folds(query_ids: Sequence[str], folds: int, seed: int) -> Ints:
    """Return the fold of every case: that of its query.

    >>> group_folds(["q1", "q2", "q1", "q3"], 2, 0).tolist()
    [0, 0, 0, 1]
    """
    dealt = query_folds(query_ids, folds, seed)
    return np.array([dealt[query_id] for query_id in query_ids], dtype=np.int64)


def query_numbers(query_ids: Sequence[str]) -> Ints:
    """Return the number of every case's query, counted from 0 as they come.

    >>> query_numbers(["q7", "q2", "q7"]).tolist()
    [0, 1, 0]
    """
    place: dict[str, int] = {}
    return np.array([place.setdefault(query_id, len(place)) for query_id in query_ids], np.int64)


def by_query(values: Floats, query_ids: Sequence[str]) -> Floats:
    """Return the sums over the cases of each query, column by column.

    >>> by_query(np.array([[1.0], [2.0], [4.0]]), ["q7", "q2", "q7"]).tolist()
    [[5.0], [2.0]]
    """
    numbers = query_numbers(query_ids)
    sums = np.zeros((int(numbers.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(sums, numbers, values)
    return sums


def error_of_mean(values: Floats, query_ids: Sequence[str]) -> float:
    """Return the standard error of a mean over cases, those of one query being one draw.

    >>> error_of_mean(np.array([1.0, 1.0, 0.0, 0.0]), ["q1", "q1", "q2", "q2"])
    0.3535533905932738
    """
    sums = by_query((values - values.mean())[:, None], query_ids)
    return float(np.sqrt((sums**2).sum())) / len(values)
