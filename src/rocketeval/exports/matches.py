"""Battles as arenas keep them: two candidates, one query, who wins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from rocketeval.grid import ScoreGrid
from rocketeval.outcomes import compare

_WINNER = {1: "model_a", 0: "tie", -1: "model_b"}


def match_rows(
    grid: ScoreGrid, tie_margin: float, judge: str, turns: Mapping[str, int]
) -> Iterator[dict[str, Any]]:
    """Yield every pair of scored responses to one query, in the shape of MT-Bench's votes.

    A difference below the tie margin is a tie: the comparisons are those the ranking rests on.

    >>> grid = ScoreGrid.from_columns(["q", "q"], ["a", "b"], [7.0, 3.5])
    >>> next(match_rows(grid, 0.1, "judge", {"q": 1}))["winner"]
    'model_a'
    """
    for query_id, scores in zip(grid.query_ids, grid.scores, strict=True):
        present = np.flatnonzero(~np.isnan(scores))
        firsts, seconds = (present[places] for places in np.triu_indices(len(present), k=1))
        winners = compare(scores[firsts], scores[seconds], tie_margin).tolist()
        for first, second, winner in zip(firsts.tolist(), seconds.tolist(), winners, strict=True):
            yield {
                "question_id": query_id,
                "model_a": grid.candidates[first],
                "model_b": grid.candidates[second],
                "winner": _WINNER[winner],
                "judge": judge,
                "turn": turns.get(query_id, 1),
                "score_a": float(scores[first]),
                "score_b": float(scores[second]),
            }


def unmade_pairs(grid: ScoreGrid) -> int:
    """Return how many pairs have no match because a score is missing."""
    candidates = len(grid.candidates)
    present = (~np.isnan(grid.scores)).sum(axis=1)
    possible = len(grid.query_ids) * candidates * (candidates - 1) // 2
    return int(possible - (present * (present - 1) // 2).sum())
