"""What each item of a query adds, for the report."""

from __future__ import annotations

from typing import Any

import numpy as np

from rocketeval.explain.verdicts import item_verdicts
from rocketeval.report.source import Floats

_DIGITS = 4


def figures_of(
    answers: Floats, scores: Floats, weights: Floats | None, *, learned: bool
) -> list[dict[str, Any]]:
    """Return the `ItemFigure`s of a query; `answers` has a row a candidate, as `scores`.

    `weights` is None where the scorer has none per item: influence is not known then.
    """
    items = answers.shape[1]
    shown = np.full(items, 1.0 / max(items, 1)) if weights is None else weights
    return [
        {
            "weight": round(float(weight), _DIGITS),
            "learned": learned,
            "mean": _short(found.mean),
            "spread": _short(found.spread),
            "correlation": _short(found.correlation),
            "influence": _short(found.influence),
            "verdict": found.verdict,
            "why": found.why,
        }
        for weight, found in zip(shown, item_verdicts(answers, scores, weights), strict=True)
    ]


def _short(number: float | None) -> float | None:
    return None if number is None else round(number, _DIGITS)
