"""Partially pooled ridge regression: one fit on the labels of all queries, adjusted per query.

`score = pooled features @ weights + the query's level + (p_yes - the query's mean) @ its weights`,
clipped to the scale. Leave-one-out errors choose how far a query may deviate. A query without
labels is scored by the pooled part only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Bools, Floats
from rocketeval.config import ScorerConfig
from rocketeval.records import Gold
from rocketeval.scoring.answers import (
    FEATURES,
    AnswerTable,
    describe,
    describe_rows,
    filled_rows,
    weighted_rows,
)
from rocketeval.scoring.base import State
from rocketeval.scoring.learning import (
    SIZED,
    LabelScorer,
    everywhere,
    joined,
    label_column,
    read_reasons,
    read_sizes,
    reading_state,
    refuse_other_checklist,
    split_numbers,
    why_too_few,
)
from rocketeval.scoring.mean import MeanScorer
from rocketeval.workers import one_blas_thread

FEATURE_PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Penalties on the pooled weights except the first two, per label."""
LEVEL_PENALTIES = (0.3, 1.0, 3.0, 10.0, 30.0, 1e6)
"""Penalties on a query's level: it moves by `n / (n + penalty)` of what its n labels suggest."""
ITEM_PENALTIES = (0.3, 1.0, 3.0, 10.0, 1e6)
"""Penalties on a query's item weights; the last one practically disables them."""

_FREE = 1e-9
# Keeps the equations solvable if every response has the same mean.


class Penalties(NamedTuple):
    """Penalty of each part."""

    features: float
    level: float
    items: float


@dataclass(frozen=True, eq=False)
class Design:
    """Design matrices of the labeled responses, sorted by query."""

    features: Floats
    """Ones, the mean answer, then the penalized features; all but the ones are centered."""
    items: Floats
    """Ones, then the answers minus the query's mean; zeros after the query's last item."""
    starts: NDArray[np.intp]
    """First row of each query, then the number of rows."""
    labels: Floats

    @property
    def queries(self) -> list[slice]:
        """Return the rows of each query."""
        pairs = zip(self.starts[:-1].tolist(), self.starts[1:].tolist(), strict=True)
        return [slice(start, stop) for start, stop in pairs]


@dataclass(frozen=True, eq=False)
class PooledFit:
    """The fit for one choice of penalties."""

    weights: Floats
    """One weight per feature column."""
    own: Floats
    """Level and item weights of each query, with shape (queries, 1 + items)."""
    penalties: Penalties
    left_out_error: float
    """Leave-one-out mean squared error."""


@dataclass(frozen=True, eq=False)
class _Moments:
    """Sums over each query's rows, independent of penalties."""

    gram: Floats
    cross: Floats
    """Items by features, with the label in the last column."""


@dataclass(frozen=True, eq=False)
class _Smoothed:
    """Residuals of features and labels after removing each query's own part."""

    inverse: Floats
    rest: Floats
    """Features, with labels in the last column."""
    leverage: Floats
    """Leverage of each label on its own prediction, from the query's own part."""


def fit_pooled(design: Design) -> PooledFit:
    """Return the fit with the lowest leave-one-out error over all penalties."""
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


@dataclass(frozen=True, eq=False)
class QueryOffset:
    """Adjustment of the pooled score for one query, as a share of the scale."""

    level: float
    """Added to every response."""
    centre: Floats
    """Mean answer to each item among the labeled responses."""
    weights: Floats
    """Weight of each item's deviation from that mean, on top of the pooled part."""
    sizes: Floats
    """Size of each item's weight in the rubric; 1 if all items are plain."""

    def of(self, p_yes: Floats) -> Floats:
        """Return the adjustment of each row of answers."""
        return self.level + weighted_rows(p_yes - self.centre, self.weights)


class LabeledItems(NamedTuple):
    """The items of one query among its labeled responses."""

    centre: Floats
    """Mean answer to each."""
    sizes: Floats
    """Size of each one's weight in the rubric."""


def offset_columns(
    answers: AnswerTable, given: Bools, missing: str
) -> tuple[dict[str, LabeledItems], Floats, NDArray[np.intp]]:
    """Return each query's items, the answers' deviations from their mean, and the first rows."""
    found: dict[str, LabeledItems] = {}
    parts = []
    for block in answers.blocks():
        p_yes = filled_rows(block.p_yes, missing, block.weights)[0][given[block.rows]]
        if len(p_yes):
            centre = p_yes.mean(axis=0)
            found[block.query_id] = LabeledItems(centre, block.sizes)
            parts.append(p_yes - centre)
    starts = np.cumsum([0, *map(len, parts)])
    items = np.zeros((starts[-1], 1 + max(len(each.centre) for each in found.values())))
    items[:, 0] = 1.0
    for start, part in zip(starts[:-1], parts, strict=True):
        items[start : start + len(part), 1 : 1 + part.shape[1]] = part
    return found, items, starts


def query_offsets(found: dict[str, LabeledItems], fitted: PooledFit) -> dict[str, QueryOffset]:
    """Return the adjustment of each labeled query, by id."""
    return {
        query_id: QueryOffset(float(own[0]), each.centre, own[1 : 1 + len(each.centre)], each.sizes)
        for (query_id, each), own in zip(found.items(), fitted.own, strict=True)
    }


class PooledRidgeScorer(LabelScorer):
    """A partially pooled ridge regression of labels on answers."""

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Fit on all labels; with too few or identical labels, use the mean."""
        labels = label_column(answers, gold.labels, self.scale)
        features, usable = describe(answers, self.missing)
        given = usable & ~np.isnan(labels)
        self.intercept_, self.weights_ = 0.0, np.zeros(len(FEATURES))
        self.own_: dict[str, QueryOffset] = {}
        self.facts_: dict[str, Any] = {"labels": int(given.sum())}
        reason = why_too_few(labels[given])
        if reason is None:
            self._learn(answers, features, labels, given)
        self.fallbacks_ = everywhere(answers, reason)
        return self

    def predict(self, answers: AnswerTable) -> Floats:
        """Return the score of each response, on the scale; NaN without usable answers."""
        if "penalties" not in self.facts_:  # Nothing was learned.
            return MeanScorer(self.scale, self.missing).predict(answers)
        low, high = self.scale
        scores = np.full(len(answers), np.nan)
        for block in answers.blocks():
            p_yes, usable = filled_rows(block.p_yes, self.missing, block.weights)
            if usable.any():
                share = self._share(block.query_id, p_yes[usable], block.weights)
                scores[block.rows][usable] = np.clip(low + (high - low) * share, low, high)
        return scores

    def item_weights(self) -> Mapping[str, Floats]:
        """Return each item's effect on the score of labeled queries, as shares.

        The effect is the change of the score when the answer goes from no to yes, with the others
        at their mean among the labeled responses. It is negative if yes lowers the score; absolute
        values sum to one.
        """
        found = {}
        for query_id, own in self.own_.items():
            yes, no = (np.tile(own.centre, (len(own.centre), 1)) for _ in range(2))
            np.fill_diagonal(yes, 1.0)
            np.fill_diagonal(no, 0.0)
            gain = self._share(query_id, yes, own.sizes) - self._share(query_id, no, own.sizes)
            total = np.abs(gain).sum()
            found[query_id] = gain / total if total > 0.0 else np.full(len(gain), 1 / len(gain))
        return found

    def state(self) -> State:
        """Return the pooled weights and each query's adjustment."""
        own = list(self.own_.values())
        header = {
            "facts": self.facts_,
            "fallbacks": self.fallbacks_,
            "queries": list(self.own_),
            "items": [len(part.centre) for part in own],
            SIZED: True,
        }
        arrays = {
            "pooled": np.array([self.intercept_, *self.weights_]),
            "levels": np.array([part.level for part in own]),
            "centres": joined([part.centre for part in own]),
            "weights": joined([part.weights for part in own]),
            "sizes": joined([part.sizes for part in own]),
        }
        return State(header, arrays)

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Self:
        """Restore the fitted scorer."""
        scorer = cls.create(config)
        header, arrays = state.header, state.arrays
        with reading_state(config.kind):
            pooled = split_numbers(arrays["pooled"], [1 + len(FEATURES)])[0]
            queries = [str(query_id) for query_id in header["queries"]]
            levels = split_numbers(arrays["levels"], [len(queries)])[0]
            centres = split_numbers(arrays["centres"], header["items"])
            weights = split_numbers(arrays["weights"], header["items"])
            columns = zip(levels, centres, weights, read_sizes(header, arrays), strict=True)
            parts = [QueryOffset(float(level), *own) for level, *own in columns]
            scorer.own_ = dict(zip(queries, parts, strict=True))
            scorer.facts_ = dict(header["facts"])
            scorer.fallbacks_ = read_reasons(header["fallbacks"])
        scorer.intercept_, scorer.weights_ = float(pooled[0]), pooled[1:]
        return scorer

    def _learn(self, answers: AnswerTable, features: Floats, labels: Floats, given: Bools) -> None:
        low, high = self.scale
        centre, spread = features[given].mean(axis=0), features[given].std(axis=0)
        spread[spread < 1e-9] = np.inf
        standard = np.column_stack([np.ones(given.sum()), (features[given] - centre) / spread])
        found, items, starts = offset_columns(answers, given, self.missing)
        design = Design(standard, items, starts, (labels[given] - low) / (high - low))
        fitted = fit_pooled(design)
        self.weights_ = fitted.weights[1:] / spread
        self.intercept_ = float(fitted.weights[0] - centre @ self.weights_)
        self.own_ = query_offsets(found, fitted)
        self.facts_ |= {
            "penalties": fitted.penalties._asdict(),
            "left_out_rmse": float((high - low) * np.sqrt(fitted.left_out_error)),
        }

    def _share(self, query_id: str, p_yes: Floats, sizes: Floats | None) -> Floats:
        share = self.intercept_ + weighted_rows(describe_rows(p_yes, sizes), self.weights_)
        own = self.own_.get(query_id)
        if own is None:
            return share
        refuse_other_checklist(query_id, p_yes.shape[1], len(own.centre))
        return share + own.of(p_yes)
