"""Points lost against the neighbours, a query, over all queries and by category."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.explain.gaps import Gaps
from rocketeval.explain.graded import Graded
from rocketeval.ranking.bootstrap import interval, ratio_draws
from rocketeval.records import Interval
from rocketeval.threads import one_blas_thread

Floats = NDArray[np.float64]

MOST_CATEGORIES = 30
"""Of more, the ones with most queries are summed up."""


@dataclass(frozen=True, slots=True)
class CategoryGap:
    """How many points a query a candidate loses against its neighbours."""

    category: str | None
    """None for all queries."""
    points: Interval
    """Mean over the queries; negative if it gains. Bounds are NaN for too few queries."""
    queries: int
    """Queries on which it could be compared."""


Summary = tuple[CategoryGap | None, tuple[CategoryGap, ...]]
"""Over all queries, and by category with the largest loss first."""


def gaps_by_category(
    graded: Graded,
    gaps: Gaps,
    candidates: Sequence[str],
    *,
    bootstrap: int,
    seed: int,
    level: float,
) -> dict[str, Summary]:
    """Sum up each candidate's gaps; a category in which it was never compared is left out."""
    losses, categories = _by_query(graded, gaps, candidates)

    def summed(category: str | None, rows: NDArray[np.bool_]) -> list[CategoryGap | None]:
        with one_blas_thread():
            return _sum_up(category, losses[rows], bootstrap, seed, level)

    overall = summed(None, np.ones(len(losses), bool))
    parts = [
        summed(category, np.array([own == category for own in categories]))
        for category in _largest(categories)
    ]
    return {
        name: (
            overall[column],
            tuple(
                sorted(
                    (found for part in parts if (found := part[column]) is not None),
                    key=lambda gap: (-gap.points.value, str(gap.category)),
                )
            ),
        )
        for column, name in enumerate(candidates)
    }


def _by_query(
    graded: Graded, gaps: Gaps, candidates: Sequence[str]
) -> tuple[Floats, list[str | None]]:
    """Points lost, queries by candidates, and the category of each query."""
    answers = graded.answers
    queries = {query: row for row, query in enumerate(dict.fromkeys(answers.query_ids))}
    columns = {name: column for column, name in enumerate(candidates)}
    losses = np.full((len(queries), len(columns) + 1), np.nan)
    rows = [queries[query] for query in answers.query_ids]
    # Everybody else's answers go to a last column, which is cut off.
    places = [columns.get(name, len(columns)) for name in answers.candidates]
    losses[rows, places] = gaps.per_response(answers.offsets)
    return losses[:, :-1], [graded.queries[query].category for query in queries]


def _largest(categories: Sequence[str | None]) -> list[str]:
    sizes = Counter(category for category in categories if category is not None)
    return [category for category, _ in sizes.most_common(MOST_CATEGORIES)]


def _sum_up(
    category: str | None, losses: Floats, times: int, seed: int, level: float
) -> list[CategoryGap | None]:
    present = ~np.isnan(losses)
    totals, counts = np.where(present, losses, 0.0), present.astype(np.float64)
    draws = ratio_draws(totals, counts, times=times, seed=seed)
    found: list[CategoryGap | None] = []
    for column, queries in enumerate(present.sum(axis=0).tolist()):
        if not queries:
            found.append(None)
            continue
        mean = float(totals[:, column].sum()) / queries
        points = interval(mean, draws[:, column], queries=queries, level=level)
        found.append(CategoryGap(category, points, queries))
    return found
