"""How far a query's labels can be trusted to teach a scorer (section 3.3 of the paper).

`alpha = (eps - KL(P || U)) / eps`: P is the distribution of the query's labels over the levels of
the label scale, U the uniform one, and eps the KL of a distribution that sits on one level. Labels
spread evenly over the scale give 1, labels that are all alike give 0. Since
`KL(P || U) = log(levels) - entropy(P)`, alpha is the entropy of the labels over its largest value.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FRACTION_LEVELS = 10
"""Levels of a scale whose labels are neither whole numbers nor its two ends."""
MOST_WHOLE_LEVELS = 20
"""A scale with more whole numbers than this has the levels of one of fractions."""


@dataclass(frozen=True, slots=True)
class LabelScale:
    """A label scale and the levels that labels are counted on."""

    low: float
    high: float
    levels: int

    @classmethod
    def of(cls, labels: Floats, scale: tuple[float, float]) -> LabelScale:
        """The levels that a run's labels speak of: all whole numbers, the two ends, or ten.

        >>> LabelScale.of(np.array([3.0, 7.0]), (1.0, 10.0)).levels
        10
        >>> LabelScale.of(np.array([0.0, 1.0, 1.0]), (0.0, 1.0)).levels
        2
        >>> LabelScale.of(np.array([0.25, 0.5]), (0.0, 1.0)).levels
        10
        """
        low, high = scale
        steps = high - low
        if set(labels.tolist()) <= {low, high}:
            return cls(low, high, 2)
        whole = bool(np.equal(labels, np.round(labels)).all()) and low == round(low)
        if whole and steps == round(steps) and steps < MOST_WHOLE_LEVELS:
            return cls(low, high, int(steps) + 1)
        return cls(low, high, FRACTION_LEVELS)

    def level(self, labels: Floats) -> NDArray[np.int64]:
        """The nearest level of each label, from 0; levels stand evenly from low to high."""
        place = (labels - self.low) / (self.high - self.low)
        nearest = np.floor(place * (self.levels - 1) + 0.5)
        return np.clip(nearest, 0, self.levels - 1).astype(np.int64)


def label_weight(labels: Floats, scale: LabelScale) -> float:
    """Alpha of one query's labels: 0 when all are on one level, 1 when they are spread evenly.

    >>> ten = LabelScale(1.0, 10.0, 10)
    >>> round(label_weight(np.arange(1.0, 11.0), ten), 9), label_weight(np.array([8.0, 8.0]), ten)
    (1.0, 0.0)
    """
    if len(labels) == 0:
        return 0.0
    counts = np.bincount(scale.level(labels), minlength=scale.levels)
    shares = counts[counts > 0] / len(labels)
    entropy = -float((shares * np.log(shares)).sum())
    return min(1.0, max(0.0, entropy / math.log(scale.levels)))
