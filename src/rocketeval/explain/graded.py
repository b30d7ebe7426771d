"""What an explanation is made from: a run's answers, scores and ranking, as columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import StoreError
from rocketeval.records import Checklist, Query
from rocketeval.scoring.answers import AnswerTable

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Graded:
    """A scored and ranked run."""

    answers: AnswerTable
    scores: Floats
    """One per response; NaN where there is none."""
    judgments: Sequence[str | None]
    """The judgment's key of each response."""
    ranked: list[str]
    """Candidates, best first."""
    queries: Mapping[str, Query]
    checklists: Mapping[str, Checklist]
    weights: Mapping[str, Sequence[float]]
    """What a learned scorer gave each item of a query; absent for queries it learned nothing on."""
    scale: tuple[float, float] = (1.0, 10.0)

    def __post_init__(self) -> None:
        for query_id, weights in self.weights.items():
            checklist = self.checklists.get(query_id)
            if checklist is not None and len(checklist.items) != len(weights):
                raise StoreError(
                    f"item_weights.json has {len(weights)} weights for query {query_id!r}, whose "
                    f"checklist has {len(checklist.items)} items.",
                    hint="Run `rocketeval score` again.",
                )

    def weights_of(self, query_id: str, items: int) -> Floats:
        """The learned weights of a query's items, or else the same for each."""
        learned = self.weights.get(query_id)
        if learned is None:
            return np.full(items, 1.0 / max(items, 1))
        return np.array(learned, dtype=np.float64)
