"""The router: which expert judges a query, by the traits it has.

A query's vector holds, for every perspective about queries, the perspective's weight where the
query has the trait and 0 where it has not. K-Means finds groups of such vectors in training; a new
query goes to the expert with the nearest centroid.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.evolve.cases import Floats

LEAST_WEIGHT = 0.02
"""What the farthest case counts at least, so that no expert starves."""
_REACH = 0.5
"""Share of the mean distance between centroids at which a case counts 1/e."""
_RESTARTS = 10


@dataclass(frozen=True, eq=False)
class Router:
    """Where queries go."""

    perspectives: tuple[str, ...]
    """Ids of the perspectives about queries, in the order of columns."""
    weights: Floats
    """How much each of them counts, from 0 to 1."""
    centroids: Floats
    """Shape (experts, perspectives); there can be fewer experts than were asked for."""
    reach: float
    """Distance at which a case counts 1/e in an expert's training; 0 with one expert."""

    @classmethod
    def fit(
        cls, perspectives: Sequence[str], traits: Floats, weights: Floats, count: int, seed: int
    ) -> Self:
        """Return a router to `count` experts, or to as many as there are different vectors."""
        vectors = weights * aligned(traits)
        centroids = _centroids(vectors, count, seed)
        apart = _distances(centroids, centroids)[np.triu_indices(len(centroids), 1)]
        reach = _REACH * float(apart.mean()) if len(apart) else 0.0
        return cls(tuple(perspectives), weights, centroids, reach)

    @property
    def experts(self) -> int:
        """How many experts there are."""
        return len(self.centroids)

    def vectors(self, traits: Floats) -> Floats:
        """Return the weighted traits of each case; a missing trait counts as absent."""
        return self.weights * aligned(traits)

    def route(self, traits: Floats) -> NDArray[np.int64]:
        """Return the expert of each case; of two as near, the first."""
        nearest: NDArray[np.int64] = _distances(self.vectors(traits), self.centroids).argmin(axis=1)
        return nearest

    def sample_weights(self, traits: Floats) -> Floats:
        """Return how much each case counts in each expert's training, shape (cases, experts).

        `exp(-(distance / reach)^2)`, but not below `LEAST_WEIGHT`. The reach is half of the mean
        distance between centroids, so that a case at another expert's centroid counts about 2 %.
        """
        if self.experts == 1:
            return np.ones((len(traits), 1))
        distances = _distances(self.vectors(traits), self.centroids)
        return np.maximum(np.exp(-((distances / self.reach) ** 2)), LEAST_WEIGHT)


def aligned(traits: Floats) -> Floats:
    """Return 1 where a query has a trait, 0 where it has not or nobody knows.

    >>> aligned(np.array([[0.9, 0.5, np.nan]])).tolist()
    [[1.0, 0.0, 0.0]]
    """
    # Any comparison with NaN is false.
    there: Floats = (traits > 0.5).astype(np.float64)
    return there


def _centroids(vectors: Floats, count: int, seed: int) -> Floats:
    distinct = np.unique(vectors, axis=0)
    count = min(count, len(distinct))
    if count <= 1:
        return np.atleast_2d(vectors.mean(axis=0))
    if count == len(distinct):
        return distinct
    from sklearn.cluster import KMeans

    with warnings.catch_warnings():
        # It warns when a start finds fewer groups than asked for; duplicates are dropped below.
        warnings.simplefilter("ignore")
        found = KMeans(count, n_init=_RESTARTS, random_state=seed % 2**32).fit(vectors)
    used = np.unique(found.labels_)
    # In an order that does not hang on which centroid K-Means found first.
    return np.unique(found.cluster_centers_[used].astype(np.float64), axis=0)


def _distances(vectors: Floats, centroids: Floats) -> Floats:
    apart: Floats = np.sqrt(((vectors[:, None, :] - centroids[None, :, :]) ** 2).sum(axis=2))
    return apart
