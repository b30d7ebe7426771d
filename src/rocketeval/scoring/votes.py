"""A scorer fitted on votes: a paired-comparison model with ties.

A response's latent quality is a weighted sum of its `features`, fitted on the votes of all queries
and shrunk toward the mean log-odds; cross-validation over queries chooses the penalty. The
qualities are then mapped to the scale so that the run's tie margin matches what voters call a tie.
All queries share the weights, because a few votes on one query say too little about its items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Bools, Floats
from rocketeval.config import ScorerConfig, Section, parse_options
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
from rocketeval.scoring.vote_model import (
    KNOTS,
    QualityScale,
    TieCurve,
    VoteColumns,
    fit_votes,
    quality_scale,
)

FEWEST_DECISIVE = 10
"""With fewer decided votes, the scorer uses the mean."""

COLUMNS = ("log_odds", "mean")
"""The features of a response; the first one is penalized least."""
PRIOR = "candidate"
"""The feature of `candidate_prior`."""
_SAME = 1e-9
_NO_PREFERENCE = 1e-3
# Range of the fitted log-odds below which the votes prefer no answers over others.
_EARLIER: dict[str, Any] = {"columns": FEATURES, "categories": [""], "usual": {}}
# What the state of an earlier version does not say.
_ADDED = frozenset(_EARLIER)


class VoteOptions(Section):
    """Settings of `pooled_logistic`."""

    candidate_prior: bool = False
    """Also learn from how the judge scores the candidate on other queries: "this candidate is
    usually better". That predicts votes better, and says less about the response itself."""


class PooledLogisticScorer:
    """A Bradley-Terry model with ties, fitted on votes and response features."""

    def __init__(
        self,
        scale: tuple[float, float] = (1.0, 10.0),
        missing: str = "skip",
        tie_margin: float = TIE_MARGIN,
        seed: int = 0,
        candidate_prior: bool = False,
    ) -> None:
        self.scale = scale
        self.missing = missing
        self.tie_margin = tie_margin
        self.seed = seed
        self.candidate_prior = candidate_prior
        self.columns: tuple[str, ...] = (*COLUMNS, PRIOR) if candidate_prior else COLUMNS

    @classmethod
    def create(cls, config: ScorerConfig) -> Self:
        """Return an unfitted scorer; raise ConfigError if it should learn from labels."""
        refuse_labels(config)
        options = parse_options(config.options, VoteOptions, "scorer.options")
        # A tie margin of 0 means no ties; use the default width then.
        margin = config.tie_margin or TIE_MARGIN
        return cls(config.scale, config.missing, margin, config.seed, options.candidate_prior)

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Fit on all votes; with too few decided votes, use the mean."""
        self.usual_: dict[str, float] = {}
        features, usable = self._describe(answers, learning=True)
        first, second, votes = _voted_rows(answers, gold.votes, usable)
        outcomes = vote_outcomes(votes)
        self.centre_, self.weights_ = np.zeros(len(self.columns)), np.zeros(len(self.columns))
        self.curves_: dict[str | None, QualityScale] = {}
        """By category, "" for queries without one; None is for categories without votes."""
        self.facts_: dict[str, Any] = {"votes": len(votes), "ties": int((outcomes == 0).sum())}
        query_ids = [gold.cluster(vote.query_id) for vote in votes]
        reason = _why_mean(features[first], features[second], outcomes, query_ids)
        if reason is None:
            categories = [answers.categories.get(vote.query_id, "") for vote in votes]
            reason = self._learn(features, first, second, outcomes, query_ids, categories)
        self.fallbacks_ = everywhere(answers, reason)
        return self

    def predict(self, answers: AnswerTable) -> Floats:
        """Return the score of each response, within the scale; NaN without usable answers."""
        if not self.curves_:
            return MeanScorer(self.scale, self.missing).predict(answers)
        features, usable = self._describe(answers, learning=False)
        scores = np.full(len(answers), np.nan)
        kinds = np.array([answers.categories.get(query, "") for query in answers.query_ids])
        for kind in np.unique(kinds[usable]).tolist():
            rows = usable & (kinds == kind)
            curve = self.curves_.get(kind, self.curves_[None])
            scores[rows] = curve.score(self._quality(features[rows]), self.scale)
        return scores

    def fallbacks(self) -> Mapping[str, str]:
        """Return all queries if there was too little training data, else none."""
        return dict(self.fallbacks_)

    def item_weights(self) -> Mapping[str, Floats]:
        """Return no weights: no query has its own item weights."""
        return {}

    def state(self) -> State:
        """Return the feature weights and the points of each category's curve."""
        arrays = {"centre": self.centre_, "weights": self.weights_}
        if self.curves_:
            curves = list(self.curves_.values())
            arrays["qualities"] = np.concatenate([curve.qualities for curve in curves])
            arrays["heights"] = np.concatenate([curve.heights for curve in curves])
        header: dict[str, Any] = {"facts": self.facts_, "fallbacks": self.fallbacks_}
        header |= {"columns": self.columns, "categories": list(self.curves_), "usual": self.usual_}
        return State(header, arrays)

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Self:
        """Restore the fitted scorer; one of an earlier version has all features and one curve."""
        scorer = cls.create(config)
        arrays = state.arrays
        with reading_state(config.kind):
            header = {**_EARLIER, **state.header} if not _ADDED & {*state.header} else state.header
            scorer.columns = tuple(str(name) for name in header["columns"])
            if unknown := set(scorer.columns) - {*FEATURES, PRIOR}:
                raise ValueError(f"unknown features: {sorted(unknown)}")
            size = len(scorer.columns)
            scorer.centre_ = split_numbers(arrays["centre"], [size])[0]
            scorer.weights_ = split_numbers(arrays["weights"], [size])[0]
            scorer.facts_ = dict(header["facts"])
            scorer.fallbacks_ = read_reasons(header["fallbacks"])
            scorer.usual_ = {str(k): float(v) for k, v in header["usual"].items()}
            scorer.curves_ = {}
            if not scorer.fallbacks_:
                names = [name if name is None else str(name) for name in header["categories"]]
                sizes = [KNOTS] * len(names)
                parts = [split_numbers(arrays[name], sizes) for name in _CURVE]
                for name, *points in zip(names, *parts, strict=True):
                    if not all(bool((np.diff(point) > 0).all()) for point in points):
                        raise ValueError("its curve is not increasing")
                    scorer.curves_[name] = QualityScale(*points)
                if None not in scorer.curves_:
                    # Earlier versions had one curve for no category and for other categories.
                    if "" not in scorer.curves_:
                        raise ValueError("it has no curve for other categories")
                    scorer.curves_[None] = scorer.curves_[""]
        return scorer

    def _describe(self, answers: AnswerTable, *, learning: bool) -> tuple[Floats, Bools]:
        """Return the features of each response, and which rows may be used."""
        described, usable = describe(answers, self.missing)
        known = dict(zip(FEATURES, described.T, strict=True))
        if PRIOR in self.columns:
            known[PRIOR] = self._prior(answers, known["log_odds"], usable, learning)
        return np.stack([known[name] for name in self.columns], axis=1), usable

    def _prior(
        self, answers: AnswerTable, log_odds: Floats, usable: Bools, learning: bool
    ) -> Floats:
        """Return how much higher the judge usually scores each response's candidate.

        While learning, a response's own query is left out.
        """
        if not learning:
            return np.array([self.usual_.get(name, 0.0) for name in answers.candidates])
        above = _above_query(answers, log_odds, usable)
        names, places = np.unique(np.asarray(answers.candidates), return_inverse=True)
        counts = np.bincount(places, usable, len(names))
        totals = np.bincount(places, np.where(usable, above, 0.0), len(names))
        means = totals / np.maximum(counts, 1.0)
        self.usual_ = dict(zip(names.tolist(), means.tolist(), strict=True))
        others = np.maximum(counts[places] - usable, 1.0)
        left: Floats = (totals[places] - np.where(usable, above, 0.0)) / others
        return left

    def _learn(
        self,
        features: Floats,
        first: NDArray[np.intp],
        second: NDArray[np.intp],
        outcomes: NDArray[np.int8],
        query_ids: Sequence[str],
        categories: Sequence[str],
    ) -> str | None:
        """Fit weights and curves; return the reason if that fails, else None."""
        voted = features[np.unique(np.concatenate([first, second]))]
        self.centre_, spread = voted.mean(axis=0), voted.std(axis=0)
        spread[spread < _SAME] = np.inf
        standard = features / spread
        differences = standard[first] - standard[second]
        found = fit_votes(VoteColumns(differences, outcomes, query_ids, categories), self.seed)
        self.weights_ = found.weights / spread
        learned = self._quality(voted)
        if np.ptp(learned) < _NO_PREFERENCE:
            return "the votes prefer no answers over others"
        curves: dict[str | None, TieCurve] = dict(found.by_category.items())
        curves[None] = found.ties
        ends = float(learned.min()), float(learned.max())
        self.curves_ = {
            name: quality_scale(curve.threshold, *ends, self.scale, self.tie_margin)
            for name, curve in curves.items()
        }
        self.facts_ |= {
            "penalty": found.penalty,
            "tie_penalty": found.tie_penalty,
            "weights": dict(zip(self.columns, self.weights_.tolist(), strict=True)),
            "tie_fade": found.ties.fade,
            "tie_log_odds": found.ties.at_zero,
            "tie_log_odds_by_category": {
                name: curve.at_zero for name, curve in found.by_category.items()
            },
        }
        return None

    def _quality(self, features: Floats) -> Floats:
        return weighted_rows(features - self.centre_, self.weights_)


def _above_query(answers: AnswerTable, values: Floats, usable: Bools) -> Floats:
    """Return each value above the mean of its query; 0 for rows that are not usable."""
    found = np.zeros(len(answers))
    for block in answers.blocks():
        own = usable[block.rows]
        if own.any():
            inside = values[block.rows]
            found[block.rows] = np.where(own, inside - inside[own].mean(), 0.0)
    return found


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
    first: Floats, second: Floats, outcomes: NDArray[np.int8], query_ids: Sequence[str]
) -> str | None:
    """Return why the votes cannot be learned from; `query_ids` are those of clusters."""
    decisive = int((outcomes != 0).sum())
    if decisive < FEWEST_DECISIVE:
        return f"{decisive} votes that are not ties; {FEWEST_DECISIVE} are needed"
    if len(set(query_ids)) < 2:
        return "all votes are on one query; 2 are needed"
    if not np.any(first != second):
        return "the judge gave both responses of every vote the same answers"
    return None
