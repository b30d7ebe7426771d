"""Selection of perspectives by their importance to a surrogate model, per fold; and the router.

A trait (a perspective about queries) decides nothing by itself; it says which answers count, and
in which direction. Greedy trees miss that: if concise responses win for one type of query and
detailed ones for another, neither the question nor the trait gains anything alone. So the gain of
a trait is the improvement on left-out queries from fitting its two sides separately with ridge
regression. The surrogate trees see every answer, plus the answer signed by each of the traits with
the largest gains.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.config import EvolveConfig
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.cases import CaseTable, error_of_mean, filled, medians
from rocketeval.evolve.forest import targets
from rocketeval.scoring.forest import grow_trees, shares_of
from rocketeval.scoring.split import group_folds

LEAST_WEIGHT = 0.02
"""Minimum weight of a case, so that every expert has training data."""
_REACH = 0.5
"""Share of the mean distance between centroids at which a case has weight 1/e."""
_RESTARTS = 10


@dataclass(frozen=True, eq=False)
class Router:
    """Assigns each query to an expert."""

    perspectives: tuple[str, ...]
    """Ids of the perspectives about queries, in column order."""
    weights: Floats
    """Weight of each perspective, from 0 to 1."""
    centroids: Floats
    """Shape (experts, perspectives); may have fewer experts than requested."""
    reach: float
    """Distance at which a case has weight 1/e in an expert's training; 0 with one expert."""

    @classmethod
    def fit(
        cls, perspectives: Sequence[str], traits: Floats, weights: Floats, count: int, seed: int
    ) -> Self:
        """Return a router to `count` experts, or fewer if there are fewer distinct vectors."""
        vectors = weights * aligned(traits)
        centroids = _centroids(vectors, count, seed)
        apart = _distances(centroids, centroids)[np.triu_indices(len(centroids), 1)]
        reach = _REACH * float(apart.mean()) if len(apart) else 0.0
        return cls(tuple(perspectives), weights, centroids, reach)

    @property
    def experts(self) -> int:
        """Return the number of experts."""
        return len(self.centroids)

    def vectors(self, traits: Floats) -> Floats:
        """Return the weighted traits of each case; a missing trait counts as absent."""
        return self.weights * aligned(traits)

    def route(self, traits: Floats) -> NDArray[np.int64]:
        """Return the nearest expert of each case; the first if tied."""
        nearest: NDArray[np.int64] = _distances(self.vectors(traits), self.centroids).argmin(axis=1)
        return nearest

    def sample_weights(self, traits: Floats) -> Floats:
        """Return the weight of each case in each expert's training, shape (cases, experts).

        The weight is `exp(-(distance / reach)^2)`, at least `LEAST_WEIGHT`. The reach is half of
        the mean distance between centroids, so a case at another expert's centroid weighs about 2%.
        """
        if self.experts == 1:
            return np.ones((len(traits), 1))
        distances = _distances(self.vectors(traits), self.centroids)
        return np.maximum(np.exp(-((distances / self.reach) ** 2)), LEAST_WEIGHT)


def aligned(traits: Floats) -> Floats:
    """Return 1 where a query has a trait, 0 where it has not or the answer is missing.

    >>> aligned(np.array([[0.9, 0.5, np.nan]])).tolist()
    [[1.0, 0.0, 0.0]]
    """
    # A comparison with NaN is False.
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
        # K-Means warns if it finds fewer clusters than requested; duplicates are dropped below.
        warnings.simplefilter("ignore")
        found = KMeans(count, n_init=_RESTARTS, random_state=seed % 2**32).fit(vectors)
    used = np.unique(found.labels_)
    # Sort, so that the order does not depend on K-Means.
    return np.unique(found.cluster_centers_[used].astype(np.float64), axis=0)


def _distances(vectors: Floats, centroids: Floats) -> Floats:
    apart: Floats = np.sqrt(((vectors[:, None, :] - centroids[None, :, :]) ** 2).sum(axis=2))
    return apart


SIGNING_TRAITS = 4
"""Number of traits, those with the largest gains, that sign answers for the surrogate trees."""
_TREES = 16
_DEPTH = 5
_LEAF = 5
_COLUMNS = 0.3
"""Share of the columns considered at a split, so that trees differ."""


@dataclass(frozen=True)
class PerspectiveWeight:
    """Importance and stability of one perspective."""

    importance: float
    """Its share among the perspectives of its kind; they sum to one or are all zero."""
    stability: float
    """Share of the folds that selected it."""


@dataclass(frozen=True)
class PerspectiveWeights:
    """Weights of all perspectives of a table."""

    about_responses: Mapping[str, PerspectiveWeight]
    """By perspective id."""
    about_queries: Mapping[str, PerspectiveWeight]

    def keep(self, most_about_responses: int, most_about_queries: int) -> tuple[str, ...]:
        """Return the ids of the best perspectives of each kind with a positive importance.

        At least one perspective about responses is always kept.
        """
        responses = best(self.about_responses, most_about_responses)
        if not responses:
            responses = tuple(self.about_responses)[:1]
        return (*responses, *best(self.about_queries, most_about_queries))

    def by_id(self) -> dict[str, tuple[float, float]]:
        """Return (importance, stability) by id, for `Pool.weigh`."""
        both = {**self.about_responses, **self.about_queries}
        return {name: (found.importance, found.stability) for name, found in both.items()}


def weigh_perspectives(table: CaseTable, settings: EvolveConfig) -> PerspectiveWeights:
    """Return the weight of each perspective, from the cases with reference data."""
    known = with_gold(table)
    return PerspectiveWeights(
        weigh_answers(known, settings, gains := weigh_traits(known, settings)), gains
    )


def with_gold(table: CaseTable) -> CaseTable:
    """Return the cases with reference data; raise BenchmarkError if there are too few."""
    known = np.flatnonzero(~np.isnan(table.gold))
    queries = {table.cases[row].query_id for row in known.tolist()}
    if len(queries) < 2 or not table.about_responses:
        raise BenchmarkError(
            f"An evaluator needs at least 2 queries with votes or labels and 1 perspective about "
            f"responses; there are {len(queries)} and {len(table.about_responses)}.",
            hint="Add votes or labels, or seeds to `evolve.seeds`.",
        )
    return table if len(known) == len(table) else table.take(known)


def trait_weights(standings: Mapping[str, PerspectiveWeight], ids: Sequence[str]) -> Floats:
    """Return the routing weights of perspectives about queries: 1 for the most important one."""
    found = np.array([standings[name].importance for name in ids], dtype=np.float64)
    most = found.max(initial=0.0)
    return found / most if most > 0.0 else found


def weigh_traits(table: CaseTable, settings: EvolveConfig) -> dict[str, PerspectiveWeight]:
    """Return the weight of each perspective about queries: the gain from knowing its answer.

    A gain counts only if it exceeds its standard error over queries.
    """
    names = [each.id for each in table.about_queries]
    folds = group_folds(table.query_ids, settings.folds, settings.seed)
    gains = np.zeros((len(table), len(names)))
    for fold in range(int(folds.max()) + 1):
        held_out = folds == fold
        gains[held_out] = _held_out_gains(table, ~held_out, held_out)
    mean = gains.mean(axis=0)
    error = np.array([error_of_mean(column, table.query_ids) for column in gains.T])
    gain = np.where(mean > error, mean, 0.0)
    by_fold = np.array([gains[folds == fold].mean(axis=0) for fold in range(int(folds.max()) + 1)])
    return _standings(names, gain, np.maximum(by_fold, 0.0), settings.most_about_queries)


def weigh_answers(
    table: CaseTable, settings: EvolveConfig, traits: Mapping[str, PerspectiveWeight]
) -> dict[str, PerspectiveWeight]:
    """Return the weight of each perspective about responses in the surrogate trees."""
    names = [each.id for each in table.about_responses]
    signing = set(best(traits, SIGNING_TRAITS))
    places = [place for place, each in enumerate(table.about_queries) if each.id in signing]
    phi = aligned(table.traits[:, places])
    folds = group_folds(table.query_ids, settings.folds, settings.seed)
    shares = np.array(
        [
            _gini_shares(table, phi, folds != fold, settings.seed + fold)
            for fold in range(int(folds.max()) + 1)
        ]
    )
    return _standings(names, shares.mean(axis=0), shares, settings.most_about_responses)


def _held_out_gains(
    table: CaseTable, learned: NDArray[np.bool_], held_out: NDArray[np.bool_]
) -> Floats:
    """Return how much fitting each trait's sides separately reduces out-of-fold squared error."""
    answers, gold = table.answers, table.gold
    fill = medians(answers[learned])
    spread = filled(answers[learned], fill).std(axis=0)
    x = (filled(answers, fill) - fill) / np.where(spread > 0.0, spread, 1.0)
    x = np.hstack([x, np.ones((len(x), 1))])
    y = (gold - gold[learned].mean()) / max(float(gold[learned].std()), 1e-12)
    together = (_ridge(x[learned], y[learned], x[held_out]) - y[held_out]) ** 2
    phi = aligned(table.traits)
    gains = np.zeros((int(held_out.sum()), phi.shape[1]))
    for place in range(phi.shape[1]):
        sign = 2.0 * phi[:, place : place + 1] - 1.0
        if np.ptp(sign[learned]) == 0.0:
            continue
        both = np.hstack([x, x * sign])
        apart = (_ridge(both[learned], y[learned], both[held_out]) - y[held_out]) ** 2
        gains[:, place] = together - apart
    return gains


def _ridge(x: Floats, y: Floats, new: Floats) -> Floats:
    """Return ridge predictions for new rows; the penalty assumes half the variance is explained."""
    columns = x.shape[1]
    weights = np.linalg.solve(x.T @ x + columns * np.eye(columns), x.T @ y)
    predicted: Floats = new @ weights
    return predicted


def _gini_shares(table: CaseTable, phi: Floats, learned: NDArray[np.bool_], seed: int) -> Floats:
    """Return each answer's Gini importance in surrogate trees, including its signed copies."""
    answers = filled(table.answers[learned], medians(table.answers[learned]))
    signs = 2.0 * phi[learned] - 1.0
    signed = [answers * signs[:, place : place + 1] for place in range(signs.shape[1])]
    x = np.hstack([answers, *signed, signs])

    def draw(random: np.random.RandomState) -> tuple[slice, Floats]:
        drawn = np.bincount(random.randint(len(x), size=len(x)), minlength=len(x))
        return slice(None), drawn.astype(np.float64)

    grown = grow_trees(
        x,
        targets(table.task, table.gold[learned]),
        _TREES,
        np.random.RandomState(seed % 2**32),
        draw,
        max_depth=_DEPTH,
        min_samples_leaf=_LEAF,
        max_features=_COLUMNS,
    )
    total = sum((tree.compute_feature_importances() for tree in grown), np.zeros(x.shape[1]))
    used = total[: len(total) - signs.shape[1]].reshape(-1, answers.shape[1]).sum(axis=0)
    return shares_of(used)


def _standings(
    names: Sequence[str], gain: Floats, by_fold: Floats, most: int
) -> dict[str, PerspectiveWeight]:
    among = np.zeros(len(names))
    for found in by_fold:
        best = np.argsort(-found, kind="stable")[:most]
        among[best[found[best] > 0.0]] += 1.0
    shares = shares_of(gain)
    return {
        name: PerspectiveWeight(float(share), float(count) / len(by_fold))
        for name, share, count in zip(names, shares, among, strict=True)
    }


def best(standings: Mapping[str, PerspectiveWeight], most: int) -> tuple[str, ...]:
    """Return the ids of at most `most` perspectives with a positive importance, best first."""
    useful = [name for name, found in standings.items() if found.importance > 0.0]
    ordered = sorted(
        useful, key=lambda name: (-standings[name].importance, -standings[name].stability)
    )
    return tuple(ordered[:most])
