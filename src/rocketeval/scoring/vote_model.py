"""A paired-comparison model with ties, and its map from latent quality to the score scale.

Davidson (1970), "On extending the Bradley-Terry model to accommodate ties in paired comparison
experiments": with d the difference of the two latent qualities,

    P(a wins) : P(b wins) : P(tie)  =  exp(d / 2) : exp(-d / 2) : exp(c)

Davidson's c is one number. Here it is `at_zero - fade * |d|`: human ties fade faster with |d|, and
`at_zero` differs by category of query, because people call more ties in some than in others. A tie
is the most likely outcome if |d| < 2 * at_zero / (1 + 2 * fade): the threshold that agrees with
most votes, if the model is right. The model has no position bias, so the order of `a` and `b` does
not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.scoring.split import group_folds
from rocketeval.workers import one_blas_thread

PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Penalties on the weights of all features except the first, per vote."""
TIE_PENALTIES = (0.03, 0.003, 0.3, 3.0)
"""On the tie offsets of categories, per vote. The first one is used until the other is chosen."""
FOLDS = 5
"""Folds of queries for choosing the penalties."""

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
    """The query of each vote, or its cluster: cross-validation keeps them together."""
    categories: Sequence[str] = ()
    """The category of each vote's query; empty if all queries share one tie curve."""

    def groups(self) -> tuple[list[str], NDArray[np.intp]]:
        """Return the names of the categories, and the place of each vote's own."""
        names, own = np.unique(np.asarray(self.categories, dtype=str), return_inverse=True)
        return ([], own) if len(names) < 2 else (names.tolist(), own)


@dataclass(frozen=True, slots=True)
class TieCurve:
    """Log-odds of a tie against the geometric mean of the two wins."""

    at_zero: float
    """Value for two equal responses."""
    fade: float
    """Decrease per unit of the difference between the two; not negative."""

    @property
    def threshold(self) -> float:
        """The difference below which a tie is the most likely outcome; 0 if it never is."""
        return 2.0 * max(self.at_zero, 0.0) / (1.0 + 2.0 * self.fade)


@dataclass(frozen=True, eq=False)
class VoteFit:
    """A fitted model of votes."""

    weights: Floats
    ties: TieCurve
    """For queries of a category without votes."""
    by_category: dict[str, TieCurve]
    penalty: float
    tie_penalty: float


def fit_votes(votes: VoteColumns, seed: int) -> VoteFit:
    """Fit weights and tie curves together; cross-validation over queries chooses the penalties."""
    with one_blas_thread():
        names, own = votes.groups()
        model = _VoteModel(votes, own, len(names))
        folds = group_folds(votes.query_ids, FOLDS, seed)
        penalty = min(
            PENALTIES, key=lambda each: model.loss_out_of_fold(each, TIE_PENALTIES[0], folds)
        )
        tie_penalty = TIE_PENALTIES[0]
        if names:
            tie_penalty = min(
                TIE_PENALTIES, key=lambda each: model.loss_out_of_fold(penalty, each, folds)
            )
        found = model.fit(model.everything, penalty, tie_penalty)
    size = votes.differences.shape[1]
    fade, at_zero = (float(value) for value in found[size : size + 2])
    by_category = {
        name: TieCurve(at_zero + float(offset), fade)
        for name, offset in zip(names, found[size + 2 :], strict=True)
    }
    return VoteFit(found[:size], TieCurve(at_zero, fade), by_category, penalty, tie_penalty)


@dataclass(frozen=True, eq=False)
class _VoteModel:
    """The likelihood of votes. Parameters: weights, fade, at_zero, an offset per category."""

    votes: VoteColumns
    own: NDArray[np.intp]
    categories: int

    @property
    def everything(self) -> NDArray[np.bool_]:
        return np.ones(len(self.votes.outcomes), dtype=np.bool_)

    def held(self, penalty: float, tie_penalty: float) -> Floats:
        """Return the penalty of each parameter."""
        size = self.votes.differences.shape[1]
        ties = [tie_penalty] * self.categories
        return np.array([_WEAK, *[penalty] * (size - 1), _WEAK, _WEAK, *ties])

    def loss(
        self, parameters: Floats, rows: NDArray[np.bool_], held: Floats | float
    ) -> tuple[float, Floats]:
        """Return the penalized mean negative log-likelihood of some votes, and its gradient."""
        differences = self.votes.differences[rows]
        outcomes, count = self.votes.outcomes[rows], int(rows.sum())
        size = differences.shape[1]
        quality, fade, offsets = differences @ parameters[:size], parameters[size], np.zeros(1)
        tie = parameters[size + 1] - fade * np.abs(quality)
        if self.categories:
            offsets = parameters[size + 2 :]
            tie = tie + offsets[self.own[rows]]
        powers = np.stack([-quality / 2.0, tie, quality / 2.0])
        highest = powers.max(axis=0)
        shares = np.exp(powers - highest)
        total = shares.sum(axis=0)
        happened = powers[outcomes + 1, np.arange(count)]
        lost, tied, won = shares / total
        by_tie = tied - (outcomes == 0)
        by_quality = (won - lost - outcomes) / 2.0 - by_tie * fade * np.sign(quality)
        slope = np.concatenate(
            [
                by_quality @ differences,
                [-float(by_tie @ np.abs(quality)), float(by_tie.sum())],
                np.bincount(self.own[rows], by_tie, self.categories) if self.categories else [],
            ]
        )
        mean = float(np.mean(highest + np.log(total) - happened))
        return mean + float(np.sum(held * parameters**2)) / 2.0, slope / count + held * parameters

    def fit(self, rows: NDArray[np.bool_], penalty: float, tie_penalty: float) -> Floats:
        """Return the parameters with the smallest loss."""
        from scipy.optimize import minimize

        size = self.votes.differences.shape[1]
        start = np.zeros(size + 2 + self.categories)
        start[0] = 0.5
        limits: list[tuple[float | None, float | None]] = [(None, None)] * len(start)
        limits[size] = (0.0, None)
        found = minimize(
            self.loss,
            start,
            args=(rows, self.held(penalty, tie_penalty)),
            jac=True,
            method="L-BFGS-B",
            bounds=limits,
        )
        return np.asarray(found.x, dtype=np.float64)

    def loss_out_of_fold(
        self, penalty: float, tie_penalty: float, folds: NDArray[np.int64]
    ) -> float:
        """Return the sum of losses of votes that a fit did not see."""
        total = 0.0
        for left_out in range(int(folds.max()) + 1):
            unseen = folds == left_out
            found = self.fit(~unseen, penalty, tie_penalty)
            total += self.loss(found, unseen, 0.0)[0] * int(unseen.sum())
        return total


ROOM = 0.45
"""Share of the scale, on each side of its middle, in which the tie margin is exact."""
KNOTS = 257
"""Number of points of the piecewise linear curve."""


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
    threshold: float, lowest: float, highest: float, scale: tuple[float, float], margin: float
) -> QualityScale:
    """Return a curve on which the tie threshold equals the tie margin.

    Training qualities range from `lowest` (below 0) to `highest` (above 0). A threshold too small
    for the scale is widened.
    """
    room = ROOM * (scale[1] - scale[0])
    least = margin * max(highest, -lowest) / room
    qualities = np.linspace(lowest, highest, KNOTS)
    return QualityScale(qualities, margin * qualities / max(threshold, least))


def _bend(height: Floats, length: float) -> Floats:
    """Return heights unchanged within `ROOM`, and compressed toward half the scale beyond it."""
    room, rest = ROOM * length, (0.5 - ROOM) * length
    beyond = np.maximum(np.abs(height) - room, 0.0)
    bent: Floats = np.sign(height) * (
        np.minimum(np.abs(height), room) - rest * np.expm1(-beyond / rest)
    )
    return bent
