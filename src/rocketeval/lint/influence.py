"""What the ranking would be without an item, or without all that are flagged.

The ranking here is that of mean scores, whatever scorer and ranking the run has: it can be made
again without an item in no time, and says in which direction an item pulls.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.scoring.answers import AnswerTable

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Item = tuple[str, int]
"""Query id and number of the item, from 1."""

_ROUNDING = 10
"""Decimals of mean scores: what differs by less is a tie."""


@dataclass(frozen=True, slots=True)
class ItemInfluence:
    """What leaving one item out does."""

    query_id: str
    item: int
    shift: float
    """By how much the gap between two candidates' mean scores changes at most, on the scale."""
    places: int
    """By how many places a candidate moves at most."""


@dataclass(frozen=True, slots=True)
class Without:
    """The ranking by mean scores without some items, beside the one with all."""

    dropped: int
    kept_after_all: int
    """Items that were to be dropped, but are all that their query has."""
    candidates: int
    swapped_pairs: int
    """Pairs of candidates that stand in another order."""
    pairs: int
    tau: float | None
    """Kendall's tau of the two orders; None below two candidates."""
    largest_move: int
    """Most places that a candidate moves."""
    moved: str | None
    """The candidate that moves most; None when nobody moves."""


@dataclass(frozen=True, eq=False)
class MeanScores:
    """Each response's mean answer, gathered by candidate."""

    names: tuple[str, ...]
    columns: Ints
    """Of each response, its candidate."""
    totals: Floats
    counts: Floats
    """Responses with an answer, by candidate."""

    @classmethod
    def of(cls, table: AnswerTable) -> MeanScores:
        """Return the means of all answers there are; a response without any has none."""
        names, columns = np.unique(np.asarray(table.candidates, dtype=object), return_inverse=True)
        means = response_means(table)
        known = ~np.isnan(means)
        size = len(names)
        return cls(
            tuple(names.tolist()),
            columns.astype(np.intp),
            np.bincount(columns, np.where(known, means, 0.0), size).astype(np.float64),
            np.bincount(columns, known, size).astype(np.float64),
        )

    @property
    def means(self) -> Floats:
        """Each candidate's mean; NaN without any."""
        none = np.full(len(self.names), np.nan)
        means: Floats = np.divide(self.totals, self.counts, out=none, where=self.counts > 0)
        return means


def response_means(table: AnswerTable) -> Floats:
    """Return the mean answer of each response; NaN without any."""
    known = ~np.isnan(table.p_yes)
    rows = np.repeat(np.arange(len(table)), table.items)
    totals = np.bincount(rows, np.where(known, table.p_yes, 0.0), len(table))
    counts = np.bincount(rows, known, len(table))
    none = np.full(len(table), np.nan)
    means: Floats = np.divide(totals, counts, out=none, where=counts > 0)
    return means


def item_influences(table: AnswerTable, scale: tuple[float, float]) -> Iterator[ItemInfluence]:
    """Yield what leaving out each item alone does; nothing of a query's only item."""
    scores = MeanScores.of(table)
    before = scores.means
    places = _places(before)
    least = np.maximum(scores.counts, 1.0)
    for block in table.blocks():
        items = block.p_yes.shape[1]
        if items < 2:
            continue
        change = _change_without_each(block.p_yes)
        columns = scores.columns[block.rows]
        moves = np.zeros((items, len(scores.names)))
        moves[:, columns] = (change / least[columns, None]).T
        after = _places(before + moves)
        shifts = (scale[1] - scale[0]) * np.ptp(moves, axis=1)
        moved = np.abs(after - places).max(axis=1)
        for place in range(items):
            yield ItemInfluence(block.query_id, place + 1, float(shifts[place]), int(moved[place]))


def drop_items(table: AnswerTable, dropped: Collection[Item]) -> tuple[AnswerTable, int]:
    """Return the answers without some items, and how many items stay as their query's last.

    >>> table = AnswerTable(["q"], ["c"], np.array([1.0, 0.5]), np.array([0, 2]))
    >>> drop_items(table, {("q", 2)})[0].p_yes.tolist(), drop_items(table, {("q", 1), ("q", 2)})[1]
    ([1.0, nan], 2)
    """
    by_query: dict[str, list[int]] = {}
    for query_id, item in dropped:
        by_query.setdefault(query_id, []).append(item - 1)
    p_yes = table.p_yes.copy()
    kept = 0
    for block in table.blocks():
        own = np.array(by_query.get(block.query_id, ()), dtype=np.intp)
        if not own.size:
            continue
        if own.size >= block.p_yes.shape[1]:
            kept += own.size
            continue
        starts, lengths = table.offsets[block.rows], table.items[block.rows]
        there = own < lengths[:, None]
        p_yes[(starts[:, None] + own)[there]] = np.nan
    return AnswerTable(table.query_ids, table.candidates, p_yes, table.offsets), kept


def ranking_without(table: AnswerTable, dropped: Collection[Item]) -> Without:
    """Return how the ranking by mean scores moves when items are dropped."""
    fewer, kept = drop_items(table, dropped)
    names = MeanScores.of(table).names
    before, after = (np.round(MeanScores.of(each).means, _ROUNDING) for each in (table, fewer))
    both = ~(np.isnan(before) | np.isnan(after))
    before, after = before[both], after[both]
    ranked = [name for name, there in zip(names, both.tolist(), strict=True) if there]
    first, second = (np.sign(side[:, None] - side[None, :]) for side in (before, after))
    pairs = len(ranked) * (len(ranked) - 1) // 2
    swapped = int((first * second < 0).sum()) // 2
    moves = np.abs(_places(before) - _places(after))
    largest = int(moves.max(initial=0))
    return Without(
        dropped=len(dropped) - kept,
        kept_after_all=kept,
        candidates=len(ranked),
        swapped_pairs=swapped,
        pairs=pairs,
        tau=float((first * second).sum() / 2 / pairs) if pairs else None,
        largest_move=largest,
        moved=ranked[int(moves.argmax())] if largest else None,
    )


def _change_without_each(p_yes: Floats) -> Floats:
    """Return by how much each response's mean changes without each item; 0 where it has none."""
    known = ~np.isnan(p_yes)
    filled = np.where(known, p_yes, 0.0)
    count = known.sum(axis=1, keepdims=True)
    total = filled.sum(axis=1, keepdims=True)
    mean = total / np.maximum(count, 1)
    left = count - known
    without = np.divide(
        total - filled, left, out=np.broadcast_to(mean, p_yes.shape).copy(), where=left > 0
    )
    return np.where(known, without - mean, 0.0)


def _places(means: Floats) -> NDArray[np.intp]:
    """Return each candidate's place in the last axis, best first; ties keep their order."""
    order = np.argsort(
        -np.round(np.nan_to_num(means, nan=-np.inf), _ROUNDING), axis=-1, kind="stable"
    )
    return np.argsort(order, axis=-1, kind="stable")
