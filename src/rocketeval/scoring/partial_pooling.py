"""Ridge regression over many queries, each with a level and item weights of its own, shrunk.

    label = features @ weights + own[query] @ items,     own = 0 for a query without labels

with penalties on the pooled weights, on each query's own level and on its own item weights. A query
with few labels stays close to what all queries say, one with many goes its own way. All of it is
one penalised least squares problem, solved in closed form; so is the error of leaving each label
out, `residual / (1 - leverage)`, by which the penalties are chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rocketeval.threads import one_blas_thread

Floats = NDArray[np.float64]

FEATURE_PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
"""On the pooled weights but the first two, per label."""
LEVEL_PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 1e6)
"""On a query's own level: it takes `n / (n + penalty)` of what its n labels say."""
ITEM_PENALTIES = (0.3, 1.0, 3.0, 10.0, 1e6)
"""On a query's own item weights; the last is as good as none of its own."""

_FREE = 1e-9
# Keeps the equations solvable when every response has the same mean.


class Penalties(NamedTuple):
    """How strongly each part is held toward zero."""

    features: float
    level: float
    items: float


@dataclass(frozen=True, eq=False)
class Design:
    """Labelled responses, query by query."""

    features: Floats
    """Ones, the mean answer, then the features that are penalised; all but the ones centred."""
    items: Floats
    """Ones, then the answers less the query's mean; zeros past the query's last item."""
    starts: NDArray[np.intp]
    """First row of each query, and the number of rows."""
    labels: Floats

    @property
    def queries(self) -> list[slice]:
        """The rows of each query."""
        pairs = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)
        return [slice(start, stop) for start, stop in pairs]


@dataclass(frozen=True, eq=False)
class PooledFit:
    """What one choice of penalties learns."""

    weights: Floats
    """One per column of the features."""
    own: Floats
    """Shape (queries, 1 + items): each query's own level and item weights."""
    penalties: Penalties
    left_out_error: float
    """Mean squared error of each label by the fit to all others."""


@dataclass(frozen=True, eq=False)
class _Moments:
    """Sums over each query's rows, which no penalty changes."""

    gram: Floats
    cross: Floats
    """Items by features, and in the last column by label."""


@dataclass(frozen=True, eq=False)
class _Smoothed:
    """What is left of features and labels when each query's own part is taken out."""

    inverse: Floats
    rest: Floats
    """Features, and in the last column labels."""
    leverage: Floats
    """Of each label on its own prediction, by the query's own part alone."""


def fit_pooled(design: Design) -> PooledFit:
    """Return the fit whose penalties predict best each label that is left out."""
    with one_blas_thread():
        moments = _moments(design)
        found = [
            _solve(design, moments, smoothed, Penalties(features, level, items))
            for level, items in product(LEVEL_PENALTIES, ITEM_PENALTIES)
            for smoothed in [_smooth(design, moments, level, items)]
            for features in FEATURE_PENALTIES
        ]
    return min(found, key=lambda fitted: fitted.left_out_error)


def fit_with(design: Design, penalties: Penalties) -> PooledFit:
    """Return the fit with the given penalties."""
    moments = _moments(design)
    smoothed = _smooth(design, moments, penalties.level, penalties.items)
    return _solve(design, moments, smoothed, penalties)


def _moments(design: Design) -> _Moments:
    columns = np.column_stack([design.features, design.labels])
    parts = [(design.items[rows], columns[rows]) for rows in design.queries]
    return _Moments(
        np.stack([items.T @ items for items, _ in parts]),
        np.stack([items.T @ given for items, given in parts]),
    )


def _smooth(design: Design, moments: _Moments, level: float, items: float) -> _Smoothed:
    size = design.items.shape[1]
    penalty = np.diag([level, *[items] * (size - 1)])
    inverse = np.asarray(np.linalg.inv(moments.gram + penalty), dtype=np.float64)
    rest = np.column_stack([design.features, design.labels])
    leverage = np.empty(len(rest))
    for rows, own, cross in zip(design.queries, inverse, moments.cross, strict=True):
        reach = design.items[rows] @ own
        rest[rows] -= reach @ cross
        leverage[rows] = (reach * design.items[rows]).sum(axis=1)
    return _Smoothed(inverse, rest, leverage)


def _solve(
    design: Design, moments: _Moments, smoothed: _Smoothed, penalties: Penalties
) -> PooledFit:
    features, labels = smoothed.rest[:, :-1], smoothed.rest[:, -1]
    held = np.full(features.shape[1], penalties.features * len(labels))
    held[:2] = _FREE * len(labels)
    curvature = design.features.T @ features + np.diag(held)
    solved = np.linalg.solve(curvature, np.column_stack([design.features.T @ labels, features.T]))
    weights, reach = np.asarray(solved[:, 0], dtype=np.float64), solved[:, 1:].T
    leverage = smoothed.leverage + (reach * features).sum(axis=1)
    left_out = (labels - features @ weights) / np.maximum(1.0 - leverage, _FREE)
    surplus = moments.cross[:, :, -1] - moments.cross[:, :, :-1] @ weights
    own = (smoothed.inverse @ surplus[:, :, None])[:, :, 0]
    return PooledFit(weights, own, penalties, float(np.mean(left_out**2)))
