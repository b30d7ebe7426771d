"""The parts of a report that say why: wins, losses and what each item adds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from rocketeval.explain.items import item_figures
from rocketeval.ranking.rank import Ranking
from rocketeval.report.data import (
    ReportExplained,
    ReportItem,
    ReportLoss,
    ReportResponse,
    ReportWins,
)
from rocketeval.stages.report_figures import read_interval

MOST_IN_TABLE = 30
"""Candidates in the table of wins."""
MOST_EXPLAINED = 200
"""Candidates whose losses are on the page."""
MOST_LOSSES = 5


def wins(ranking: Ranking) -> ReportWins | None:
    """Return the top of the table of wins; None when the ranking has none."""
    if ranking.wins is None:
        return None
    top = slice(MOST_IN_TABLE)
    return ReportWins(
        candidates=ranking.wins.candidates[top],
        shares=tuple(row[top] for row in ranking.wins.shares[top]),
        left_out=len(ranking.wins.candidates[MOST_IN_TABLE:]),
    )


def explained(found: Mapping[str, Any] | None) -> tuple[ReportExplained, ...]:
    """Return the losses of the first candidates from explain.json; empty when it was not made."""
    candidates = [] if found is None else found["candidates"][:MOST_EXPLAINED]
    return tuple(
        ReportExplained(
            candidate=one["candidate"],
            place=one["place"],
            points=read_interval(one["overall"]["points"]) if one["overall"] else None,
            losses=tuple(map(_loss, one["losses"][:MOST_LOSSES])),
        )
        for one in candidates
    )


def report_items(
    texts: Sequence[str], responses: Sequence[ReportResponse], learned: Sequence[float] | None
) -> tuple[ReportItem, ...]:
    """Return what each item of a query adds, from the responses that the page shows."""
    p_yes = np.full((len(responses), len(texts)), np.nan)
    for row, response in enumerate(responses):
        given = [np.nan if answer.p_yes is None else answer.p_yes for answer in response.answers]
        p_yes[row, : len(given)] = given
    scores = np.array([np.nan if one.score is None else one.score for one in responses])
    return tuple(
        ReportItem(
            weight=item.equal_weight if item.learned_weight is None else item.learned_weight,
            learned=item.learned_weight is not None,
            mean=item.mean,
            spread=item.spread,
            correlation=item.discrimination,
            dead=item.dead,
        )
        for item in item_figures(texts, p_yes, scores, learned)
    )


def _loss(found: Mapping[str, Any]) -> ReportLoss:
    names = ("query_id", "item", "text", "p_yes", "neighbours_p_yes", "points")
    return ReportLoss(**{name: found[name] for name in names})
