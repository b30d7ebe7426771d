"""How each candidate's scores spread, and its means by category, over all queries of a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rocketeval.report.data import CategoryMeans

Floats = NDArray[np.float64]

PARTS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""The quantiles that a box and its line are drawn from."""
MOST_CATEGORIES = 24
"""Categories on the page: the largest."""


def quantiles(scores: Floats) -> list[tuple[float, ...] | None]:
    """Return each candidate's quantiles over the queries it has a score on; None without any.

    >>> quantiles(np.array([[1.0, np.nan], [3.0, np.nan]]))
    [(1.1, 1.5, 2.0, 2.5, 2.9), None]
    """
    return [_quantiles(column[~np.isnan(column)]) for column in scores.T]


def _quantiles(values: Floats) -> tuple[float, ...] | None:
    if not len(values):
        return None
    return tuple(np.quantile(values, PARTS).round(4).tolist())


def category_means(
    scores: Floats, categories: Sequence[str | None], most: int = MOST_CATEGORIES
) -> tuple[CategoryMeans, ...]:
    """Return every candidate's mean score on each category, the largest categories, by name.

    >>> found, = category_means(np.array([[2.0], [4.0], [9.0]]), ["a", "a", None])
    >>> found.name, found.queries, found.means
    ('a', 2, (3.0,))
    """
    sizes = Counter(name for name in categories if name is not None)
    kept = sorted(name for name, _ in sizes.most_common(most))
    named = np.array([name or "" for name in categories], dtype=object)
    return tuple(
        CategoryMeans(name, sizes[name], _means(scores[named == name])) for name in kept if name
    )


def _means(scores: Floats) -> tuple[float | None, ...]:
    counts = (~np.isnan(scores)).sum(axis=0)
    totals = np.nansum(scores, axis=0)
    return tuple(
        round(total / count, 4) if count else None
        for total, count in zip(totals.tolist(), counts.tolist(), strict=True)
    )
