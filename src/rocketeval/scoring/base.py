"""The scorer seam, as in scikit-learn: the constructor stores, `fit` learns, `predict` is pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.config import ScorerConfig
from rocketeval.records import Label
from rocketeval.registry import Registry


@dataclass(frozen=True)
class AnswerTable:
    """Answers of many judgments, column by column, sorted by query and candidate.

    The answers of response `i` are `p_yes[offsets[i]:offsets[i + 1]]`; NaN is a missing answer.
    All responses to one query are in the same table.
    """

    query_ids: Sequence[str]
    candidates: Sequence[str]
    p_yes: NDArray[np.float64]
    offsets: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def items(self) -> NDArray[np.int64]:
        """How many items each response was asked about."""
        return np.diff(self.offsets)

    @property
    def answered(self) -> NDArray[np.int64]:
        """How many of them have a probability."""
        return sum_rows(~np.isnan(self.p_yes), self.offsets).astype(np.int64)


class Scorer(Protocol):
    """Gives each response of an answer table a score on the label scale."""

    @classmethod
    def create(cls, config: ScorerConfig) -> Scorer:
        """Return an unfitted scorer."""
        ...

    def fit(self, answers: AnswerTable, labels: Sequence[Label]) -> Self:
        """Learn from labels; scorers without anything to learn return themselves."""
        ...

    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        """Return one score per response; NaN where there is none."""
        ...


SCORERS: Registry[Scorer] = Registry(
    "scorer",
    {
        "mean": "rocketeval.scoring.mean:MeanScorer",
        "hard": "rocketeval.scoring.mean:HardMeanScorer",
    },
)


def create_scorer(config: ScorerConfig) -> Scorer:
    """Return the scorer that `config` names."""
    return SCORERS.get(config.kind).create(config)


def sum_rows(values: NDArray[np.generic], offsets: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the sum of each row's values; a row's sum depends on that row alone."""
    totals = np.zeros(len(offsets) - 1)
    filled = np.diff(offsets) > 0
    if filled.any():
        totals[filled] = np.add.reduceat(values.astype(np.float64), offsets[:-1][filled])
    return totals
