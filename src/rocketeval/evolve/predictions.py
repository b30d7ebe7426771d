"""What an evaluator says about cases."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.evolve.cases import Floats


@dataclass(frozen=True, eq=False)
class Predictions:
    """One prediction a case."""

    probabilities: Floats | None
    """Of pairs, the chance of each of `OUTCOMES` (b wins, tie, a wins), shape (cases, 3)."""
    values: Floats | None
    """Of single responses, the label."""
    confidence: Floats
    """From 0 to 1. Of pairs, the chance of the likeliest outcome less that of the next; of labels,
    1 less the trees' standard deviation as a share of the largest that it can be."""
    expert: NDArray[np.int64]
    """Which expert judged it."""
    missing_answers: int = 0
    """Answers that were not there; each is replaced by what is usual for its perspective."""
    missing_traits: int = 0
    """Traits that were not there; each counts as absent."""

    def __len__(self) -> int:
        return len(self.confidence)

    @property
    def verdict(self) -> Floats:
        """Of pairs 1 (a wins), -1 (b wins) or 0; of labels NaN. Outcomes as likely are a tie."""
        if self.probabilities is None:
            return np.full(len(self), np.nan)
        return verdicts(self.probabilities)

    @property
    def outcome(self) -> Floats:
        """What is held against the gold: verdicts, or labels."""
        return self.verdict if self.values is None else self.values

    def take(self, rows: NDArray[np.intp]) -> Predictions:
        """Return the predictions of some cases; what was missing is counted over all."""
        return Predictions(
            None if self.probabilities is None else self.probabilities[rows],
            None if self.values is None else self.values[rows],
            self.confidence[rows],
            self.expert[rows],
            self.missing_answers,
            self.missing_traits,
        )


def verdicts(probabilities: Floats) -> Floats:
    """Return 1, -1 or 0 for the likeliest outcome; 0 where two are as likely.

    >>> verdicts(np.array([[0.2, 0.3, 0.5], [0.4, 0.2, 0.4]])).tolist()
    [1.0, 0.0]
    """
    for_b, tie, for_a = probabilities.T
    wins, loses = (for_a > tie) & (for_a > for_b), (for_b > tie) & (for_b > for_a)
    verdict: Floats = wins.astype(np.float64) - loses.astype(np.float64)
    return verdict


def lead(probabilities: Floats) -> Floats:
    """Return how far the likeliest outcome is ahead of the next.

    >>> lead(np.array([[0.25, 0.25, 0.5]])).tolist()
    [0.25]
    """
    ordered = np.sort(probabilities, axis=1)
    # A rounding may leave the unit interval.
    return np.clip(ordered[:, -1] - ordered[:, -2], 0.0, 1.0)


def joined(parts: list[tuple[NDArray[np.intp], Predictions]]) -> Predictions:
    """Return predictions that were made part by part, each for the cases at its places."""
    order = np.argsort(np.concatenate([places for places, _ in parts]), kind="stable")
    said = [one for _, one in parts]
    probabilities = [one.probabilities for one in said if one.probabilities is not None]
    values = [one.values for one in said if one.values is not None]
    return Predictions(
        np.concatenate(probabilities)[order] if probabilities else None,
        np.concatenate(values)[order] if values else None,
        np.concatenate([one.confidence for one in said])[order],
        np.concatenate([one.expert for one in said])[order],
        sum(one.missing_answers for one in said),
        sum(one.missing_traits for one in said),
    )
