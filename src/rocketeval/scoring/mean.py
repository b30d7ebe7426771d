"""The mean of the answers on the label scale, plain or calibrated to the labels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.config import NoOptions, ScorerConfig, parse_options
from rocketeval.errors import ArtifactError
from rocketeval.records import Gold
from rocketeval.scoring.answers import AnswerTable, sum_rows
from rocketeval.scoring.base import State
from rocketeval.scoring.learning import (
    LabelScorer,
    everywhere,
    label_column,
    read_reasons,
    reading_state,
    split_numbers,
    why_too_few,
)


class MeanScorer:
    """`low + (high - low) * mean(p_yes)`.

    >>> table = AnswerTable(["q"], ["c"], np.array([1.0, 0.5]), np.array([0, 2]))
    >>> MeanScorer().predict(table)
    array([7.75])
    """

    def __init__(self, scale: tuple[float, float] = (1.0, 10.0), missing: str = "skip") -> None:
        self.scale = scale
        self.missing = missing

    @classmethod
    def create(cls, config: ScorerConfig) -> Self:
        """Return a scorer on the config's scale."""
        parse_options(config.options, NoOptions, "scorer.options")
        return cls(config.scale, config.missing)

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Return self; there is nothing to learn."""
        return self

    def predict(self, answers: AnswerTable) -> Floats:
        """Return the mean answer of each response; NaN without usable answers."""
        answered = answers.answered
        usable = answered > 0 if self.missing == "skip" else answered == answers.items
        usable &= answers.items > 0
        low, high = self.scale
        scores: Floats = low + (high - low) * np.where(usable, self._means(answers), np.nan)
        return scores

    def state(self) -> State:
        """Return an empty state."""
        return State({}, {})

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Self:
        """Restore the scorer; raise ArtifactError unless the state is empty."""
        if state.header or state.arrays:
            raise ArtifactError(f"The saved state is not from a {config.kind} scorer.")
        return cls.create(config)

    def _means(self, answers: AnswerTable) -> Floats:
        """Return the weighted mean of each response; NaN without anything applicable."""
        return _mean_rows(answers, answers.p_yes, answers.item_weights)


class HardMeanScorer(MeanScorer):
    """The share of items answered yes, ignoring probabilities (the paper's ablation).

    With weights, the weighted share of answers that are at least half right, each counted as far as
    its item applies.
    """

    def _means(self, answers: AnswerTable) -> Floats:
        values, weights = answers.p_yes, answers.item_weights
        if answers.rubric is not None:
            values, weights = answers.rubric.turned, weights * answers.rubric.applicable
        return _mean_rows(answers, np.where(np.isnan(values), np.nan, values >= 0.5), weights)


def _mean_rows(answers: AnswerTable, values: Floats, weights: Floats) -> Floats:
    """Return the weighted mean of each response's values; NaN without a weight."""
    weights = np.where(np.isnan(values), 0.0, weights)
    totals = sum_rows(weights * np.nan_to_num(values, nan=0.0), answers.offsets)
    shares = sum_rows(weights, answers.offsets)
    none = np.full(len(answers), np.nan)
    means: Floats = np.divide(totals, shares, out=none, where=shares > 0)
    return means


SHARE_OF_MEAN = 0.01
"""Share of the mean mixed into the curve."""


class IsotonicScorer(LabelScorer):
    """The mean calibrated to the labels by an increasing curve.

    The curve is the isotonic regression of all labels on the mean `p_yes`, over all queries. Its
    steps would turn different scores into ties, so the curve interpolates linearly between the
    middles of the steps. Beyond the outermost steps it would be flat; mixing in 1% of the mean
    keeps the order of the mean everywhere.
    """

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Fit the curve on all labels; with too few or identical labels, use the mean."""
        labels = label_column(answers, gold.labels, self.scale)
        means = self._means(answers)
        given = ~np.isnan(labels) & ~np.isnan(means)
        reason = why_too_few(labels[given])
        self.means_, self.labels_ = np.array(self.scale), np.array(self.scale)
        if reason is None:
            self.means_, self.labels_ = _step_middles(means[given], labels[given])
        self.fallbacks_ = everywhere(answers, reason)
        return self

    def predict(self, answers: AnswerTable) -> Floats:
        """Return the curve at each response's mean; NaN without usable answers."""
        means = self._means(answers)
        curve = np.interp(means, self.means_, self.labels_)
        mixed: Floats = (1.0 - SHARE_OF_MEAN) * curve + SHARE_OF_MEAN * means
        # Rounding can move the mix slightly off the scale.
        return np.asarray(np.clip(mixed, *self.scale), dtype=np.float64)

    def item_weights(self) -> Mapping[str, Floats]:
        """Return no weights: all items have equal weight."""
        return {}

    def state(self) -> State:
        """Return the points of the curve."""
        points = {"means": self.means_, "labels": self.labels_}
        return State({"points": len(self.means_), "fallbacks": self.fallbacks_}, points)

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Self:
        """Restore the fitted scorer."""
        scorer = cls.create(config)
        with reading_state(config.kind):
            sizes = [int(state.header["points"])]
            means = split_numbers(state.arrays["means"], sizes)[0]
            labels = split_numbers(state.arrays["labels"], sizes)[0]
            if not (len(means) and (np.diff(means) > 0).all() and (np.diff(labels) > 0).all()):
                raise ValueError("its curve is not increasing")
            scorer.means_, scorer.labels_ = means, labels
            scorer.fallbacks_ = read_reasons(state.header["fallbacks"])
        return scorer

    def _means(self, answers: AnswerTable) -> Floats:
        return MeanScorer(self.scale, self.missing).predict(answers)


def _step_middles(means: Floats, labels: Floats) -> tuple[Floats, Floats]:
    """Return the mean and the label at the middle of each step of the isotonic regression."""
    from scipy.optimize import isotonic_regression

    places, place, counts = np.unique(means, return_inverse=True, return_counts=True)
    levels = np.bincount(place, weights=labels) / counts
    stairs = isotonic_regression(levels, weights=counts)
    steps = stairs.blocks[:-1]
    middles = np.add.reduceat(counts * places, steps) / np.add.reduceat(counts, steps)
    return middles, stairs.x[steps]
