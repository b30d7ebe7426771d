"""Where a candidate loses against its neighbours in the ranking, and where it gains.

Compared are the `neighbours` nearest candidates by rank that have a score on the query. An item's
gap is the neighbours' mean `p_yes` less the candidate's own; times the item's weight and the width
of the scale it is what the item costs in points of the query's score (exactly so for the mean;
a learned scorer is not a weighted sum, and there it is a measure of importance).
A single item's gap is one observation and has no interval. Sums over queries have one, from
resampled queries with the neighbours held fixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.explain.categories import CategoryGap, gaps_by_category
from rocketeval.explain.gaps import Gaps, find_gaps
from rocketeval.explain.graded import Graded

Ints = NDArray[np.int64]

NEIGHBOURS = 4
"""How many candidates one is compared with, where the ranking has as many."""


@dataclass(frozen=True, slots=True)
class NeighbourAnswer:
    """What a neighbour got for the same item."""

    candidate: str
    p_yes: float | None


@dataclass(frozen=True, slots=True)
class ItemGap:
    """One item that a candidate answers worse, or better, than its neighbours."""

    query_id: str
    item: int
    """Its number in the checklist, from 1."""
    text: str
    p_yes: float
    neighbours_p_yes: float
    """The mean over the neighbours that have an answer."""
    neighbours: tuple[NeighbourAnswer, ...]
    """By rank, best first."""
    weight: float
    """The item's part in the query's score."""
    points: float
    """What it costs on the query's score, on the label scale; negative if it gains."""
    score: float
    """The response's score."""
    judgment: str | None
    """Key of the judgment in the ledger."""


@dataclass(frozen=True, slots=True)
class CandidateExplanation:
    """Where one candidate loses and gains against its neighbours in the ranking."""

    candidate: str
    place: int
    """Row of the ranking, from 1."""
    losses: tuple[ItemGap, ...]
    """Items that cost it most, largest first."""
    strengths: tuple[ItemGap, ...]
    """Items that gain it most, largest first."""
    overall: CategoryGap | None
    """Points lost a query; None when nothing could be compared."""
    categories: tuple[CategoryGap, ...]
    """The same by category, largest loss first; empty when queries have none."""
    compared: int
    """Answers that could be held against a neighbour's."""
    not_compared: int
    """Answers that could not: its own is missing, or nobody else's is there."""


def explain_candidates(
    graded: Graded,
    candidates: Sequence[str],
    *,
    most: int,
    neighbours: int = NEIGHBOURS,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> list[CandidateExplanation]:
    """Explain some ranked candidates, with the `most` largest losses and strengths of each."""
    gaps = find_gaps(graded, neighbours)
    summary = gaps_by_category(
        graded, gaps, candidates, bootstrap=bootstrap, seed=seed, level=level
    )
    places = {name: place for place, name in enumerate(graded.ranked, start=1)}
    found = []
    for name, rows in _rows_of(graded, candidates):
        cells = _cells(graded.answers.offsets, rows)
        known = cells[~np.isnan(gaps.points[cells])]
        order = known[np.argsort(-gaps.points[known], kind="stable")]
        best = order[::-1][:most]
        overall, categories = summary[name]
        found.append(
            CandidateExplanation(
                candidate=name,
                place=places[name],
                losses=_traced(graded, gaps, order[:most][gaps.points[order[:most]] > 0.0]),
                strengths=_traced(graded, gaps, best[gaps.points[best] < 0.0]),
                overall=overall,
                categories=categories,
                compared=len(known),
                not_compared=len(cells) - len(known),
            )
        )
    return found


def _rows_of(graded: Graded, candidates: Sequence[str]) -> Iterator[tuple[str, Ints]]:
    """Each candidate's rows of the answer table, in query order."""
    codes = {name: code for code, name in enumerate(candidates)}
    named = np.array([codes.get(name, -1) for name in graded.answers.candidates])
    by_candidate = np.argsort(named, kind="stable")
    ends = np.searchsorted(named[by_candidate], np.arange(len(candidates) + 1))
    for code, name in enumerate(candidates):
        yield name, by_candidate[ends[code] : ends[code + 1]]


def _cells(offsets: Ints, rows: Ints) -> Ints:
    """Places in `p_yes` of all answers of some rows."""
    lengths = offsets[rows + 1] - offsets[rows]
    before = np.cumsum(lengths) - lengths
    cells: Ints = np.arange(lengths.sum()) + np.repeat(offsets[rows] - before, lengths)
    return cells


def _traced(graded: Graded, gaps: Gaps, cells: Ints) -> tuple[ItemGap, ...]:
    return tuple(_trace(graded, gaps, int(cell)) for cell in cells)


def _trace(graded: Graded, gaps: Gaps, cell: int) -> ItemGap:
    answers = graded.answers
    row = int(np.searchsorted(answers.offsets, cell, side="right")) - 1
    item = cell - int(answers.offsets[row])
    query_id = answers.query_ids[row]
    around = gaps.neighbourhoods[query_id].neighbours_of(row)
    return ItemGap(
        query_id=query_id,
        item=item + 1,
        text=graded.checklists[query_id].items[item],
        p_yes=float(answers.p_yes[cell]),
        neighbours_p_yes=float(gaps.others[cell]),
        neighbours=tuple(
            NeighbourAnswer(
                answers.candidates[other], _known(answers.p_yes, answers.offsets[other] + item)
            )
            for other in around
        ),
        weight=float(gaps.weights[cell]),
        points=float(gaps.points[cell]),
        score=float(graded.scores[row]),
        judgment=graded.judgments[row],
    )


def _known(p_yes: NDArray[np.float64], cell: int) -> float | None:
    return None if np.isnan(p_yes[cell]) else float(p_yes[cell])
