"""Labels of all queries fit one scorer together; each query then bends it as far as its labels go.

`score = pooled features @ weights + the query's level + (p_yes - the query's mean) @ its weights`,
clipped to the scale. How far a query goes its own way is chosen by leaving out each label in turn
(`partial_pooling`). A query without labels is scored by the pooled part alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from rocketeval.config import ScorerConfig
from rocketeval.records import Gold
from rocketeval.scoring.answers import AnswerTable, filled_rows
from rocketeval.scoring.base import State
from rocketeval.scoring.features import (
    FEATURES,
    Bools,
    Floats,
    describe,
    describe_rows,
    weighted_rows,
)
from rocketeval.scoring.labelled import label_column
from rocketeval.scoring.learning import (
    LabelScorer,
    everywhere,
    joined,
    read_reasons,
    reading_state,
    refuse_other_checklist,
    split_numbers,
    why_too_few,
)
from rocketeval.scoring.own_part import OwnPart, own_columns, own_parts
from rocketeval.scoring.partial_pooling import Design, fit_pooled


class PooledRidgeScorer(LabelScorer):
    """A partially pooled ridge regression of labels on answers."""

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Learn from every label; with too few, or all alike, become the mean."""
        labels = label_column(answers, gold.labels, self.scale)
        features, usable = describe(answers, self.missing)
        given = usable & ~np.isnan(labels)
        self.intercept_ = 0.0
        self.weights_ = np.array([1.0, *[0.0] * (len(FEATURES) - 1)])
        self.own_: dict[str, OwnPart] = {}
        self.facts_: dict[str, Any] = {"labels": int(given.sum())}
        reason = why_too_few(labels[given])
        if reason is None:
            self._learn(answers, features, labels, given)
        self.fallbacks_ = everywhere(answers, reason)
        return self

    def predict(self, answers: AnswerTable) -> Floats:
        """Return the score of each response, on the scale; NaN where no answer can be used."""
        low, high = self.scale
        scores = np.full(len(answers), np.nan)
        for block in answers.blocks():
            p_yes, usable = filled_rows(block.p_yes, self.missing)
            if usable.any():
                share = self._share(block.query_id, p_yes[usable])
                scores[block.rows][usable] = np.clip(low + (high - low) * share, low, high)
        return scores

    def item_weights(self) -> Mapping[str, Floats]:
        """Return what each item of a labelled query is worth, as shares of what all are worth.

        An item's worth is what the score gains when its answer goes from no to yes while the
        others stay at their mean among the labelled responses. It is negative for an item whose
        yes goes with lower labels; sizes without their signs sum to one.
        """
        found = {}
        for query_id, own in self.own_.items():
            yes, no = (np.tile(own.centre, (len(own.centre), 1)) for _ in range(2))
            np.fill_diagonal(yes, 1.0)
            np.fill_diagonal(no, 0.0)
            worth = self._share(query_id, yes) - self._share(query_id, no)
            total = np.abs(worth).sum()
            found[query_id] = worth / total if total > 0.0 else np.full(len(worth), 1 / len(worth))
        return found

    def state(self) -> State:
        """Return the pooled weights and every query's own part."""
        own = list(self.own_.values())
        header = {
            "facts": self.facts_,
            "fallbacks": self.fallbacks_,
            "queries": list(self.own_),
            "items": [len(part.centre) for part in own],
        }
        arrays = {
            "pooled": np.array([self.intercept_, *self.weights_]),
            "levels": np.array([part.level for part in own]),
            "centres": joined([part.centre for part in own]),
            "weights": joined([part.weights for part in own]),
        }
        return State(header, arrays)

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Self:
        """Return the fitted scorer again."""
        scorer = cls.create(config)
        header, arrays = state.header, state.arrays
        with reading_state(config.kind):
            pooled = split_numbers(arrays["pooled"], [1 + len(FEATURES)])[0]
            queries = [str(query_id) for query_id in header["queries"]]
            levels = split_numbers(arrays["levels"], [len(queries)])[0]
            centres = split_numbers(arrays["centres"], header["items"])
            weights = split_numbers(arrays["weights"], header["items"])
            parts = [
                OwnPart(float(a), b, c) for a, b, c in zip(levels, centres, weights, strict=True)
            ]
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
        centres, items, starts = own_columns(answers, given, self.missing)
        design = Design(standard, items, starts, (labels[given] - low) / (high - low))
        fitted = fit_pooled(design)
        self.weights_ = fitted.weights[1:] / spread
        self.intercept_ = float(fitted.weights[0] - centre @ self.weights_)
        self.own_ = own_parts(centres, fitted)
        self.facts_ |= {
            "penalties": fitted.penalties._asdict(),
            "left_out_rmse": float((high - low) * np.sqrt(fitted.left_out_error)),
        }

    def _share(self, query_id: str, p_yes: Floats) -> Floats:
        share = self.intercept_ + weighted_rows(describe_rows(p_yes), self.weights_)
        own = self.own_.get(query_id)
        if own is None:
            return share
        refuse_other_checklist(query_id, p_yes.shape[1], len(own.centre))
        return share + own.of(p_yes)
