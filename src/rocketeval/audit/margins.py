"""Agreement with votes by other tie margins than the run's own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rocketeval.audit.ballots import Ballots
from rocketeval.audit.baselines import on_scale
from rocketeval.grid import ScoreGrid
from rocketeval.outcomes import compare
from rocketeval.records import Interval

MARGINS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Tie margins that are tried beside the run's own, on a scale from 1 to 10."""


@dataclass(frozen=True, slots=True)
class MarginAgreement:
    """Agreement with votes by one tie margin."""

    margin: float
    with_ties: Interval | None
    ties: float | None
    """Share of the votes' comparisons that it makes a tie; None without usable votes."""


def tried_margins(used: float, scale: tuple[float, float]) -> list[float]:
    """The run's own margin and those tried beside it, on the scale of the scores."""
    return sorted({used, *(round(on_scale(margin, scale), 6) for margin in MARGINS)})


def share_of_ties(grid: ScoreGrid, ballots: Ballots, margin: float) -> float | None:
    """The share of the votes' comparisons that the margin makes a tie."""
    first = grid.scores[ballots.rows, ballots.first]
    second = grid.scores[ballots.rows, ballots.second]
    scored = ~np.isnan(first - second)
    if not scored.any():
        return None
    return float((compare(first, second, margin)[scored] == 0).mean())
