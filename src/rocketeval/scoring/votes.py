"""A scorer fitted on votes: a paired-comparison model with ties.

A response's latent quality is a weighted sum of its `features`, fitted on the votes of all queries
and shrunk toward the mean log-odds; cross-validation over queries chooses the penalty. The
qualities are then mapped to the scale so that the run's tie margin matches what voters call a tie.
All queries share the weights, because a few votes on one query say too little about its items.

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

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Bools, Floats
from rocketeval.config import NoOptions, ScorerConfig, parse_options
from rocketeval.grid import vote_outcomes
from rocketeval.records import Gold, Vote
from rocketeval.scoring.answers import FEATURES, AnswerTable, describe, weighted_rows
from rocketeval.scoring.base import State
from rocketeval.scoring.learning import (
    TIE_MARGIN,
    everywhere,
    read_reasons,
    reading_state,
    refuse_labels,
    split_numbers,
)
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.split import group_folds
from rocketeval.workers import one_blas_thread

PENALTIES = (0.001, 0.01, 0.1, 1.0, 10.0)
"""Penalties on the weights of all features except the first, per vote."""
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


FEWEST_DECISIVE = 10
"""With fewer decided votes, the scorer uses the mean."""

_ANCHOR = FEATURES.index("log_odds")
_ORDER = [_ANCHOR, *(place for place in range(len(FEATURES)) if place != _ANCHOR)]
_SAME = 1e-9


class PooledLogisticScorer:
    """A Bradley-Terry model with ties, fitted on votes and response features."""

    def __init__(
        self,
        scale: tuple[float, float] = (1.0, 10.0),
        missing: str = "skip",
        tie_margin: float = TIE_MARGIN,
        seed: int = 0,
    ) -> None:
        self.scale = scale
        self.missing = missing
        self.tie_margin = tie_margin
        self.seed = seed

    @classmethod
    def create(cls, config: ScorerConfig) -> Self:
        """Return an unfitted scorer; raise ConfigError if it should learn from labels."""
        refuse_labels(config)
        parse_options(config.options, NoOptions, "scorer.options")
        # A tie margin of 0 means no ties; use the default width then.
        return cls(config.scale, config.missing, config.tie_margin or TIE_MARGIN, config.seed)

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Fit on all votes; with too few decided votes, use the mean."""
        features, usable = describe(answers, self.missing)
        first, second, votes = _voted_rows(answers, gold.votes, usable)
        outcomes = vote_outcomes(votes)
        self.centre_, self.weights_ = np.zeros(len(FEATURES)), np.zeros(len(FEATURES))
        self.curve_: QualityScale | None = None
        self.facts_: dict[str, Any] = {"votes": len(votes), "ties": int((outcomes == 0).sum())}
        reason = _why_mean(features[first], features[second], outcomes, votes)
        if reason is None:
            query_ids = [vote.query_id for vote in votes]
            reason = self._learn(features, first, second, outcomes, query_ids)
        self.fallbacks_ = everywhere(answers, reason)
        return self

    def predict(self, answers: AnswerTable) -> Floats:
        """Return the score of each response, within the scale; NaN without usable answers."""
        if self.curve_ is None:
            return MeanScorer(self.scale, self.missing).predict(answers)
        features, usable = describe(answers, self.missing)
        scores = np.full(len(answers), np.nan)
        scores[usable] = self.curve_.score(self._quality(features[usable]), self.scale)
        return scores

    def fallbacks(self) -> Mapping[str, str]:
        """Return all queries if there was too little training data, else none."""
        return dict(self.fallbacks_)

    def item_weights(self) -> Mapping[str, Floats]:
        """Return no weights: no query has its own item weights."""
        return {}

    def state(self) -> State:
        """Return the feature weights and the points of the curve."""
        arrays = {"centre": self.centre_, "weights": self.weights_}
        if self.curve_ is not None:
            arrays |= {"qualities": self.curve_.qualities, "heights": self.curve_.heights}
        return State({"facts": self.facts_, "fallbacks": self.fallbacks_}, arrays)

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Self:
        """Restore the fitted scorer."""
        scorer = cls.create(config)
        arrays = state.arrays
        with reading_state(config.kind):
            scorer.centre_ = split_numbers(arrays["centre"], [len(FEATURES)])[0]
            scorer.weights_ = split_numbers(arrays["weights"], [len(FEATURES)])[0]
            scorer.facts_ = dict(state.header["facts"])
            scorer.fallbacks_ = read_reasons(state.header["fallbacks"])
            scorer.curve_ = None
            if not scorer.fallbacks_:
                points = [split_numbers(arrays[name], [KNOTS])[0] for name in _CURVE]
                if not all(bool((np.diff(point) > 0).all()) for point in points):
                    raise ValueError("its curve is not increasing")
                scorer.curve_ = QualityScale(*points)
        return scorer

    def _learn(
        self,
        features: Floats,
        first: NDArray[np.intp],
        second: NDArray[np.intp],
        outcomes: NDArray[np.int8],
        query_ids: Sequence[str],
    ) -> str | None:
        """Fit weights and curve; return the reason if that fails, else None."""
        voted = features[np.unique(np.concatenate([first, second]))]
        self.centre_, spread = voted.mean(axis=0), voted.std(axis=0)
        spread[spread < _SAME] = np.inf
        standard = (features / spread)[:, _ORDER]
        columns = VoteColumns(standard[first] - standard[second], outcomes, query_ids)
        weights, penalty = fit_weights(columns, self.seed)
        self.weights_ = np.empty(len(FEATURES))
        self.weights_[_ORDER] = weights
        self.weights_ /= spread
        learned = self._quality(voted)
        if np.ptp(learned) < _SAME:
            return "the votes prefer no answers over others"
        quality = self._quality(features)
        level = (quality[first] + quality[second]) / 2.0
        ties = fit_ties(quality[first] - quality[second], level, outcomes)
        self.curve_, narrowest = quality_scale(
            ties, float(learned.min()), float(learned.max()), self.scale, self.tie_margin
        )
        self.facts_ |= {
            "penalty": penalty,
            "weights": dict(zip(FEATURES, self.weights_.tolist(), strict=True)),
            "tie_log_odds": {"at_zero": ties.at_zero, "fade": ties.fade, "by_level": ties.by_level},
            "narrowest_tie": narrowest,
        }
        return None

    def _quality(self, features: Floats) -> Floats:
        return weighted_rows(features - self.centre_, self.weights_)


_CURVE = ("qualities", "heights")


def _voted_rows(
    answers: AnswerTable, votes: Sequence[Vote], usable: Bools
) -> tuple[NDArray[np.intp], NDArray[np.intp], list[Vote]]:
    """Return the rows of a and b for each vote on two usable responses, and these votes."""
    pairs = zip(answers.query_ids, answers.candidates, usable.tolist(), strict=True)
    rows = {(query, name): row for row, (query, name, use) in enumerate(pairs) if use}
    known = [
        vote
        for vote in votes
        if (vote.query_id, vote.candidate_a) in rows and (vote.query_id, vote.candidate_b) in rows
    ]
    first = np.array([rows[vote.query_id, vote.candidate_a] for vote in known], dtype=np.intp)
    second = np.array([rows[vote.query_id, vote.candidate_b] for vote in known], dtype=np.intp)
    return first, second, known


def _why_mean(
    first: Floats, second: Floats, outcomes: NDArray[np.int8], votes: Sequence[Vote]
) -> str | None:
    decisive = int((outcomes != 0).sum())
    if decisive < FEWEST_DECISIVE:
        return f"{decisive} votes that are not ties; {FEWEST_DECISIVE} are needed"
    if len({vote.query_id for vote in votes}) < 2:
        return "all votes are on one query; 2 are needed"
    if not np.any(first != second):
        return "the judge gave both responses of every vote the same answers"
    return None
