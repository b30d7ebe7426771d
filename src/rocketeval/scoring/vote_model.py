"""A paired-comparison model with ties, and its map from latent quality to the score scale.

Davidson (1970), "On extending the Bradley-Terry model to accommodate ties in paired comparison
experiments": with d the difference of the two latent qualities,

    P(a wins) : P(b wins) : P(tie)  =  exp(d / 2) : exp(-d / 2) : exp(c)

In this model, ties do not change the odds of the two wins, and a tie is the most likely outcome if
|d| < 2c: never if c is not positive. Human ties differ: two poor responses are called a tie more
often than two good ones, and ties fade faster with |d|. So after fitting the qualities, c becomes
`at_zero - fade * |d| + by_level * (mean of the two qualities)`, and a tie is the most likely
outcome if |d| < 2 * (at_zero + by_level * level) / (1 + 2 * fade): the threshold that agrees with
most votes, if the model is right. The model has no position bias, so the order of `a` and `b` does
not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.scoring.split import group_folds
from rocketeval.workers import one_blas_thread

PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Penalties on the weights of all features except the first, per vote."""
TIE_PENALTIES = (0.003, 0.03, 0.3, 3.0)
"""On the tie offsets of categories, per vote."""
FOLDS = 5
"""Folds of queries for choosing the penalty."""

_WEAK = 1e-3
# Weak penalty that keeps parameters finite if votes never contradict them or never tie.


@dataclass(frozen=True, eq=False)
class VoteColumns:
    """Votes as columns."""

    differences: Floats
    """Features of response a minus those of response b."""
    outcomes: NDArray[np.int8]
    """1 if a won, -1 if b won, 0 for a tie."""
    query_ids: Sequence[str]

    def take(self, rows: NDArray[np.bool_]) -> VoteColumns:
        """Return the votes of the chosen rows."""
        kept = [query_id for query_id, keep in zip(self.query_ids, rows, strict=True) if keep]
        return VoteColumns(self.differences[rows], self.outcomes[rows], kept)


@dataclass(frozen=True, slots=True)
class TieCurve:
    """Log-odds of a tie against the geometric mean of the two wins."""

    at_zero: float
    """Value for two equal responses of average quality."""
    fade: float
    """Decrease per unit of the difference between the two; not negative."""
    by_level: float
    """Increase per unit of their mean quality."""

    def threshold(self, level: Floats) -> Floats:
        """Return the difference below which a tie is the most likely outcome; 0 if it never is."""
        height = np.maximum(self.at_zero + self.by_level * level, 0.0)
        found: Floats = 2.0 * height / (1.0 + 2.0 * self.fade)
        return found


def fit_weights(votes: VoteColumns, seed: int) -> tuple[Floats, float]:
    """Return the feature weights, and the penalty chosen by cross-validation."""
    with one_blas_thread():
        penalty = _best_penalty(votes, seed)
        return _minimise(votes, penalty)[:-1], penalty


def davidson_loss(parameters: Floats, votes: VoteColumns, held: Floats) -> tuple[float, Floats]:
    """Return the penalized mean negative log-likelihood and its gradient.

    The parameters are the weights, then the log-odds of a tie.
    """
    difference = votes.differences @ parameters[:-1]
    loss, by_difference, by_tie = _outcome_loss(
        difference, np.full(len(difference), parameters[-1]), votes.outcomes
    )
    slope = np.append(by_difference @ votes.differences, by_tie.sum()) / len(difference)
    return loss + float(held @ parameters**2) / 2.0, slope + held * parameters


def tie_loss(
    parameters: Floats, difference: Floats, level: Floats, outcomes: NDArray[np.int8]
) -> tuple[float, Floats]:
    """Return loss and gradient for the three parameters of a tie curve, given the qualities."""
    columns = np.stack([np.ones_like(level), -np.abs(difference), level])
    loss, _, by_tie = _outcome_loss(difference, parameters @ columns, outcomes)
    slope = columns @ by_tie / len(level) + _WEAK * parameters
    return loss + _WEAK * float(parameters @ parameters) / 2.0, slope


def fit_ties(difference: Floats, level: Floats, outcomes: NDArray[np.int8]) -> TieCurve:
    """Fit the tie curve to votes with known latent qualities."""
    from scipy.optimize import minimize

    found = minimize(
        tie_loss,
        np.zeros(3),
        args=(difference, level, outcomes),
        jac=True,
        method="L-BFGS-B",
        bounds=[(None, None), (0.0, None), (None, None)],
    )
    return TieCurve(*(float(value) for value in found.x))


def fit_category_ties(
    curve: TieCurve,
    difference: Floats,
    level: Floats,
    outcomes: NDArray[np.int8],
    categories: Sequence[str],
    folds: NDArray[np.int64],
) -> dict[str, TieCurve]:
    """Return one tie curve per category: the common one, raised or lowered as its votes show.

    People call more ties in some categories than in others. The offsets are shrunk toward 0, by the
    penalty that predicts the left-out folds best.
    """
    names = sorted(set(categories))
    own = np.array([names.index(name) for name in categories], dtype=np.intp)
    common = curve.at_zero - curve.fade * np.abs(difference) + curve.by_level * level

    def fitted(rows: NDArray[np.bool_], penalty: float) -> Floats:
        from scipy.optimize import minimize

        def loss(offsets: Floats) -> tuple[float, Floats]:
            found, _, by_tie = _outcome_loss(
                difference[rows], common[rows] + offsets[own[rows]], outcomes[rows]
            )
            slope = np.bincount(own[rows], by_tie, len(names)) / int(rows.sum())
            return found + penalty * float(offsets @ offsets) / 2.0, slope + penalty * offsets

        start = np.zeros(len(names))
        return np.asarray(minimize(loss, start, jac=True, method="L-BFGS-B").x, dtype=np.float64)

    losses = []
    for penalty in TIE_PENALTIES:
        total = 0.0
        for left_out in range(int(folds.max()) + 1):
            unseen = folds == left_out
            tie = common[unseen] + fitted(~unseen, penalty)[own[unseen]]
            total += _outcome_loss(difference[unseen], tie, outcomes[unseen])[0] * unseen.sum()
        losses.append(total)
    offsets = fitted(np.ones(len(own), bool), TIE_PENALTIES[int(np.argmin(losses))])
    return {
        name: replace(curve, at_zero=curve.at_zero + float(offset))
        for name, offset in zip(names, offsets, strict=True)
    }


def _best_penalty(votes: VoteColumns, seed: int) -> float:
    fold = group_folds(votes.query_ids, FOLDS, seed)
    losses = np.zeros(len(PENALTIES))
    for left_out in range(int(fold.max()) + 1):
        seen, unseen = votes.take(fold != left_out), votes.take(fold == left_out)
        for place, penalty in enumerate(PENALTIES):
            found = _minimise(seen, penalty)
            loss = davidson_loss(found, unseen, np.zeros_like(found))[0]
            losses[place] += loss * len(unseen.outcomes)
    return PENALTIES[int(losses.argmin())]


def _minimise(votes: VoteColumns, penalty: float) -> Floats:
    from scipy.optimize import minimize

    size = votes.differences.shape[1]
    held = np.array([_WEAK, *[penalty] * (size - 1), _WEAK])
    start = np.zeros(size + 1)
    found = minimize(davidson_loss, start, args=(votes, held), jac=True, method="L-BFGS-B")
    return np.asarray(found.x, dtype=np.float64)


def _outcome_loss(
    difference: Floats, tie: Floats, outcomes: NDArray[np.int8]
) -> tuple[float, Floats, Floats]:
    """Return the mean loss, and each vote's gradient by difference and by tie log-odds."""
    powers = np.stack([-difference / 2.0, tie, difference / 2.0])
    highest = powers.max(axis=0)
    shares = np.exp(powers - highest)
    total = shares.sum(axis=0)
    happened = powers[outcomes + 1, np.arange(len(outcomes))]
    loss = float(np.mean(highest + np.log(total) - happened))
    lost, tied, won = shares / total
    return loss, (won - lost - outcomes) / 2.0, tied - (outcomes == 0)


ROOM = 0.45
"""Share of the scale, on each side of its middle, in which the tie margin is exact."""
KNOTS = 257
"""Number of points of the piecewise linear curve."""

_FINEST = 1e-3
_HALVINGS = 60


@dataclass(frozen=True, eq=False)
class QualityScale:
    """An increasing curve from latent quality to score."""

    qualities: Floats
    """Increasing, from the lowest to the highest quality in the training data."""
    heights: Floats
    """Score minus the middle of the scale, at each quality."""

    def score(self, quality: Floats, scale: tuple[float, float]) -> Floats:
        """Return the score of each latent quality, within the scale."""
        low, high = scale
        height = np.interp(quality, self.qualities, self.heights)
        rise, run = np.diff(self.heights)[[0, -1]], np.diff(self.qualities)[[0, -1]]
        height += rise[0] / run[0] * np.minimum(quality - self.qualities[0], 0.0)
        height += rise[1] / run[1] * np.maximum(quality - self.qualities[-1], 0.0)
        bent: Floats = (low + high) / 2.0 + _bend(height, high - low)
        return np.asarray(np.clip(bent, low, high), dtype=np.float64)


def quality_scale(
    ties: TieCurve, lowest: float, highest: float, scale: tuple[float, float], margin: float
) -> tuple[QualityScale, float]:
    """Return the curve, and the smallest difference of qualities that equals a tie margin on it.

    Training qualities range from `lowest` (below 0) to `highest` (above 0).
    """
    qualities = np.linspace(lowest, highest, KNOTS)
    stretches = ties.threshold((qualities[1:] + qualities[:-1]) / 2.0)
    room = ROOM * (scale[1] - scale[0])

    def heights(least: float) -> Floats:
        steps = margin * np.diff(qualities) / np.maximum(stretches, least)
        climbed = np.concatenate([[0.0], np.cumsum(steps)])
        above: Floats = climbed - np.interp(0.0, qualities, climbed)
        return above

    finest = _FINEST * (highest - lowest)
    coarsest = max(finest, margin * (highest - lowest) / room)
    for _ in range(_HALVINGS):
        middle = np.sqrt(finest * coarsest)
        fits = bool(np.abs(heights(middle)).max() <= room)
        finest, coarsest = (finest, middle) if fits else (middle, coarsest)
    least = coarsest
    return QualityScale(qualities, heights(least)), float(np.maximum(stretches, least).min())


def _bend(height: Floats, length: float) -> Floats:
    """Return heights unchanged within `ROOM`, and compressed toward half the scale beyond it."""
    room, rest = ROOM * length, (0.5 - ROOM) * length
    beyond = np.maximum(np.abs(height) - room, 0.0)
    bent: Floats = np.sign(height) * (
        np.minimum(np.abs(height), room) - rest * np.expm1(-beyond / rest)
    )
    return bent
