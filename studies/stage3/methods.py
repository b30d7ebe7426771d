"""The compared scoring methods, each with out-of-fold scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np

from rocketeval.config import ScorerConfig
from rocketeval.errors import ConfigError
from rocketeval.records import Gold
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import SCORERS, create_scorer
from rocketeval.scoring.learning import label_column
from stage3.design import Design, Floats


class Fits(Protocol):
    """The interface of a scorer in this study."""

    def fit(self, answers: AnswerTable, gold: Gold) -> Self: ...

    def predict(self, answers: AnswerTable) -> Floats: ...


@dataclass(frozen=True)
class Method:
    """One row of a table: a kind of scorer with its options."""

    name: str
    kind: str
    options: tuple[tuple[str, object], ...] = ()

    @property
    def available(self) -> bool:
        """Return whether this installation has it."""
        if self.kind in _LOCAL:
            return True
        try:
            SCORERS.get(self.kind)
        except (ImportError, ConfigError):
            return False
        return True

    def make(self, scale: tuple[float, float], seed: int, trees: int) -> Fits:
        """Return an unfitted scorer."""
        if self.kind in _LOCAL:
            return _LOCAL[self.kind](scale)
        forest = self.kind in ("extra_trees", "random_forest")
        options = {**dict(self.options), **({"trees": trees} if forest else {})}
        return create_scorer(ScorerConfig(kind=self.kind, scale=scale, seed=seed, options=options))


def out_of_fold(method: Method, design: Design, seed: int, trees: int) -> Floats:
    """Return a score for each response of the design by a fit that has not seen its label."""
    scores = np.full(len(design.answers), np.nan)
    for learned, held in design.splits():
        scorer = method.make(design.scale, seed, trees)
        scorer.fit(design.answers.take(learned), design.gold(learned))
        scores[held] = scorer.predict(design.answers.take(held))
    return scores


class ConstantScorer:
    """The mean label for every response: a baseline for the error."""

    def __init__(self, scale: tuple[float, float]) -> None:
        self.scale = scale

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        self.mean_ = float(np.mean([label.value for label in gold.labels]))
        return self

    def predict(self, answers: AnswerTable) -> Floats:
        return np.full(len(answers), self.mean_)


class StraightLineScorer:
    """The mean of the answers, mapped to the labels' level by a straight line."""

    def __init__(self, scale: tuple[float, float]) -> None:
        self.mean = create_scorer(ScorerConfig(scale=scale))
        self.scale = scale

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        labels, scores = label_column(answers, gold.labels, self.scale), self.mean.predict(answers)
        both = ~np.isnan(labels) & ~np.isnan(scores)
        self.slope_, self.intercept_ = np.polyfit(scores[both], labels[both], 1)
        return self

    def predict(self, answers: AnswerTable) -> Floats:
        return np.clip(self.slope_ * self.mean.predict(answers) + self.intercept_, *self.scale)


_LOCAL: dict[str, type[ConstantScorer | StraightLineScorer]] = {
    "constant": ConstantScorer,
    "straight_line": StraightLineScorer,
}

CONSTANT = Method("constant: the mean label", "constant")
MEAN = Method("mean", "mean")
STRAIGHT_LINE = Method("mean, straight line", "straight_line")
METHODS = (
    CONSTANT,
    MEAN,
    STRAIGHT_LINE,
    Method("mean, isotonic", "isotonic"),
    Method("Extra Trees, KL weight", "extra_trees", (("weight", "kl"),)),
    Method("Extra Trees alone", "extra_trees", (("weight", "none"),)),
    Method("random forest, KL weight", "random_forest", (("weight", "kl"),)),
    Method("pooled ridge", "pooled_ridge"),
)
