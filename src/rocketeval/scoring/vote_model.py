"""What votes say about responses: a latent quality, and when two are too close to call.

Davidson (1970), "On extending the Bradley-Terry model to accommodate ties in paired comparison
experiments": with d the difference of the two latent qualities,

    P(a wins) : P(b wins) : P(tie)  =  exp(d / 2) : exp(-d / 2) : exp(c)

His ties leave the odds of the two wins alone, and make a tie the likeliest outcome exactly where
|d| < 2c: nowhere when c is not positive. People's ties are not that simple: two poor responses are
called a tie more easily than two good ones, and ties fade faster with |d|. So once the qualities
are fitted, c becomes `at_zero - fade * |d| + by_level * (mean of the two qualities)`, and a tie is
the likeliest outcome where |d| < 2 * (at_zero + by_level * level) / (1 + 2 * fade): the threshold
that agrees with most votes, if the model holds. Nothing favours the response shown first, so it
does not matter which one a vote calls `a`.
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
"""On the weights of all features but the first, per vote."""
FOLDS = 5
"""Parts into which the queries are cut to choose among the penalties."""

_WEAK = 1e-3
# On whatever is otherwise free: keeps it finite when votes never contradict it, or never tie.


@dataclass(frozen=True, eq=False)
class VoteColumns:
    """Votes as columns."""

    differences: Floats
    """Features of response a less those of response b."""
    outcomes: NDArray[np.int8]
    """1 when a won, -1 when b won, 0 for a tie."""
    query_ids: Sequence[str]

    def take(self, rows: NDArray[np.bool_]) -> VoteColumns:
        """Return the votes of some rows."""
        kept = [query_id for query_id, keep in zip(self.query_ids, rows, strict=True) if keep]
        return VoteColumns(self.differences[rows], self.outcomes[rows], kept)


@dataclass(frozen=True, slots=True)
class TieCurve:
    """How likely a tie is, as log-odds against the geometric mean of the two wins."""

    at_zero: float
    """For two equal responses of average quality."""
    fade: float
    """Lost per unit of the difference between the two; not negative."""
    by_level: float
    """Gained per unit of their mean quality."""

    def threshold(self, level: Floats) -> Floats:
        """The difference below which a tie is the likeliest outcome; 0 where it never is."""
        height = np.maximum(self.at_zero + self.by_level * level, 0.0)
        found: Floats = 2.0 * height / (1.0 + 2.0 * self.fade)
        return found


def fit_weights(votes: VoteColumns, seed: int) -> tuple[Floats, float]:
    """Return the features' weights, and the penalty that predicts left-out queries best."""
    with one_blas_thread():
        penalty = _best_penalty(votes, seed)
        return _minimise(votes, penalty)[:-1], penalty


def davidson_loss(parameters: Floats, votes: VoteColumns, held: Floats) -> tuple[float, Floats]:
    """Return the mean negative log-likelihood with its penalty, and the gradient of both.

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
    """Return the same for the three parameters of a tie curve, with the qualities known."""
    columns = np.stack([np.ones_like(level), -np.abs(difference), level])
    loss, _, by_tie = _outcome_loss(difference, parameters @ columns, outcomes)
    slope = columns @ by_tie / len(level) + _WEAK * parameters
    return loss + _WEAK * float(parameters @ parameters) / 2.0, slope


def fit_ties(difference: Floats, level: Floats, outcomes: NDArray[np.int8]) -> TieCurve:
    """Return the tie curve of votes whose two latent qualities are known."""
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
    """Return the mean loss, and each vote's slope by its difference and by its tie's log-odds."""
    powers = np.stack([-difference / 2.0, tie, difference / 2.0])
    highest = powers.max(axis=0)
    shares = np.exp(powers - highest)
    total = shares.sum(axis=0)
    happened = powers[outcomes + 1, np.arange(len(outcomes))]
    loss = float(np.mean(highest + np.log(total) - happened))
    lost, tied, won = shares / total
    return loss, (won - lost - outcomes) / 2.0, tied - (outcomes == 0)
