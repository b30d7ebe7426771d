"""Where a candidate loses against its neighbours in the ranking, and where it gains.

Compared are the `neighbours` nearest candidates by rank that have a score on the query. An item's
gap is the neighbours' mean `p_yes` less the candidate's own; times the item's weight and the width
of the scale it is what the item costs in points of the query's score (exactly so for the mean;
a learned scorer is not a weighted sum, and there it is a measure of importance).
A single item's gap is one observation and has no interval. Sums over queries have one, from
resampled queries with the neighbours held fixed.

"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Ints
from rocketeval.errors import StoreError
from rocketeval.explain.groups import column_means
from rocketeval.records import Checklist, Interval, Query
from rocketeval.scoring.answers import AnswerTable, QueryRows, sum_rows
from rocketeval.stats.bootstrap import resample_queries
from rocketeval.workers import one_blas_thread


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """The responses to one query in the ranking's order, each with its window of neighbours."""

    rows: Ints
    """Rows of the answer table, best candidate first; only candidates with a rank and a score."""
    first: Ints
    """For each, the place in `rows` at which its window begins."""
    last: Ints
    """The place at which it ends; the response itself lies within and is no neighbour."""

    def neighbours_of(self, row: int) -> list[int]:
        """Rows of the neighbours, best first."""
        place = int(np.flatnonzero(self.rows == row)[0])
        window = range(int(self.first[place]), int(self.last[place]) + 1)
        return [int(self.rows[other]) for other in window if other != place]


def nearest(places: Ints, most: int) -> tuple[Ints, Ints]:
    """For each of some ascending places, where the window of its `most` nearest begins and ends.

    At equal distance the better place is taken.

    >>> [side.tolist() for side in nearest(np.array([0, 1, 2, 9]), 2)]
    [[0, 0, 0, 1], [2, 2, 2, 3]]
    """
    ends = np.concatenate([[-np.inf], places, [np.inf]])
    first, last = np.arange(len(places)), np.arange(len(places))
    for _ in range(min(most, len(places) - 1)):
        better = places - ends[first] <= ends[last + 2] - places
        first, last = first - better, last + ~better
    return first, last


def mean_of_others(p_yes: Floats, first: Ints, last: Ints) -> Floats:
    """For each answer (rows are responses) the mean of the others in its window; NaN without any.

    >>> window = np.array([0, 0]), np.array([1, 1])
    >>> mean_of_others(np.array([[0.25, np.nan], [0.75, 0.5]]), *window).tolist()
    [[0.75, 0.5], [0.25, nan]]
    """
    present = ~np.isnan(p_yes)
    filled = np.where(present, p_yes, 0.0)
    total = _window_sums(filled, first, last) - filled
    count = _window_sums(present.astype(np.float64), first, last) - present
    means: Floats = np.full(total.shape, np.nan)
    return np.divide(total, count, out=means, where=count > 0.5)


def _window_sums(values: Floats, first: Ints, last: Ints) -> Floats:
    sums = np.concatenate([np.zeros((1, values.shape[1])), np.cumsum(values, axis=0)])
    within: Floats = sums[last + 1] - sums[first]
    return within


@dataclass(frozen=True, eq=False)
class GradedRun:
    """A scored and ranked run."""

    answers: AnswerTable
    scores: Floats
    """One per response; NaN where there is none."""
    judgments: Sequence[str | None]
    """The judgment's key of each response."""
    ranked: list[str]
    """Candidates, best first."""
    queries: Mapping[str, Query]
    checklists: Mapping[str, Checklist]
    weights: Mapping[str, Sequence[float]]
    """What a learned scorer gave each item of a query; absent for queries it learned nothing on."""
    scale: tuple[float, float] = (1.0, 10.0)

    def __post_init__(self) -> None:
        for query_id, weights in self.weights.items():
            checklist = self.checklists.get(query_id)
            if checklist is not None and len(checklist.items) != len(weights):
                raise StoreError(
                    f"item_weights.json has {len(weights)} weights for query {query_id!r}, whose "
                    f"checklist has {len(checklist.items)} items.",
                    hint="Run `rocketeval run --only score` again.",
                )

    def weights_of(self, query_id: str, items: int) -> Floats:
        """The learned weights of a query's items, or else the same for each."""
        learned = self.weights.get(query_id)
        if learned is None:
            return np.full(items, 1.0 / max(items, 1))
        return np.array(learned, dtype=np.float64)


_ROUNDING = 1e-9
# The mean of equal answers differs from them in the last bits, and is no gap.


@dataclass(frozen=True, eq=False)
class Gaps:
    """What every answer costs its candidate, as columns beside the answer table's `p_yes`."""

    others: Floats
    """Mean `p_yes` of the neighbours; NaN without neighbours."""
    weights: Floats
    """The item's weight in the query's score."""
    points: Floats
    """(others - own) * weight, on the score's scale: what the item costs, negative if it gains."""
    neighbourhoods: Mapping[str, Neighbourhood]
    """By query."""

    def per_response(self, offsets: NDArray[np.int64]) -> Floats:
        """What all items together cost each response; NaN where nothing could be compared."""
        known = ~np.isnan(self.points)
        total = sum_rows(np.where(known, self.points, 0.0), offsets)
        return np.where(sum_rows(known, offsets) > 0, total, np.nan)


def find_gaps(graded: GradedRun, neighbours: int) -> Gaps:
    """Compare every answer with those of its candidate's nearest `neighbours` by rank."""
    answers = graded.answers
    places = {name: place for place, name in enumerate(graded.ranked)}
    place = np.array([places.get(name, -1) for name in answers.candidates], dtype=np.int64)
    others, weights = (np.full(len(answers.p_yes), np.nan) for _ in range(2))
    neighbourhoods = {}
    for block in answers.blocks():
        around = _neighbourhood(block, place, graded.scores, neighbours)
        neighbourhoods[block.query_id] = around
        if not around.rows.size:
            continue
        items = block.p_yes.shape[1]
        own = block.p_yes[around.rows - block.start]
        cells = answers.offsets[around.rows][:, None] + np.arange(items)
        others[cells] = mean_of_others(own, around.first, around.last)
        weights[cells] = graded.weights_of(block.query_id, items)
    points = others - answers.p_yes
    points[np.abs(points) < _ROUNDING] = 0.0
    low, high = graded.scale
    # In place: a million responses have eight million gaps.
    points *= weights
    points *= high - low
    return Gaps(others, weights, points, neighbourhoods)


def _neighbourhood(block: QueryRows, place: Ints, scores: Floats, most: int) -> Neighbourhood:
    usable = (place[block.rows] >= 0) & ~np.isnan(scores[block.rows])
    rows = block.start + np.flatnonzero(usable)
    rows = rows[np.argsort(place[rows], kind="stable")]
    return Neighbourhood(rows, *nearest(place[rows], most))


MOST_CATEGORIES = 30
"""Of more, the ones with most queries are summed up."""


@dataclass(frozen=True, slots=True)
class CategoryGap:
    """How many points a query a candidate loses against its neighbours."""

    category: str | None
    """None for all queries."""
    points: Interval
    """Mean over the queries; negative if it gains. Bounds are NaN for too few queries."""
    queries: int
    """Queries on which it could be compared."""


Summary = tuple[CategoryGap | None, tuple[CategoryGap, ...]]
"""Over all queries, and by category with the largest loss first."""


def gaps_by_category(
    graded: GradedRun,
    gaps: Gaps,
    candidates: Sequence[str],
    *,
    bootstrap: int,
    seed: int,
    level: float,
) -> dict[str, Summary]:
    """Sum up each candidate's gaps; a category in which it was never compared is left out."""
    losses, categories = _by_query(graded, gaps, candidates)

    def summed(category: str | None, rows: NDArray[np.bool_]) -> list[CategoryGap | None]:
        own = losses[rows]
        with one_blas_thread():
            means = column_means(own, resample_queries(len(own), bootstrap, seed), level)
        return [
            None if points is None else CategoryGap(category, points, queries)
            for points, queries in means
        ]

    overall = summed(None, np.ones(len(losses), bool))
    parts = [
        summed(category, np.array([own == category for own in categories]))
        for category in _largest(categories)
    ]
    return {
        name: (
            overall[column],
            tuple(
                sorted(
                    (found for part in parts if (found := part[column]) is not None),
                    key=lambda gap: (-gap.points.value, str(gap.category)),
                )
            ),
        )
        for column, name in enumerate(candidates)
    }


def _by_query(
    graded: GradedRun, gaps: Gaps, candidates: Sequence[str]
) -> tuple[Floats, list[str | None]]:
    """Points lost, queries by candidates, and the category of each query."""
    answers = graded.answers
    queries = {query: row for row, query in enumerate(dict.fromkeys(answers.query_ids))}
    columns = {name: column for column, name in enumerate(candidates)}
    losses = np.full((len(queries), len(columns) + 1), np.nan)
    rows = [queries[query] for query in answers.query_ids]
    # Everybody else's answers go to a last column, which is cut off.
    places = [columns.get(name, len(columns)) for name in answers.candidates]
    losses[rows, places] = gaps.per_response(answers.offsets)
    return losses[:, :-1], [graded.queries[query].category for query in queries]


def _largest(categories: Sequence[str | None]) -> list[str]:
    sizes = Counter(category for category in categories if category is not None)
    return [category for category, _ in sizes.most_common(MOST_CATEGORIES)]


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
    graded: GradedRun,
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


def _rows_of(graded: GradedRun, candidates: Sequence[str]) -> Iterator[tuple[str, Ints]]:
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


def _traced(graded: GradedRun, gaps: Gaps, cells: Ints) -> tuple[ItemGap, ...]:
    return tuple(_trace(graded, gaps, int(cell)) for cell in cells)


def _trace(graded: GradedRun, gaps: Gaps, cell: int) -> ItemGap:
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
