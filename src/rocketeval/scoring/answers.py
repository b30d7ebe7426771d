"""The answers of many judgments as columns, the input of scorers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Bools, Floats

__all__ = ["AnswerTable"]


@dataclass(frozen=True, eq=False)
class RubricColumns:
    """Answers as given, with weights and applicability, in the layout of an answer table."""

    values: Floats
    """The answers themselves, from 0 to 1; NaN is missing."""
    weights: Floats
    """Weight of each item; negative for a penalty."""
    applicable: Floats
    """One minus the probability of "not applicable"."""

    @classmethod
    def plain(cls, p_yes: Floats) -> RubricColumns:
        """Return plain answers, all of weight 1."""
        return cls(p_yes, np.ones(len(p_yes)), np.ones(len(p_yes)))

    @property
    def turned(self) -> Floats:
        """The answers with those of penalties turned around, so that 1 is always better."""
        return np.where(self.weights < 0, 1.0 - self.values, self.values)

    @property
    def applies(self) -> Bools:
        """Whether each item more likely applies than not."""
        return ~(self.applicable < 0.5)

    def at(self, places: NDArray[np.int64]) -> RubricColumns:
        """Return the columns of some answers."""
        return RubricColumns(self.values[places], self.weights[places], self.applicable[places])


@dataclass(frozen=True)
class AnswerTable:
    """Answers of many judgments, column by column, sorted by query and candidate.

    The answers of response `i` are `p_yes[offsets[i]:offsets[i + 1]]`; NaN is a missing answer.
    All responses to one query are in the same table.
    """

    query_ids: Sequence[str]
    candidates: Sequence[str]
    p_yes: Floats
    offsets: NDArray[np.int64]
    categories: Mapping[str, str] = field(default_factory=dict)
    """The category of each query that has one, by query id."""
    rubric: RubricColumns | None = None
    """Weights and applicability; None if all items are plain. With it, `p_yes` is what each answer
    contributes to the score: turned around for a penalty, and mixed with the response's mean as far
    as the item does not apply."""

    def __len__(self) -> int:
        return len(self.query_ids)

    @property
    def items(self) -> NDArray[np.int64]:
        """Return the number of items of each response."""
        return np.diff(self.offsets)

    @property
    def shown(self) -> Floats:
        """Return the answers as the judge gave them."""
        return self.p_yes if self.rubric is None else self.rubric.values

    @property
    def turned(self) -> Floats:
        """Return the judge's answers, those of penalties turned around: 1 is always better."""
        return self.p_yes if self.rubric is None else self.rubric.turned

    @property
    def applies(self) -> Bools:
        """Whether each item more likely applies to its response than not."""
        return np.ones(len(self.p_yes), bool) if self.rubric is None else self.rubric.applies

    def as_given(self) -> AnswerTable:
        """Return the table with the judge's answers instead of their contributions to scores."""
        return self if self.rubric is None else replace(self, p_yes=self.rubric.values)

    @property
    def answered(self) -> NDArray[np.int64]:
        """Return the number of answered items of each response."""
        return sum_rows(~np.isnan(self.shown), self.offsets).astype(np.int64)

    @property
    def item_weights(self) -> Floats:
        """Return the size of each answer's weight; 1 if all items are plain."""
        if self.rubric is None:
            return np.ones(len(self.p_yes))
        return np.abs(self.rubric.weights)

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> AnswerTable:
        """Return the table of the given rows, in that order."""
        places = np.asarray(rows, dtype=np.intp)
        lengths = self.items[places]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        within = np.arange(offsets[-1]) - np.repeat(offsets[:-1], lengths)
        cells = np.repeat(self.offsets[places], lengths) + within
        return AnswerTable(
            [self.query_ids[row] for row in places],
            [self.candidates[row] for row in places],
            self.p_yes[cells],
            offsets,
            self.categories,
            None if self.rubric is None else self.rubric.at(cells),
        )

    def blocks(self) -> Iterator[QueryRows]:
        """Yield the rows of each query."""
        start = 0
        for row in range(1, len(self) + 1):
            if row == len(self) or self.query_ids[row] != self.query_ids[start]:
                yield self._block(start, row)
                start = row

    def _block(self, start: int, stop: int) -> QueryRows:
        lengths = np.diff(self.offsets[start : stop + 1])
        items = int(lengths.max(initial=0))
        if bool((lengths == items).all()):
            flat = self.p_yes[self.offsets[start] : self.offsets[stop]]
            matrix = flat.reshape(stop - start, items)
        else:
            matrix = np.full((stop - start, items), np.nan)
            for place, row in enumerate(range(start, stop)):
                own = self.p_yes[self.offsets[row] : self.offsets[row + 1]]
                matrix[place, : len(own)] = own
        names = tuple(self.candidates[start:stop])
        return QueryRows(self.query_ids[start], start, names, matrix, self._weights(start, stop))

    def _weights(self, start: int, stop: int) -> Floats | None:
        """Return the size of each item's weight in a query; None if all items are plain."""
        if self.rubric is None:
            return None
        longest = start + int(np.diff(self.offsets[start : stop + 1]).argmax())
        own = self.rubric.weights[self.offsets[longest] : self.offsets[longest + 1]]
        return np.abs(own)


@dataclass(frozen=True, eq=False)
class QueryRows:
    """All responses to one query: a matrix of answers with one row per response."""

    query_id: str
    start: int
    """Row of the table where the block begins."""
    candidates: tuple[str, ...]
    p_yes: Floats
    """Shape (responses, items); NaN is missing. A response without a judgment is all NaN."""
    weights: Floats | None = None
    """Size of each item's weight; None if all items are plain."""

    @property
    def sizes(self) -> Floats:
        """Return the size of each item's weight; 1 if all items are plain."""
        return np.ones(self.p_yes.shape[1]) if self.weights is None else self.weights

    @property
    def rows(self) -> slice:
        """Return the block's rows in its table."""
        return slice(self.start, self.start + len(self.candidates))


def sum_rows(values: NDArray[np.generic], offsets: NDArray[np.int64]) -> Floats:
    """Return the sum of each row's values; a row's sum depends only on that row."""
    totals = np.zeros(len(offsets) - 1)
    filled = np.diff(offsets) > 0
    if filled.any():
        totals[filled] = np.add.reduceat(values.astype(np.float64), offsets[:-1][filled])
    return totals


def filled_rows(
    p_yes: Floats, missing: str, weights: Floats | None = None
) -> tuple[Floats, NDArray[np.bool_]]:
    """Fill missing answers; also return which rows are usable.

    With `skip`, a missing answer gets the mean of its row's other answers, which keeps the row's
    mean; with `drop`, a row with a missing answer is not usable. A row without answers never is,
    nor one whose answered items all have weight zero. Answers to items of weight zero become zero.

    >>> filled_rows(np.array([[0.25, np.nan, 0.75], [np.nan] * 3]), "skip")
    (array([[0.25, 0.5 , 0.75],
           [0.  , 0.  , 0.  ]]), array([ True, False]))
    """
    gaps = np.isnan(p_yes)
    answered = (~gaps).sum(axis=1)
    usable = answered > 0 if missing == "skip" else answered == p_yes.shape[1]
    usable &= p_yes.shape[1] > 0
    if weights is None or _all_equal(weights):
        totals, shares = np.where(gaps, 0.0, p_yes).sum(axis=1), answered
    else:
        totals = weighted_rows(np.where(gaps, 0.0, p_yes), weights)
        shares = weighted_rows(~gaps, weights)
        usable &= shares > 0
    means = np.divide(totals, shares, out=np.zeros(len(p_yes)), where=shares > 0)
    filled = np.where(gaps, means[:, None], p_yes)
    return (filled if weights is None else np.where(weights > 0, filled, 0.0)), usable


def _all_equal(weights: Floats) -> bool:
    return bool(len(weights) and weights[0] > 0 and np.ptp(weights) == 0.0)


FEATURES = ("mean", "log_odds", "lowest", "lower_quartile", "share_yes", "spread")
"""Feature names, in column order."""

SUREST = 0.01
"""Answers are clipped this far from 0 and 1 before taking log-odds."""


def describe(answers: AnswerTable, missing: str) -> tuple[Floats, Bools]:
    """Return the features of each response, one row each, and which rows are usable."""
    features = np.zeros((len(answers), len(FEATURES)))
    usable = np.zeros(len(answers), dtype=np.bool_)
    for block in answers.blocks():
        p_yes, fit_for_use = filled_rows(block.p_yes, missing, block.weights)
        usable[block.rows] = fit_for_use
        features[block.rows][fit_for_use] = describe_rows(p_yes[fit_for_use], block.weights)
    return features, usable


def describe_rows(p_yes: Floats, weights: Floats | None = None) -> Floats:
    """Return the features of complete rows of answers; items of weight zero do not count.

    >>> describe_rows(np.array([[0.5, 1.0, 0.0]])).round(2).tolist()
    [[0.5, 0.0, 0.0, 0.25, 0.67, 0.41]]
    >>> describe_rows(np.array([[1.0, 0.0]]), np.array([9.0, 1.0])).round(2).tolist()
    [[0.9, 3.68, 0.0, 0.25, 0.9, 0.3]]
    """
    if weights is not None:
        p_yes, weights = p_yes[:, weights > 0], weights[weights > 0]
    if p_yes.size == 0:
        return np.zeros((len(p_yes), len(FEATURES)))

    def mean(values: Floats | Bools) -> Floats:
        if weights is None or _all_equal(weights):
            return np.asarray(values.mean(axis=1), dtype=np.float64)
        return np.asarray(weighted_rows(values, weights) / weights.sum(), dtype=np.float64)

    held = np.clip(p_yes, SUREST, 1.0 - SUREST)
    middle = mean(p_yes)
    columns = (
        middle,
        mean(np.log(held) - np.log1p(-held)),
        p_yes.min(axis=1),
        _lower_quartile(p_yes),
        mean(p_yes >= 0.5),
        np.sqrt(mean((p_yes - middle[:, None]) ** 2)),
    )
    return np.stack(columns, axis=1)


def weighted_rows(rows: Floats | Bools, weights: Floats) -> Floats:
    """Return `rows @ weights`, summed per row so that the bits do not depend on other rows."""
    total: Floats = (rows * weights).sum(axis=1)
    return total


def _lower_quartile(p_yes: Floats) -> Floats:
    ordered = np.sort(p_yes, axis=1)
    place = 0.25 * (p_yes.shape[1] - 1)
    below = int(place)
    above = min(below + 1, p_yes.shape[1] - 1)
    quartile: Floats = ordered[:, below] + (place - below) * (ordered[:, above] - ordered[:, below])
    return quartile
