"""Predictions of an evaluator and of simple fits, and their accuracy by confidence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.errors import ConfigError
from rocketeval.evolve.cases import by_query
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import wilson


@dataclass(frozen=True, eq=False)
class Predictions:
    """One prediction per case."""

    probabilities: Floats | None
    """For pairs, the probability of each of `OUTCOMES` (b wins, tie, a wins), shape (cases, 3)."""
    values: Floats | None
    """For single responses, the label."""
    confidence: Floats
    """From 0 to 1. For pairs, the probability of the likeliest outcome minus that of the next; for
    labels, 1 minus the trees' standard deviation as a share of its maximum."""
    expert: NDArray[np.int64]
    """Index of the expert that judged the case."""
    missing_answers: int = 0
    """Number of missing answers; each is replaced by the perspective's usual answer."""
    missing_traits: int = 0
    """Number of missing traits; each counts as absent."""

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def verdict(self) -> Floats:
        """Return 1 (a wins), -1 (b wins) or 0 (tie, or equally likely); NaN for labels."""
        if self.probabilities is None:
            return np.full(len(self), np.nan)
        return verdicts(self.probabilities)

    @property
    def outcome(self) -> Floats:
        """Return the verdicts or labels to compare with the reference data."""
        return self.verdict if self.values is None else self.values


def verdicts(probabilities: Floats) -> Floats:
    """Return 1, -1 or 0 for the likeliest outcome; 0 if two are equally likely.

    >>> verdicts(np.array([[0.2, 0.3, 0.5], [0.4, 0.2, 0.4]])).tolist()
    [1.0, 0.0]
    """
    for_b, tie, for_a = probabilities.T
    wins, loses = (for_a > tie) & (for_a > for_b), (for_b > tie) & (for_b > for_a)
    verdict: Floats = wins.astype(np.float64) - loses.astype(np.float64)
    return verdict


def lead(probabilities: Floats) -> Floats:
    """Return the probability of the likeliest outcome minus that of the next.

    >>> lead(np.array([[0.25, 0.25, 0.5]])).tolist()
    [0.25]
    """
    ordered = np.sort(probabilities, axis=1)
    # Rounding may leave the unit interval.
    return np.clip(ordered[:, -1] - ordered[:, -2], 0.0, 1.0)


def joined(parts: list[tuple[NDArray[np.intp], Predictions]]) -> Predictions:
    """Combine predictions of parts, each with the row numbers of its cases."""
    order = np.argsort(np.concatenate([places for places, _ in parts]), kind="stable")
    made = [one for _, one in parts]
    probabilities = [one.probabilities for one in made if one.probabilities is not None]
    values = [one.values for one in made if one.values is not None]
    return Predictions(
        np.concatenate(probabilities)[order] if probabilities else None,
        np.concatenate(values)[order] if values else None,
        np.concatenate([one.confidence for one in made])[order],
        np.concatenate([one.expert for one in made])[order],
        sum(one.missing_answers for one in made),
        sum(one.missing_traits for one in made),
    )


@dataclass(frozen=True)
class Thresholds:
    """Two cut points that turn a number into a verdict."""

    low: float
    """Below it b wins."""
    high: float
    """Above it a wins."""

    @classmethod
    def learn(cls, numbers: Floats, gold: Floats) -> Self:
        """Return the cut points with the most correct verdicts; the lowest if tied.

        >>> Thresholds.learn(np.array([-0.8, -0.1, 0.1, 0.9]), np.array([-1.0, 0.0, 0.0, 1.0]))
        Thresholds(low=-0.45, high=0.5)
        """
        levels, place = np.unique(numbers, return_inverse=True)
        between = (levels[:-1] + levels[1:]) / 2.0
        ends = np.concatenate([[levels[0] - 1.0], between, [levels[-1] + 1.0]])
        lost, tied, won = (
            np.concatenate(
                [[0], np.cumsum(np.bincount(place[gold == side], minlength=len(levels)))]
            )
            for side in (-1.0, 0.0, 1.0)
        )
        # Correct verdicts: losses below `low`, ties between `low` and `high`, wins above `high`.
        below, above = lost - tied, tied + won[-1] - won
        best_below = np.maximum.accumulate(below)
        high = int(np.argmax(best_below + above))
        low = int(np.argmax(below[: high + 1]))
        return cls(float(ends[low]), float(ends[high]))

    def verdicts(self, numbers: Floats) -> Floats:
        """Return 1, 0 or -1 for each case; 0 where there is no number."""
        wins, loses = numbers > self.high, numbers < self.low
        return wins.astype(np.float64) - loses.astype(np.float64)


@dataclass(frozen=True)
class LinearFit:
    """A straight line from an answer to a label."""

    slope: float
    start: float

    @classmethod
    def learn(cls, numbers: Floats, labels: Floats) -> Self:
        """Return the least-squares line; constant if all numbers are equal."""
        centred = numbers - numbers.mean()
        spread = float(centred @ centred)
        slope = float(centred @ labels) / spread if spread > 0.0 else 0.0
        return cls(slope, float(labels.mean()) - slope * float(numbers.mean()))

    @classmethod
    def across(cls, labels: Floats) -> Self:
        """Return the line that maps 0 and 1 to the smallest and the largest label."""
        low, high = float(labels.min()), float(labels.max())
        return cls(high - low, low)

    def labels(self, numbers: Floats) -> Floats:
        """Return the label of each case."""
        return self.start + self.slope * numbers


THRESHOLDS = (0.0, 0.25, 0.5, 0.67, 0.8)
"""The thresholds of the paper's Table 4."""
_LEVEL = 0.95
_STEPS = 100
"""Number of thresholds to try: hundredths, so that no single case determines one."""


@dataclass(frozen=True, slots=True)
class ConfidenceRow:
    """The cases at or above a confidence threshold."""

    threshold: float
    cases: int
    coverage: float
    """Their share of all cases."""
    accuracy: Interval | None
    """Share of correct verdicts; None without cases."""


def confidence_table(
    predictions: Predictions,
    gold: Floats,
    query_ids: Sequence[str],
    thresholds: Sequence[float] = THRESHOLDS,
) -> tuple[ConfidenceRow, ...]:
    """Return accuracy and coverage at each threshold; raise ConfigError for labels.

    A label is neither right nor wrong, so it has no accuracy. Cases without reference data are
    ignored.
    """
    if predictions.probabilities is None:
        raise ConfigError(
            "Accuracy by confidence exists only for pairs; these predictions are labels.",
            hint="Compare the labels' errors with `Predictions.confidence` instead.",
        )
    known = np.flatnonzero(~np.isnan(gold))
    right = (predictions.verdict == gold).astype(np.float64)[known]
    sure, queries = predictions.confidence[known], [query_ids[place] for place in known.tolist()]
    return tuple(_row(threshold, sure, right, queries) for threshold in thresholds)


def threshold_for(
    target_accuracy: float, predictions: Predictions, gold: Floats, query_ids: Sequence[str]
) -> float | None:
    """Return the smallest threshold whose accuracy has a lower bound at or above the target.

    In hundredths; None if there is none. Cases below it should go to a person. Because many
    thresholds are tried, the result is optimistic: check it on fresh cases from time to time.
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
    accuracy = _accuracy(right[among], [query_ids[place] for place in among.tolist()])
    return ConfidenceRow(threshold, len(among), share, accuracy)


def _accuracy(right: Floats, query_ids: Sequence[str]) -> Interval:
    """Return Wilson's interval with the effective sample size given the spread over queries.

    The bootstrap would give a zero-width interval when all of a few verdicts are right.
    """
    from scipy.special import stdtrit

    mean, cases = float(right.mean()), len(right)
    sums = by_query((right - mean)[:, None], query_ids)[:, 0]
    if len(sums) < 2:
        return Interval(mean, math.nan, math.nan)
    variance = float(sums @ sums) * len(sums) / (len(sums) - 1) / cases**2
    # At most the number of cases; without any spread, one per query.
    effective = min(cases, mean * (1.0 - mean) / variance) if variance > 0.0 else len(sums)
    return wilson(mean, float(stdtrit(len(sums) - 1, 0.5 + _LEVEL / 2.0)) ** 2 / effective)
