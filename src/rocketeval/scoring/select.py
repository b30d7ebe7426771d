"""The scorer that predicts left-out gold best, chosen among several, the simplest first.

Each is cross-validated on the gold; the first in the list that is not worse than the best by more
than one standard error is taken, so the mean stays unless another is clearly better. It is then
fitted to all the gold. What cross-validation said about the chosen one flatters it: how good such a
choice really is, only a choice within each outer fold can tell (`audit.selection`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Self

from pydantic import Field

from rocketeval.config import ScorerConfig, Section, parse_options
from rocketeval.errors import ArtifactError, BenchmarkError, ConfigError
from rocketeval.records import Gold
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import Learner, Saveable, State, create_scorer
from rocketeval.scoring.features import Floats
from rocketeval.scoring.held_out import gold_about, held_out_scores
from rocketeval.scoring.learning import TIE_MARGIN, read_reasons, reading_state
from rocketeval.scoring.losses import Losses, disagreements, simplest_of_the_best, squared_errors

DEFAULTS = {
    "labels": ("mean", "isotonic", "pooled_ridge", "extra_trees"),
    "votes": ("mean", "pooled_logistic"),
}
"""What is chosen among, by what is learned from; simpler ones first."""


class SelectOptions(Section):
    """Settings of the choice."""

    among: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    """Kinds of scorers, simpler ones first; what suits `learn_from` when absent."""
    settings: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Options of each kind, by its name."""


class SelectScorer:
    """Whichever of several scorers predicts left-out gold best."""

    def __init__(self, config: ScorerConfig | None = None) -> None:
        self.config = config or ScorerConfig(kind="select")

    @classmethod
    def create(cls, config: ScorerConfig) -> Self:
        """Return an unfitted scorer; ConfigError when one of those to choose among is wrong."""
        for choice in choices(config):
            create_scorer(choice)
        return cls(config)

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Choose by cross-validation, then learn from all the gold."""
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
        """Return the chosen scorer's fallbacks; every query when it learns nothing."""
        if isinstance(self.scorer_, Learner):
            return self.scorer_.fallbacks()
        return dict(self.fallbacks_)

    def item_weights(self) -> Mapping[str, Floats]:
        """Return the chosen scorer's item weights."""
        return self.scorer_.item_weights() if isinstance(self.scorer_, Learner) else {}

    def state(self) -> State:
        """Return which was chosen, why, and what it learned."""
        if not isinstance(self.scorer_, Saveable):
            raise ArtifactError(
                f"The chosen scorer {self.chosen_!r} cannot be saved.",
                hint="Its class needs `state` and `restore`; or leave it out of `among`.",
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
        """Return the fitted scorer again."""
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
            raise ArtifactError(f"A scorer of kind {chosen.kind!r} cannot be read back.")
        scorer.scorer_ = kind.restore(chosen, inner)
        return scorer


def choices(config: ScorerConfig) -> list[ScorerConfig]:
    """Return the configs of the scorers to choose among, simpler ones first."""
    options = parse_options(config.options, SelectOptions, "scorer.options")
    among = options.among or DEFAULTS[config.learn_from]
    problem = None
    if "select" in among:
        problem = "`select` cannot choose itself"
    elif len(set(among)) < len(among):
        problem = "a scorer is named twice"
    elif not set(options.settings) <= set(among):
        unused = sorted(set(options.settings) - set(among))
        problem = f"`settings` names what is not in `among`: {', '.join(unused)}"
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
    """Return which to take, each one's loss on left-out gold, and why in words."""
    if len(listed) == 1:
        return 0, {}, "nothing to choose among"
    try:
        found = [_losses(config, choice, answers, gold) for choice in listed]
    except BenchmarkError as error:
        return 0, {}, error.message
    if any(math.isnan(loss.mean) for loss in found):
        return 0, {}, f"none of the {config.learn_from} is about a response with a score"
    place = simplest_of_the_best(found)
    means = {choice.kind: loss.mean for choice, loss in zip(listed, found, strict=True)}
    return (
        place,
        means,
        f"no other of {len(listed)} scorers is better by more than a standard error",
    )


def _losses(config: ScorerConfig, choice: ScorerConfig, answers: AnswerTable, gold: Gold) -> Losses:
    scores = held_out_scores(choice, answers, gold).scores
    if config.learn_from == "labels":
        return squared_errors(answers, scores, gold, config.scale)
    margin = TIE_MARGIN if config.tie_margin is None else config.tie_margin
    return disagreements(answers, scores, gold.votes, margin)
