"""How a run's scorer weighs items: the report shows no weight that the score does not use."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rocketeval.config import RunConfig
from rocketeval.report.data import Weights
from rocketeval.report.source import Floats
from rocketeval.stages.report.findings import Findings

_WEIGH_ALIKE = frozenset({"mean", "hard", "isotonic"})
_MEAN_WITHOUT_LABELS = frozenset({"extra_trees", "random_forest"})
"""Scorers whose queries are scored by the mean where they have no weights of their own."""
_LEARN_FROM_VOTES = frozenset({"pooled_logistic"})


@dataclass(frozen=True, slots=True)
class Weighing:
    """What is known of a scorer's weights."""

    weights: Weights
    learned_from: str
    """"labels", "votes" or nothing."""
    else_equal: bool
    """Whether items weigh the same on queries without learned weights."""

    def of_items(self, items: int, learned: list[float] | None) -> Floats | None:
        """Return the weight of each item of a query; None where there is none per item."""
        if learned is not None:
            return np.array(learned)
        return np.full(items, 1.0 / max(items, 1)) if self.else_equal else None


def weighing(findings: Findings, config: RunConfig) -> Weighing:
    """Return how the scorer of a run weighs items."""
    score = findings.stages.get("score", {})
    kind = score.get("scorer", config.scorer.kind)
    learned = score.get("learned") or {}
    if findings.weights:
        return Weighing("learned", _gold(kind, learned), kind in _MEAN_WITHOUT_LABELS)
    if learned.get("queries_by_mean"):
        # Without weights for any query, those by the mean are all there are.
        return Weighing("equal", "", else_equal=True)
    alike = kind in _WEIGH_ALIKE
    return Weighing("equal" if alike else "none", _gold(kind, learned), alike)


def _gold(kind: str, learned: dict[str, int]) -> str:
    if learned.get("votes"):
        return "votes"
    if learned.get("labels"):
        return "labels"
    if not learned:
        return ""
    # A scorer that was fitted elsewhere: its run counted the gold, not this one.
    return "votes" if kind in _LEARN_FROM_VOTES else "labels"
