"""Means of what was measured on items or responses, sure or not by resampling their queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.ranking.bootstrap import interval, ratio_draws, resample_queries
from rocketeval.records import Interval

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Places = NDArray[np.intp]
Groups = Sequence[str] | Ints
"""The query of each thing, by any name."""


@dataclass(frozen=True, slots=True)
class Resampling:
    """How intervals are made: from how many resamples of the queries, and how sure."""

    times: int
    seed: int
    level: float

    def mean(self, values: Floats, places: Places) -> Interval | None:
        """The mean of all values, each with its query's number; None if there are none."""
        return self.means(values, places, np.zeros(len(values), dtype=np.intp), 1)[0]

    def means(
        self, values: Floats, places: Places, parts: Places, count: int
    ) -> list[Interval | None]:
        """The mean of the values of each part, numbered below `count`; None for an empty part."""
        if not len(values):
            return [None] * count
        queries = int(places.max()) + 1
        cells = places * count + parts
        sizes = np.bincount(cells, minlength=queries * count).reshape(queries, count)
        totals = sums_at(cells, values, queries * count).reshape(queries, count)
        draws = ratio_draws(totals, sizes.astype(np.float64), times=self.times, seed=self.seed)
        met, size = (sizes > 0).sum(axis=0).tolist(), sizes.sum(axis=0).tolist()
        return [
            self.sure(float(totals[:, part].sum()) / size[part], draws[:, part], met[part])
            if size[part]
            else None
            for part in range(count)
        ]

    def share(self, hits: Floats, places: Places) -> Interval | None:
        """As `mean`, of what is 0 or 1, or between."""
        return self.shares(hits, places, np.zeros(len(hits), dtype=np.intp), 1)[0]

    def shares(
        self, hits: Floats, places: Places, parts: Places, count: int
    ) -> list[Interval | None]:
        """As `means`, of what is 0 or 1, or between.

        Hits that are all 0 or all 1 are so on every resample too: there, the interval is that of
        as many independent hits as there are queries (Clopper-Pearson).
        """
        found = self.means(hits, places, parts, count)
        for part, share in enumerate(found):
            if share is not None and share.value in (0.0, 1.0) and share.low == share.high:
                queries = len(np.unique(places[parts == part]))
                doubt = 1.0 - ((1.0 - self.level) / 2.0) ** (1.0 / queries)
                bounds = (0.0, doubt) if share.value == 0.0 else (1.0 - doubt, 1.0)
                found[part] = Interval(share.value, *bounds)
        return found

    def sure(self, value: float, draws: Floats, queries: int) -> Interval:
        """The figure with its interval, from the same figure on every resample."""
        return interval(value, draws, queries=queries, level=self.level)


def sums_at(places: Places, values: Floats, count: int) -> Floats:
    """The sum of the values at each place below `count`."""
    return np.bincount(places, values, count).astype(np.float64)


def sum_draws(per_query: Floats, times: int, seed: int) -> Floats:
    """Per resample, the sums over its queries."""
    drawn = [counts @ per_query for counts in resample_queries(len(per_query), times, seed)]
    return np.concatenate(drawn)


def query_places(groups: Groups, things: int) -> Places:
    """Each thing's query, numbered from 0.

    >>> query_places(["b", "a", "b"], 3).tolist()
    [1, 0, 1]
    """
    if len(groups) != things:
        raise ValueError(f"{len(groups)} queries named for {things} things")
    places: Places = np.unique(np.asarray(groups), return_inverse=True)[1].astype(np.intp)
    return places


def renumbered(places: Places) -> Places:
    """The same queries numbered without gaps, after some have dropped out."""
    fresh: Places = np.unique(places, return_inverse=True)[1].astype(np.intp)
    return fresh
