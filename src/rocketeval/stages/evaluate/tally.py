"""Decisions summed up: what each response comes to, who decided, and how sure they were."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rocketeval.evolve.cases import Floats
from rocketeval.evolve.described import DescribedRun
from rocketeval.stages.evaluate.decide import Decided

BINS = 20
"""Of the histogram of confidence."""
Row = tuple[str, str]
"""A query and a candidate."""


class Tally:
    """Counts decisions as they come."""

    def __init__(self, experts: int, threshold: float | None) -> None:
        self.threshold = threshold
        self.cases = self.undecided = self.to_person = 0
        self.experts: dict[str, int] = {}
        """Who judged each query."""
        self._experts = np.zeros(experts, dtype=np.int64)
        self._edges = np.arange(BINS + 1) / BINS
        self._bins: NDArray[np.int64] = np.zeros(BINS, dtype=np.int64)
        self._sums: defaultdict[Row, float] = defaultdict(float)
        self._counts: Counter[Row] = Counter()

    def add(self, part: Decided) -> Decided:
        """Count a part; return it."""
        said = part.said
        self.cases += len(said)
        self.undecided += part.silent
        self._experts += np.bincount(said.expert, minlength=len(self._experts))
        self._bins += np.histogram(said.confidence, self._edges)[0]
        if self.threshold is not None:
            self.to_person += int((said.confidence < self.threshold).sum())
        self.experts.update(
            zip((case.query_id for case in part.cases), said.expert.tolist(), strict=True)
        )
        for case, credits in zip(part.cases, _credits(part), strict=True):
            for candidate, credit in zip(case.candidates, credits, strict=True):
                self._sums[case.query_id, candidate] += credit
                self._counts[case.query_id, candidate] += 1
        return part

    def means(self, rows: Sequence[Row]) -> Floats:
        """Return the value of each response, or of pairs its mean share of wins; NaN without any.

        A tie is half a win, and outcomes count as far as they are likely.
        """
        return np.array(
            [self._sums[row] / self._counts[row] if self._counts[row] else np.nan for row in rows]
        )

    def run(self) -> DescribedRun:
        """Return what the evaluator did in this run."""
        return {
            "cases": self.cases,
            "by_expert": self._experts.tolist(),
            "confidence": {"edges": self._edges.tolist(), "counts": self._bins.tolist()},
            "threshold": self.threshold,
            "to_person": self.to_person,
        }


def _credits(part: Decided) -> list[tuple[float, ...]]:
    """Return what each decision is worth for the responses it is about."""
    said = part.said
    if said.probabilities is None:
        assert said.values is not None
        return [(value,) for value in said.values.tolist()]
    return [(a + tie / 2.0, b + tie / 2.0) for b, tie, a in said.probabilities.tolist()]
