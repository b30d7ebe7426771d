"""What each item of a query adds, for the report."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rocketeval.explain.verdicts import item_verdicts
from rocketeval.report.source import Floats

_DIGITS = 4


def figures_of(
    answers: Floats, scores: Floats, learned: Sequence[float] | None
) -> list[dict[str, Any]]:
    """Return the `ItemFigure`s of a query; `answers` has a row a candidate, as `scores`."""
    items = answers.shape[1]
    weights = np.full(items, 1.0 / max(items, 1)) if learned is None else np.array(learned)
    return [
        {
            "weight": round(float(weight), _DIGITS),
            "learned": learned is not None,
            "mean": _short(found.mean),
            "spread": _short(found.spread),
            "correlation": _short(found.correlation),
            "influence": _short(found.influence),
            "verdict": found.verdict,
            "why": found.why,
        }
        for weight, found in zip(weights, item_verdicts(answers, scores, weights), strict=True)
    ]


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, _DIGITS)
