"""Every two candidates held against each other, for the report."""

from __future__ import annotations

from typing import Any

from rocketeval.certainty.all_pairs import compare_all
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import Ranking
from rocketeval.report.source import known
from rocketeval.stages.report.cells import Cells


def pairs_block(cells: Cells, ranking: Ranking) -> dict[str, Any] | None:
    """Return the comparisons of the first candidates; None for fewer than two ranked ones."""
    if len(ranking.rows) < 2:
        return None
    ranked = len(ranking.rows)
    # The ranking keeps its candidates' order in the head; those without a score come after.
    grid = ScoreGrid(cells.query_ids, cells.candidates[:ranked], cells.scores[:, :ranked])
    found = compare_all(
        grid,
        tie_margin=ranking.tie_margin,
        bootstrap=ranking.bootstrap,
        seed=ranking.seed,
        level=ranking.level,
    )
    return {
        "first": found.first,
        "effect": known(found.effect),
        "low": known(found.low),
        "high": known(found.high),
        "p_value": known(found.p_value),
        "wins": found.wins.tolist(),
        "ties": found.ties.tolist(),
        "losses": found.losses.tolist(),
        "verdict": [str(verdict) for verdict in found.verdict],
        "how": (
            "Mean difference of the two candidates' scores over the queries that both have one on. "
            f"The interval holds {ranking.level:.0%} of {ranking.bootstrap} resamples of the "
            "queries; the p-value is from flipped signs. Better or worse needs an interval without "
            f"zero and a p-value of at most {1 - ranking.level:.2g}. A query is won by "
            f"{ranking.tie_margin:g} points or more. "
            "Pairs are not corrected for how many there are."
        ),
    }
