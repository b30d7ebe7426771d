"""How far to trust an evaluator that is sure: accuracy by confidence, and whom to ask below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rocketeval.errors import ConfigError
from rocketeval.evolve.cases import Floats
from rocketeval.evolve.groups import by_query
from rocketeval.evolve.predictions import Predictions
from rocketeval.records import Interval

THRESHOLDS = (0.0, 0.25, 0.5, 0.67, 0.8)
"""Those of the paper's Table 4."""
_LEVEL = 0.95
_STEPS = 100
"""Thresholds that are tried: hundredths, so that no single case fixes one."""


@dataclass(frozen=True, slots=True)
class ConfidenceRow:
    """The cases of which an evaluator is at least so sure."""

    threshold: float
    cases: int
    coverage: float
    """Their share of all cases."""
    accuracy: Interval | None
    """Share of their verdicts that are right; None without cases."""


def confidence_table(
    predictions: Predictions,
    gold: Floats,
    query_ids: Sequence[str],
    thresholds: Sequence[float] = THRESHOLDS,
) -> tuple[ConfidenceRow, ...]:
    """Return accuracy and coverage at each threshold; ConfigError for labels.

    A label is not right or wrong, and so has no accuracy. Cases without gold do not count.
    """
    if predictions.probabilities is None:
        raise ConfigError(
            "Accuracy by confidence is told of pairs; these predictions are labels.",
            hint="Hold the labels' errors against `Predictions.confidence` instead.",
        )
    known = np.flatnonzero(~np.isnan(gold))
    right = (predictions.verdict == gold).astype(np.float64)[known]
    sure, queries = predictions.confidence[known], [query_ids[place] for place in known.tolist()]
    return tuple(_row(threshold, sure, right, queries) for threshold in thresholds)


def threshold_for(
    target_accuracy: float, predictions: Predictions, gold: Floats, query_ids: Sequence[str]
) -> float | None:
    """Return the least threshold whose accuracy reaches the target even at its lower bound.

    In hundredths; None if none does. Cases below it go to a person. Of several thresholds that are
    tried the luckiest may be the one that reaches it, so hold it against fresh cases now and then.
    """
    tried = tuple(step / _STEPS for step in range(_STEPS))
    for row in confidence_table(predictions, gold, query_ids, tried):
        if row.accuracy is not None and row.accuracy.low >= target_accuracy:
            return row.threshold
    return None


def _row(threshold: float, sure: Floats, right: Floats, query_ids: list[str]) -> ConfidenceRow:
    among = np.flatnonzero(sure >= threshold)
    share = len(among) / len(sure) if len(sure) else 0.0
    if not len(among):
        return ConfidenceRow(threshold, 0, share, None)
    accuracy = _wilson(right[among], [query_ids[place] for place in among.tolist()])
    return ConfidenceRow(threshold, len(among), share, accuracy)


def _wilson(right: Floats, query_ids: Sequence[str]) -> Interval:
    """Wilson's interval for as many independent cases as the spread over queries is worth.

    Resampling would be certain where every verdict is right, which few cases are enough for.
    """
    from scipy.special import stdtrit

    mean, cases = float(right.mean()), len(right)
    sums = by_query((right - mean)[:, None], query_ids)[:, 0]
    if len(sums) < 2:
        return Interval(mean, math.nan, math.nan)
    variance = float(sums @ sums) * len(sums) / (len(sums) - 1) / cases**2
    # Never worth more than the cases that there are; without any spread, one a query.
    worth = min(cases, mean * (1.0 - mean) / variance) if variance > 0.0 else len(sums)
    reach = float(stdtrit(len(sums) - 1, 0.5 + _LEVEL / 2.0)) ** 2 / worth
    middle = (mean + reach / 2.0) / (1.0 + reach)
    half = math.sqrt(reach * (mean * (1.0 - mean) + reach / 4.0)) / (1.0 + reach)
    return Interval(mean, max(0.0, middle - half), min(1.0, middle + half))
