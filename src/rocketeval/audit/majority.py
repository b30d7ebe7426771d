"""Agreement of several judges' majority with votes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.agreement import agreement_of_outcomes
from rocketeval.audit.ballots import find_voted
from rocketeval.audit.figures import Agreement
from rocketeval.grid import ScoreGrid
from rocketeval.outcomes import compare
from rocketeval.records import Vote

Floats = NDArray[np.float64]


def majority_agreement(
    grids: Sequence[ScoreGrid],
    votes: Sequence[Vote],
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Agreement:
    """How often the response that more judges score higher is the one the vote prefers.

    A judge without both scores abstains; as many for the one as for the other is a tie. The grids
    have the same queries and candidates.
    """
    known, row, a, b = find_voted(grids[0], votes)
    first, second = (np.stack([grid.scores[row, side] for grid in grids]) for side in (a, b))
    judged = (~np.isnan(first - second)).any(axis=0)
    return agreement_of_outcomes(
        [known[place] for place in np.flatnonzero(judged).tolist()],
        _majority(first, second, tie_margin)[judged],
        _majority(first, second, 0.0)[judged],
        votes=len(votes),
        bootstrap=bootstrap,
        seed=seed,
        level=level,
    )


def _majority(first: Floats, second: Floats, tie_margin: float) -> NDArray[np.int8]:
    """Of comparisons with one row a judge, the side that more of them prefer; ties do not count."""
    balance = compare(first, second, tie_margin).sum(axis=0, dtype=np.int64)
    outcome: NDArray[np.int8] = np.sign(balance).astype(np.int8)
    return outcome
