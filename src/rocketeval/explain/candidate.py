"""Losses and strengths of a candidate, compared with its neighbors in the ranking.

Neighbors are the nearest candidates by rank that have a score on the query. An item's gap is the
neighbors' mean `p_yes` minus the candidate's own. Times the item's weight and the width of the
scale, it is the item's cost in points of the query's score (exact for the mean; for a learned
scorer, which is not a weighted sum, it measures importance). A single gap has no interval. Sums
over queries have one, from resampled queries with fixed neighbors.
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
from rocketeval.store.inputs import clusters_of
from rocketeval.workers import one_blas_thread


@dataclass(frozen=True, slots=True, eq=False)
class Neighbourhood:
    """The responses to one query in ranking order, each with its window of neighbors."""

    rows: Ints
    """Rows of the answer table, best candidate first; only ranked candidates with a score."""
    first: Ints
    """For each, the index in `rows` where its window begins."""
    last: Ints
    """The index where it ends; the window includes the response itself."""

    def neighbours_of(self, row: int) -> list[int]:
        """Return the rows of the neighbors, best first."""
        place = int(np.flatnonzero(self.rows == row)[0])
        window = range(int(self.first[place]), int(self.last[place]) + 1)
        return [int(self.rows[other]) for other in window if other != place]


def nearest(places: Ints, most: int) -> tuple[Ints, Ints]:
    """Return the first and last index of the window of `most` nearest, for ascending places.

    At equal distance the better place wins.

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
    """Return, per answer (rows are responses), the mean of the others in its window, or NaN.

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


def weight_shares(checklist: Checklist | None, items: int, *, points: bool = False) -> Floats:
    """Return the share of each item in a score; equal shares for plain items.

    For `points`, a share is relative to the sum of positive weights.
    """
    if checklist is None or checklist.details is None or len(checklist.items) != items:
        return np.full(items, 1.0 / max(items, 1))
    weights = np.array([detail.weight for detail in checklist.details])
    total = np.maximum(weights, 0.0).sum() if points else np.abs(weights).sum()
    shares: Floats = np.abs(weights) / total if total > 0 else np.zeros(items)
    return shares


@dataclass(frozen=True, eq=False)
class GradedRun:
    """A scored and ranked run."""

    answers: AnswerTable
    scores: Floats
    """One per response; NaN if missing."""
    judgments: Sequence[str | None]
    """Judgment key of each response."""
    ranked: list[str]
    """Candidates, best first."""
    queries: Mapping[str, Query]
    checklists: Mapping[str, Checklist]
    weights: Mapping[str, Sequence[float]]
    """Learned item weights by query; absent for queries without a learned scorer."""
    scale: tuple[float, float] = (1.0, 10.0)
    points: bool = False
    """Whether scores are points earned over the points that can be earned."""

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
        """Return the learned weights of a query's items, else those of its checklist."""
        learned = self.weights.get(query_id)
        if learned is not None:
            return np.array(learned, dtype=np.float64)
        return weight_shares(self.checklists.get(query_id), items, points=self.points)


_ROUNDING = 1e-9
# The mean of equal answers may differ from them in the last bits.


@dataclass(frozen=True, eq=False)
class Gaps:
    """Cost of each answer to its candidate, as columns aligned with the answer table's `p_yes`."""

    others: Floats
    """Mean `p_yes` of the neighbors; NaN without neighbors."""
    weights: Floats
    """The item's weight in the query's score."""
    points: Floats
    """(others - own) * weight, on the score scale: the item's cost, negative for a gain."""
    neighbourhoods: Mapping[str, Neighbourhood]
    """By query id."""

    def per_response(self, offsets: NDArray[np.int64]) -> Floats:
        """Return the total cost of all items per response; NaN if nothing could be compared."""
        known = ~np.isnan(self.points)
        total = sum_rows(np.where(known, self.points, 0.0), offsets)
        return np.where(sum_rows(known, offsets) > 0, total, np.nan)


def find_gaps(graded: GradedRun, neighbours: int) -> Gaps:
    """Compare each answer with those of the candidate's nearest neighbors by rank."""
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
"""Maximum number of categories; the ones with the most queries are kept."""


@dataclass(frozen=True, slots=True)
class CategoryGap:
    """Points per query that a candidate loses against its neighbors."""

    category: str | None
    """None for all queries."""
    points: Interval
    """Mean over the queries; negative for a gain. Bounds are NaN with too few queries."""
    queries: int
    """Number of compared queries."""


Summary = tuple[CategoryGap | None, tuple[CategoryGap, ...]]
"""The gap over all queries, and by category with the largest loss first."""


def gaps_by_category(
    graded: GradedRun,
    gaps: Gaps,
    candidates: Sequence[str],
    *,
    bootstrap: int,
    seed: int,
    level: float,
) -> dict[str, Summary]:
    """Sum up each candidate's gaps; categories without a comparison are left out."""
    losses, categories, clusters = _by_query(graded, gaps, candidates)

    def summed(category: str | None, rows: NDArray[np.bool_]) -> list[CategoryGap | None]:
        own: Ints = np.unique(clusters[rows], return_inverse=True)[1]
        drawn = resample_queries(int(own.max()) + 1, bootstrap, seed)
        with one_blas_thread():
            means = column_means(losses[rows], drawn, level, own)
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
) -> tuple[Floats, list[str | None], Ints]:
    """Return points lost (queries by candidates), and the category and cluster of each query."""
    answers = graded.answers
    queries = {query: row for row, query in enumerate(dict.fromkeys(answers.query_ids))}
    columns = {name: column for column, name in enumerate(candidates)}
    losses = np.full((len(queries), len(columns) + 1), np.nan)
    rows = [queries[query] for query in answers.query_ids]
    # Answers of other candidates go to a last column, which is dropped.
    places = [columns.get(name, len(columns)) for name in answers.candidates]
    losses[rows, places] = gaps.per_response(answers.offsets)
    named = clusters_of(graded.queries[query] for query in queries)
    numbers = {name: place for place, name in enumerate(dict.fromkeys(named.values()))}
    clusters = np.array([numbers[named[query]] for query in queries], dtype=np.int64)
    return losses[:, :-1], [graded.queries[query].category for query in queries], clusters


def _largest(categories: Sequence[str | None]) -> list[str]:
    sizes = Counter(category for category in categories if category is not None)
    return [category for category, _ in sizes.most_common(MOST_CATEGORIES)]


NEIGHBOURS = 4
"""Number of neighbors, if the ranking has that many."""


@dataclass(frozen=True, slots=True)
class NeighbourAnswer:
    """A neighbor's answer to the same item."""

    candidate: str
    p_yes: float | None


@dataclass(frozen=True, slots=True)
class ItemGap:
    """One item on which a candidate is worse or better than its neighbors."""

    query_id: str
    item: int
    """Item number in the checklist, from 1."""
    text: str
    p_yes: float
    neighbours_p_yes: float
    """Mean over the neighbors with an answer."""
    neighbours: tuple[NeighbourAnswer, ...]
    """By rank, best first."""
    weight: float
    """Weight of the item in the query's score."""
    points: float
    """Cost in points of the query's score; negative for a gain."""
    score: float
    """The response's score."""
    judgment: str | None
    """Key of the judgment in the ledger."""


@dataclass(frozen=True, slots=True)
class CandidateExplanation:
    """Losses and strengths of one candidate against its neighbors in the ranking."""

    candidate: str
    place: int
    """Row of the ranking, from 1."""
    losses: tuple[ItemGap, ...]
    """Items with the largest cost, largest first."""
    strengths: tuple[ItemGap, ...]
    """Items with the largest gain, largest first."""
    overall: CategoryGap | None
    """Points lost per query; None if nothing could be compared."""
    categories: tuple[CategoryGap, ...]
    """The same by category, largest loss first; empty without categories."""
    compared: int
    """Answers compared with a neighbor's."""
    not_compared: int
    """Answers not compared: its own or every neighbor's is missing."""


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
    """Explain ranked candidates, with the `most` largest losses and strengths of each."""
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
    """Yield each candidate's rows of the answer table, in query order."""
    codes = {name: code for code, name in enumerate(candidates)}
    named = np.array([codes.get(name, -1) for name in graded.answers.candidates])
    by_candidate = np.argsort(named, kind="stable")
    ends = np.searchsorted(named[by_candidate], np.arange(len(candidates) + 1))
    for code, name in enumerate(candidates):
        yield name, by_candidate[ends[code] : ends[code + 1]]


def _cells(offsets: Ints, rows: Ints) -> Ints:
    """Return the indices in `p_yes` of all answers of the rows."""
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
    checklist, others = graded.checklists[query_id], float(gaps.others[cell])
    return ItemGap(
        query_id=query_id,
        item=item + 1,
        text=checklist.titles[item],
        p_yes=float(answers.shown[cell]),
        # A penalty is compared by what it leaves, and shown as the judge answered it.
        neighbours_p_yes=1.0 - others if checklist.detail(item).weight < 0 else others,
        neighbours=tuple(
            NeighbourAnswer(
                answers.candidates[other], _known(answers.shown, answers.offsets[other] + item)
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
