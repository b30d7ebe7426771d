"""The leaderboard's lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from rocketeval.ranking.rank import RankedCandidate, Ranking
from rocketeval.report.data import Candidate
from rocketeval.stages.report.cells import Cells
from rocketeval.stages.report.spread import quantiles
from rocketeval.store.run import RunStore


def candidates(
    ranking: Ranking, store: RunStore, labels: Mapping[str, float], cells: Cells
) -> Iterator[Candidate]:
    """Yield the lines of the leaderboard: ranked ones first, best first."""
    ratings = {rating.candidate: rating.value for rating in store.inputs.ratings()}
    spreads = dict(zip(cells.candidates, quantiles(cells.scores), strict=True))
    for row in ranking.rows:
        made = _ranked(row, labels.get(row.candidate), ratings.get(row.candidate))
        yield replace(made, quantiles=spreads.get(row.candidate))
    for name in ranking.unranked:
        yield replace(
            unranked(name, len(cells.query_ids)),
            label=labels.get(name),
            reference=ratings.get(name),
        )


def unranked(name: str, queries: int) -> Candidate:
    """Return the line of a candidate without any score."""
    return Candidate(
        name=name,
        rank=None,
        rank_low=None,
        rank_high=None,
        group=None,
        beats_next=None,
        rating=None,
        score=None,
        queries=0,
        missing=queries,
        label=None,
        reference=None,
    )


def _ranked(row: RankedCandidate, label: float | None, reference: float | None) -> Candidate:
    return Candidate(
        name=row.candidate,
        rank=row.rank,
        rank_low=row.rank_low,
        rank_high=row.rank_high,
        group=row.group,
        beats_next=row.beats_next,
        rating=row.rating,
        score=row.mean_score,
        queries=row.queries,
        missing=row.missing,
        label=label,
        reference=reference,
    )
