"""The scorer seam, as in scikit-learn: the constructor stores, `fit` learns, `predict` is pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from rocketeval.config import ScorerConfig
from rocketeval.records import Gold
from rocketeval.registry import Registry
from rocketeval.scoring.answers import AnswerTable


class Scorer(Protocol):
    """Gives each response of an answer table a score on the label scale."""

    @classmethod
    def create(cls, config: ScorerConfig) -> Scorer:
        """Return an unfitted scorer."""
        ...

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Learn from the labels or votes of `gold`; without anything to learn, return itself.

        Gold about responses that are not in `answers` is left alone.
        """
        ...

    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        """Return one score per response; NaN where there is none.

        A query's scores rest on the fit and on that query's answers: large runs come in parts.
        """
        ...


@runtime_checkable
class Learner(Protocol):
    """What a scorer that learns can say after `fit`."""

    def fallbacks(self) -> Mapping[str, str]:
        """Return the queries that are scored by the mean after all, each with the reason."""
        ...

    def item_weights(self) -> Mapping[str, NDArray[np.float64]]:
        """Return, for each query with weights of its own, one per item; their sizes sum to one.

        A weight is negative where a yes lowers the score.
        """
        ...


@dataclass(frozen=True)
class State:
    """A fitted scorer as plain data."""

    header: Mapping[str, Any]
    """Whatever JSON can hold."""
    arrays: Mapping[str, NDArray[Any]]
    """Numbers and strings; never objects."""


@runtime_checkable
class Saveable(Protocol):
    """A scorer whose fit can be written to a file and read back."""

    def state(self) -> State:
        """Return what `fit` learned."""
        ...

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Scorer:
        """Return the fitted scorer again; ArtifactError when the state cannot be one of its own."""
        ...


SCORERS: Registry[Scorer] = Registry(
    "scorer",
    {
        "mean": "rocketeval.scoring.mean:MeanScorer",
        "hard": "rocketeval.scoring.mean:HardMeanScorer",
        "extra_trees": "rocketeval.scoring.per_query:ExtraTreesScorer",
        "random_forest": "rocketeval.scoring.per_query:RandomForestScorer",
        "pooled_ridge": "rocketeval.scoring.pooled_ridge:PooledRidgeScorer",
        "pooled_logistic": "rocketeval.scoring.pooled_logistic:PooledLogisticScorer",
        "isotonic": "rocketeval.scoring.isotonic:IsotonicScorer",
        "select": "rocketeval.scoring.select:SelectScorer",
    },
)


def create_scorer(config: ScorerConfig) -> Scorer:
    """Return the scorer that `config` names."""
    return SCORERS.get(config.kind).create(config)
