"""Verdicts from one number a case: between two cut points is a tie.

What a single prompt or a mean of answers can do when it may learn as little as that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rocketeval.evolve.cases import Floats


@dataclass(frozen=True)
class Cuts:
    """Two cut points."""

    low: float
    """Below it b wins."""
    high: float
    """Above it a wins."""

    @classmethod
    def learn(cls, numbers: Floats, gold: Floats) -> Self:
        """Return the cut points with the most right verdicts; of equals the lowest.

        >>> Cuts.learn(np.array([-0.8, -0.1, 0.1, 0.9]), np.array([-1.0, 0.0, 0.0, 1.0]))
        Cuts(low=-0.45, high=0.5)
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
        # Right verdicts: losses below `low`, ties from there to `high`, wins above it.
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
class Line:
    """A straight line from an answer to a label."""

    slope: float
    start: float

    @classmethod
    def learn(cls, numbers: Floats, labels: Floats) -> Self:
        """Return the line of least squares; level where all numbers are alike."""
        centred = numbers - numbers.mean()
        spread = float(centred @ centred)
        slope = float(centred @ labels) / spread if spread > 0.0 else 0.0
        return cls(slope, float(labels.mean()) - slope * float(numbers.mean()))

    @classmethod
    def across(cls, labels: Floats) -> Self:
        """Return the line from 0 and 1 to the least and the largest label."""
        low, high = float(labels.min()), float(labels.max())
        return cls(high - low, low)

    def labels(self, numbers: Floats) -> Floats:
        """Return the label of each case."""
        return self.start + self.slope * numbers
