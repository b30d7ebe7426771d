"""Anchor queries: a few queries whose scores predict a candidate's mean over all of them.

Queries on which the known candidates score alike are one group (k-means on the candidates' scores).
The query nearest to the center of its group is an anchor, with the size of the group as weight. The
weighted mean of a new candidate's anchor scores predicts its mean, as far as it resembles the known
candidates. How far is measured by cross-validation: every known candidate in turn is predicted from
anchors that were chosen without it.

A prediction from anchors has no interval: anchors are chosen, not drawn at random.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Floats, Ints

STARTS = 3
"""Starts of the clustering; the best one counts."""
FEWEST_CANDIDATES = 5


@dataclass(frozen=True, slots=True, eq=False)
class Anchors:
    """Chosen rows of a score table with their weights, which sum to 1."""

    rows: Ints
    weights: Floats

    def predict(self, scores: Floats) -> Floats:
        """Return the predicted mean of every column, from scores of all queries."""
        predicted: Floats = self.weights @ scores[self.rows]
        return predicted


def choose_anchors(scores: Floats, count: int, seed: int = 0) -> Anchors:
    """Choose `count` of the queries (rows) by the scores of all candidates (columns).

    >>> choose_anchors(np.array([[1.0, 2.0], [1.1, 2.0], [0.9, 2.0], [7.0, 9.0]]), 2).rows.tolist()
    [0, 3]
    """
    from sklearn.cluster import KMeans

    distinct = len(np.unique(scores, axis=0))
    groups = KMeans(min(count, distinct), n_init=STARTS, random_state=seed).fit(scores)
    distance = np.linalg.norm(scores - groups.cluster_centers_[groups.labels_], axis=1)
    order = np.lexsort((np.arange(len(scores)), distance, groups.labels_))
    _, first, sizes = np.unique(groups.labels_[order], return_index=True, return_counts=True)
    rows = order[first]
    by_row = np.argsort(rows)
    return Anchors(rows[by_row].astype(np.int64), sizes[by_row] / len(scores))


@dataclass(frozen=True, slots=True)
class PredictionError:
    """How well a few queries predict the means of candidates that they were not chosen for."""

    mean_error: float
    """Mean absolute error of the predicted means, on the scale of the scores."""
    spearman: float
    """Rank correlation of predicted and true means; NaN if either is constant."""


def cross_validate(scores: Floats, count: int, seed: int = 0) -> PredictionError:
    """Predict every candidate from anchors chosen without it."""
    predicted = np.empty(scores.shape[1])
    for column in range(scores.shape[1]):
        others = np.delete(scores, column, axis=1)
        predicted[column] = choose_anchors(others, count, seed).predict(scores[:, [column]])[0]
    return _error(predicted, scores.mean(axis=0))


def random_queries(scores: Floats, count: int, times: int, seed: int = 0) -> PredictionError:
    """Return the mean error of the plain mean over random queries, over `times` draws."""
    rng, truth = np.random.default_rng(seed), scores.mean(axis=0)
    drawn = [rng.choice(len(scores), count, replace=False) for _ in range(times)]
    found = [_error(scores[rows].mean(axis=0), truth) for rows in drawn]
    return PredictionError(
        float(np.mean([one.mean_error for one in found])),
        float(np.mean([one.spearman for one in found])),
    )


def _error(predicted: Floats, truth: Floats) -> PredictionError:
    from scipy.stats import spearmanr

    constant = np.ptp(predicted) == 0.0 or np.ptp(truth) == 0.0
    rho = math.nan if constant else float(spearmanr(predicted, truth).statistic)
    return PredictionError(float(np.abs(predicted - truth).mean()), rho)
