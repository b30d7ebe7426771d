"""What agreement is worth nothing: scores that never read a response.

Each baseline covers exactly the cells that the audited grid covers, so that both meet the same
votes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from rocketeval.audit.ballots import Ballots, Hits, hits
from rocketeval.audit.figures import Agreement
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval, Vote

LENGTH_TIE_MARGIN = 0.0
"""Lengths are not on the score scale: only equal lengths tie."""
LABEL_TIE_MARGIN = 0.1
"""Labels closer than this, on a scale from 1 to 10, are a tie."""

LONGER, TIE, GUESS = "longer response", "always a tie", "random guess"
KNOW_NOTHING = (LONGER, TIE, GUESS)
"""Baselines that never read a response."""
LABELER = "labeler"
"""Labels, where there are any, read as scores."""


def length_grid(grid: ScoreGrid, lengths: Mapping[tuple[str, str], float]) -> ScoreGrid:
    """The same cells scored by response length, looked up by (query id, candidate).

    Use with `LENGTH_TIE_MARGIN`. A cell without a length is missing.
    """
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    scores = np.full(grid.scores.shape, np.nan)
    for (query, candidate), length in lengths.items():
        if query in rows and candidate in columns:
            scores[rows[query], columns[candidate]] = length
    same_cells = np.where(np.isnan(grid.scores), np.nan, scores)
    return ScoreGrid(grid.query_ids, grid.candidates, same_cells)


def always_tie_grid(grid: ScoreGrid) -> ScoreGrid:
    """The same cells with one score for all: it predicts a tie for every vote."""
    constant = np.where(np.isnan(grid.scores), np.nan, 0.0)
    return ScoreGrid(grid.query_ids, grid.candidates, constant)


def random_agreement(votes: Sequence[Vote], given: int | None = None) -> Agreement:
    """What a fair three-way guess agrees with, exactly: a third with ties, a half without.

    An expectation, not a sample: its intervals have no width. `votes` are those that can be used of
    all that were `given`, where these are more.
    """
    given = len(votes) if given is None else given
    decisive = sum(vote.winner != "tie" for vote in votes)
    third, half = 1.0 / 3.0, 0.5
    return Agreement(
        with_ties=Interval(third, third, third) if votes else None,
        without_ties=Interval(half, half, half) if decisive else None,
        votes=given,
        used=len(votes),
        decisive=decisive,
        unusable=given - len(votes),
    )


def guess_hits(ballots: Ballots) -> Hits:
    """What a fair three-way guess may expect of each vote."""
    decided = ballots.voted != 0
    return Hits(np.full(len(decided), 1.0 / 3.0), np.where(decided, 0.5, np.nan))


def rule_hits(
    ballots: Ballots, grid: ScoreGrid, longer: ScoreGrid, tie_margin: float
) -> dict[str, Hits]:
    """What each rule that reads nothing makes of the votes; `longer` is a `length_grid`."""
    return {
        LONGER: hits(ballots, longer.scores, LENGTH_TIE_MARGIN),
        TIE: hits(ballots, always_tie_grid(grid).scores, tie_margin),
        GUESS: guess_hits(ballots),
    }


def on_scale(margin: float, scale: tuple[float, float]) -> float:
    """A margin meant for a scale from 1 to 10, on another scale.

    >>> on_scale(0.9, (0.0, 1.0))
    0.1
    """
    low, high = scale
    return margin * (high - low) / 9.0
