"""The same responses scored in several ways: the judge, simpler scores, labels, and rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.ballots import Ballots, Hits, hits
from rocketeval.audit.baselines import LABEL_TIE_MARGIN, LABELER, on_scale, rule_hits
from rocketeval.grid import ScoreGrid

Floats = NDArray[np.float64]

JUDGE = "judge"


@dataclass(frozen=True, slots=True, eq=False)
class Scorings:
    """The same responses scored in several ways, laid out alike."""

    judged: Mapping[str, ScoreGrid]
    """The run's own scores first, then simpler ways to score the same answers."""
    lengths: ScoreGrid
    labels: Floats | None
    """Laid out like the grids, where the run has a score; None without labels."""
    scale: tuple[float, float]

    def hits(self, ballots: Ballots, tie_margin: float) -> dict[str, Hits]:
        """What every method, the guess included, makes of the votes."""
        found = {name: hits(ballots, own.scores, tie_margin) for name, own in self.judged.items()}
        if self.labels is not None:
            labeled = hits(ballots, self.labels, on_scale(LABEL_TIE_MARGIN, self.scale))
            if not np.isnan(labeled.with_ties).all():
                found[LABELER] = labeled
        return found | rule_hits(ballots, self.judged[JUDGE], self.lengths, tie_margin)


def merged_labels(grid: ScoreGrid, parts: Sequence[Floats]) -> Floats:
    """The labels of all parts, no response being in two, where the grid has a score."""
    merged = np.full(grid.scores.shape, np.nan)
    for cells in parts:
        merged = np.where(np.isnan(cells), merged, cells)
    return np.where(np.isnan(grid.scores), np.nan, merged)
