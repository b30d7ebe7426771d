"""Selection of a scorer by cross-validation, with the one-standard-error rule.

Each scorer is cross-validated on the reference data; the first in the list within one standard
error of the best is chosen, so the mean stays unless another is better. It is then fitted on all
reference data. The cross-validated figure of the chosen one is optimistic; only nested
cross-validation gives an unbiased figure (`audit.compare_scorers`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from rocketeval.arrays import Floats
from rocketeval.config import ScorerConfig, Section, parse_options
from rocketeval.errors import ArtifactError, BenchmarkError, ConfigError
from rocketeval.grid import compare, vote_outcomes
from rocketeval.records import Gold
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import Learner, Saveable, State, create_scorer
from rocketeval.scoring.crossfit import gold_about, held_out_scores
from rocketeval.scoring.learning import TIE_MARGIN, label_column, read_reasons, reading_state

_ROUNDING = 1e-9
# Differences in the last bits must not separate two equal scorers.


@dataclass(frozen=True, eq=False)
class ScorerLosses:
    """Losses of one scorer on reference data, by query, or by cluster of queries."""

    totals: Floats
    """Sum of losses per query or cluster."""
    counts: Floats
    """Number of labels or votes with scores per query or cluster."""

    @property
    def mean(self) -> float:
        """Return the loss per label or vote; NaN without any."""
        whole = float(self.counts.sum())
        return float(self.totals.sum()) / whole if whole else float("nan")


def squared_errors(
    answers: AnswerTable, scores: Floats, gold: Gold, scale: tuple[float, float]
) -> ScorerLosses:
    """Return the squared errors of scores against labels."""
    errors = (scores - label_column(answers, gold.labels, scale)) ** 2
    return _by_cluster(answers, gold, answers.query_ids, errors)


def disagreements(
    answers: AnswerTable, scores: Floats, gold: Gold, tie_margin: float
) -> ScorerLosses:
    """Return a loss of 1 for each vote that the scores do not predict, ties included."""
    votes = gold.votes
    cells = zip(answers.query_ids, answers.candidates, strict=True)
    found = dict(zip(cells, scores.tolist(), strict=True))

    def side(candidates: Iterable[str]) -> Floats:
        pairs = zip((vote.query_id for vote in votes), candidates, strict=True)
        return np.array([found.get(pair, math.nan) for pair in pairs], dtype=np.float64)

    first = side(vote.candidate_a for vote in votes)
    second = side(vote.candidate_b for vote in votes)
    wrong = (compare(first, second, tie_margin) != vote_outcomes(votes)).astype(np.float64)
    losses = np.where(np.isnan(first - second), np.nan, wrong)
    return _by_cluster(answers, gold, [vote.query_id for vote in votes], losses)


def simplest_of_the_best(losses: Sequence[ScorerLosses]) -> int:
    """Return the index of the first scorer within one standard error of the best.

    The standard error is that of the difference between the two, clustered by query, or by cluster
    of queries: responses to one query are alike, and treating them as independent would make the
    error too small. With fewer than two queries or clusters, the first scorer is chosen.
    """
    means = np.array([found.mean for found in losses])
    if np.isnan(means).any():
        return 0
    best = losses[int(means.argmin())]
    return next(
        place
        for place, found in enumerate(losses)
        if found.mean - best.mean <= _standard_error(found, best) + _ROUNDING * best.mean
    )


def _standard_error(one: ScorerLosses, other: ScorerLosses) -> float:
    used = one.counts > 0
    queries = int(used.sum())
    if queries < 2:
        return float("inf")
    difference = (one.totals - other.totals)[used]
    excess = difference - difference.sum() / one.counts.sum() * one.counts[used]
    variance = queries / (queries - 1) * float(excess @ excess)
    return float(np.sqrt(variance) / one.counts.sum())


def _by_cluster(
    answers: AnswerTable, gold: Gold, query_ids: Sequence[str], losses: Floats
) -> ScorerLosses:
    """Return the losses, which are on these queries, by cluster of the answered queries."""
    own = {name: gold.cluster(name) for name in answers.query_ids}
    places = {name: place for place, name in enumerate(dict.fromkeys(own.values()))}
    there = np.array([query_id in own for query_id in query_ids], dtype=np.bool_)
    there &= ~np.isnan(losses)
    place: NDArray[np.intp] = np.array(
        [places[own[query_id]] for query_id, use in zip(query_ids, there, strict=True) if use],
        dtype=np.intp,
    )
    size = len(places)
    counts = np.bincount(place, minlength=size).astype(np.float64)
    totals = np.bincount(place, weights=losses[there], minlength=size).astype(np.float64)
    return ScorerLosses(totals, counts)


DEFAULTS = {
    "labels": ("mean", "isotonic", "pooled_ridge", "extra_trees"),
    "votes": ("mean", "pooled_logistic"),
}
"""Default choices by training data; simpler ones first."""


class SelectOptions(Section):
    """Settings of the selection."""

    among: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Kinds of scorers, simpler ones first; by default those for `learn_from`."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options by kind."""


class SelectScorer:
    """A scorer selected from several by cross-validation."""

    def __init__(self, config: ScorerConfig | None = None) -> None:
        self.config = config or ScorerConfig(kind="select")

    @classmethod
    def create(cls, config: ScorerConfig) -> Self:
        """Return an unfitted scorer; raise ConfigError if one of the choices is invalid."""
        for choice in choices(config):
            create_scorer(choice)
        return cls(config)

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Choose by cross-validation, then fit on all reference data."""
        listed = choices(self.config)
        known = gold_about(answers, gold, self.config.learn_from)
        place, self.losses_, reason = _compare(self.config, listed, answers, known)
        self.chosen_ = listed[place].kind
        self.scorer_ = create_scorer(listed[place]).fit(answers, known)
        self.fallbacks_ = {}
        if not isinstance(self.scorer_, Learner):
            self.fallbacks_ = dict.fromkeys(dict.fromkeys(answers.query_ids), reason)
        return self

    def predict(self, answers: AnswerTable) -> Floats:
        """Return the chosen scorer's scores."""
        return self.scorer_.predict(answers)

    def fallbacks(self) -> Mapping[str, str]:
        """Return the chosen scorer's fallbacks; all queries if it does not learn."""
        if isinstance(self.scorer_, Learner):
            return self.scorer_.fallbacks()
        return dict(self.fallbacks_)

    def item_weights(self) -> Mapping[str, Floats]:
        """Return the chosen scorer's item weights."""
        return self.scorer_.item_weights() if isinstance(self.scorer_, Learner) else {}

    def state(self) -> State:
        """Return the choice, the losses and the chosen scorer's state."""
        if not isinstance(self.scorer_, Saveable):
            raise ArtifactError(
                f"The chosen scorer {self.chosen_!r} cannot be saved.",
                hint="Its class needs `state` and `restore`; or remove it from `among`.",
            )
        inner = self.scorer_.state()
        header = {
            "chosen": self.chosen_,
            "losses": self.losses_,
            "fallbacks": self.fallbacks_,
            "inner": dict(inner.header),
        }
        return State(header, inner.arrays)

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Self:
        """Restore the fitted scorer."""
        scorer = cls.create(config)
        with reading_state(config.kind):
            listed = {choice.kind: choice for choice in choices(config)}
            chosen = listed[state.header["chosen"]]
            scorer.losses_ = {str(k): float(v) for k, v in state.header["losses"].items()}
            scorer.fallbacks_ = read_reasons(state.header["fallbacks"])
            inner = State(dict(state.header["inner"]), state.arrays)
        scorer.chosen_ = chosen.kind
        kind = type(create_scorer(chosen))
        if not issubclass(kind, Saveable):
            raise ArtifactError(f"A scorer of kind {chosen.kind!r} cannot be restored.")
        scorer.scorer_ = kind.restore(chosen, inner)
        return scorer


def choices(config: ScorerConfig) -> list[ScorerConfig]:
    """Return the configs of the scorers to choose from, simpler ones first."""
    options = parse_options(config.options, SelectOptions, "scorer.options")
    among = options.among or DEFAULTS[config.learn_from]
    problem = None
    if "select" in among:
        problem = "`select` cannot choose itself"
    elif len(set(among)) < len(among):
        problem = "a scorer is named twice"
    elif not set(options.settings) <= set(among):
        unused = sorted(set(options.settings) - set(among))
        problem = f"`settings` has kinds that are not in `among`: {', '.join(unused)}"
    if problem:
        raise ConfigError(
            f"scorer.options has a mistake: {problem}.", hint=f"Among: {', '.join(among)}."
        )
    return [
        config.model_copy(update={"kind": kind, "options": options.settings.get(kind, {})})
        for kind in among
    ]


def _compare(
    config: ScorerConfig, listed: list[ScorerConfig], answers: AnswerTable, gold: Gold
) -> tuple[int, dict[str, float], str]:
    """Return the index of the choice, the losses by kind, and the reason."""
    if len(listed) == 1:
        return 0, {}, "only one scorer to choose from"
    try:
        found = [_losses(config, choice, answers, gold) for choice in listed]
    except BenchmarkError as error:
        return 0, {}, error.message
    if any(math.isnan(loss.mean) for loss in found):
        return 0, {}, f"none of the {config.learn_from} is on a scored response"
    place = simplest_of_the_best(found)
    means = {choice.kind: loss.mean for choice, loss in zip(listed, found, strict=True)}
    return (
        place,
        means,
        f"no other of {len(listed)} scorers is better by more than a standard error",
    )


def _losses(
    config: ScorerConfig, choice: ScorerConfig, answers: AnswerTable, gold: Gold
) -> ScorerLosses:
    scores = held_out_scores(choice, answers, gold).scores
    if config.learn_from == "labels":
        return squared_errors(answers, scores, gold, config.scale)
    margin = TIE_MARGIN if config.tie_margin is None else config.tie_margin
    return disagreements(answers, scores, gold, margin)
