"""Which perspectives are worth keeping: their share in what a surrogate learns, fold by fold.

A perspective about queries decides nothing alone; it says which answers count, and in which
direction. A tree that looks for one good split at a time cannot see that: where concise wins for
one type of query and detailed for the other, neither question and no trait gains anything by
itself. So a trait is worth what it gains on left-out queries to fit its two sides apart, by ridge
regression, and the surrogate trees see, beside every answer, the answer signed by each of the
traits that gain most.
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
from rocketeval.evolve.cases import CaseTable, by_query, filled, medians
from rocketeval.evolve.forest import targets
from rocketeval.scoring.forest import grow_trees, shares_of
from rocketeval.scoring.split import group_folds

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


SIGNING_TRAITS = 4
"""Traits by which answers are signed for the surrogate trees, those that gain most."""
_TREES = 16
_DEPTH = 5
_LEAF = 5
_COLUMNS = 0.3
"""Share of the columns that a split chooses among, so that trees differ."""


@dataclass(frozen=True)
class PerspectiveWeight:
    """What one perspective is worth."""

    importance: float
    """Its share among the perspectives of its kind; they sum to one, or all are zero."""
    stability: float
    """Share of the folds in which it was among those worth keeping."""


@dataclass(frozen=True)
class PerspectiveWeights:
    """What every perspective of a table is worth."""

    about_responses: Mapping[str, PerspectiveWeight]
    """By the perspective's id."""
    about_queries: Mapping[str, PerspectiveWeight]

    def keep(self, most_about_responses: int, most_about_queries: int) -> tuple[str, ...]:
        """Return the ids of the best of each kind; what is worth nothing is not kept.

        At least one perspective about responses stays, whatever it is worth.
        """
        responses = best(self.about_responses, most_about_responses)
        if not responses:
            responses = tuple(self.about_responses)[:1]
        return (*responses, *best(self.about_queries, most_about_queries))

    def by_id(self) -> dict[str, tuple[float, float]]:
        """Return importance and stability by id, as `Pool.weigh` takes them."""
        both = {**self.about_responses, **self.about_queries}
        return {name: (found.importance, found.stability) for name, found in both.items()}


def weigh_perspectives(table: CaseTable, settings: EvolveConfig) -> PerspectiveWeights:
    """Return what each perspective is worth, from the cases that have gold."""
    known = with_gold(table)
    return PerspectiveWeights(
        weigh_answers(known, settings, gains := weigh_traits(known, settings)), gains
    )


def with_gold(table: CaseTable) -> CaseTable:
    """Return the cases that people judged; BenchmarkError when there are too few to learn from."""
    known = np.flatnonzero(~np.isnan(table.gold))
    queries = {table.cases[row].query_id for row in known.tolist()}
    if len(queries) < 2 or not table.about_responses:
        raise BenchmarkError(
            f"An evaluator learns from at least 2 queries with gold and 1 perspective about "
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
    """Return what each perspective about queries is worth: what it gains to know it.

    A gain counts when it exceeds its standard error over queries.
    """
    names = [each.id for each in table.about_queries]
    folds = group_folds(table.query_ids, settings.folds, settings.seed)
    gains = np.zeros((len(table), len(names)))
    for fold in range(int(folds.max()) + 1):
        held_out = folds == fold
        gains[held_out] = _held_out_gains(table, ~held_out, held_out)
    per_query = by_query(gains, table.query_ids)
    mean = gains.mean(axis=0)
    error = np.sqrt(((per_query - per_query.mean(axis=0)) ** 2).sum(axis=0)) / len(table)
    gain = np.where(mean > error, mean, 0.0)
    by_fold = np.array([gains[folds == fold].mean(axis=0) for fold in range(int(folds.max()) + 1)])
    return _standings(names, gain, np.maximum(by_fold, 0.0), settings.most_about_queries)


def weigh_answers(
    table: CaseTable, settings: EvolveConfig, traits: Mapping[str, PerspectiveWeight]
) -> dict[str, PerspectiveWeight]:
    """Return what each perspective about responses is worth to surrogate trees."""
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
    """What fitting each trait's two sides apart takes off the squared error of left-out cases."""
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
    """Predictions for new rows, the penalty being as if the columns shared half of the variance."""
    columns = x.shape[1]
    weights = np.linalg.solve(x.T @ x + columns * np.eye(columns), x.T @ y)
    predicted: Floats = new @ weights
    return predicted


def _gini_shares(table: CaseTable, phi: Floats, learned: NDArray[np.bool_], seed: int) -> Floats:
    """Each answer's share in surrogate trees, with that of the answer signed by traits."""
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
    """Return the ids of at most so many that are worth anything, the best first."""
    useful = [name for name, found in standings.items() if found.importance > 0.0]
    ordered = sorted(
        useful, key=lambda name: (-standings[name].importance, -standings[name].stability)
    )
    return tuple(ordered[:most])
