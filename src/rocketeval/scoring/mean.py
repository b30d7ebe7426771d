"""Unsupervised scores: the mean of the answers, on the label scale."""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.config import NoOptions, ScorerConfig, parse_options
from rocketeval.errors import ArtifactError
from rocketeval.records import Gold
from rocketeval.scoring.answers import AnswerTable, sum_rows
from rocketeval.scoring.base import State


class MeanScorer:
    """`low + (high - low) * mean(p_yes)`.

    >>> table = AnswerTable(["q"], ["c"], np.array([1.0, 0.5]), np.array([0, 2]))
    >>> MeanScorer().predict(table)
    array([7.75])
    """

    def __init__(self, scale: tuple[float, float] = (1.0, 10.0), missing: str = "skip") -> None:
        self.scale = scale
        self.missing = missing

    @classmethod
    def create(cls, config: ScorerConfig) -> Self:
        """Return a scorer on the config's scale."""
        parse_options(config.options, NoOptions, "scorer.options")
        return cls(config.scale, config.missing)

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Return itself: there is nothing to learn."""
        return self

    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        """Return the mean answer of each response; NaN where no answer can be used."""
        answered = answers.answered
        usable = answered > 0 if self.missing == "skip" else answered == answers.items
        usable &= answers.items > 0
        totals = sum_rows(np.nan_to_num(self._values(answers.p_yes), nan=0.0), answers.offsets)
        mean = np.divide(totals, answered, out=np.full(len(answers), np.nan), where=usable)
        low, high = self.scale
        scores: NDArray[np.float64] = low + (high - low) * mean
        return scores

    def state(self) -> State:
        """Return nothing: nothing was learned."""
        return State({}, {})

    @classmethod
    def restore(cls, config: ScorerConfig, state: State) -> Self:
        """Return the scorer again; ArtifactError when something was learned after all."""
        if state.header or state.arrays:
            raise ArtifactError(f"The saved state is not that of a {config.kind} scorer.")
        return cls.create(config)

    def _values(self, p_yes: NDArray[np.float64]) -> NDArray[np.float64]:
        return p_yes


class HardMeanScorer(MeanScorer):
    """The share of items answered yes, ignoring how sure the judge was (the paper's ablation)."""

    def _values(self, p_yes: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.isnan(p_yes), np.nan, p_yes >= 0.5)
