"""The blocks of a report: made from a run's columns when somebody asks for them."""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rocketeval.report.coarse import coarse
from rocketeval.report.data import ANSWER_STEPS, NO_ANSWER, ReportHead
from rocketeval.report.plain import json_bytes

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_SCORES = 1_000_000
"""Scores in the block of scores: 4 MB once unpacked, what a page filters without a pause."""
MOST_ANSWERS = 1_200_000
"""Answers in the block of answers; eight to each score of 150,000 responses."""

LINE, SCORES, ANSWERS, TEXTS = range(4)
"""How much of a query is there: its line, its scores, its answers and items, its texts."""

_LEVEL = 6
_QUERY = "query-"


class Content(Protocol):
    """What a run's blocks are made from; queries are known by their place."""

    @property
    def scores(self) -> Floats:
        """Queries by candidates, in the head's order; NaN where there is none."""

    @property
    def items(self) -> Ints:
        """How many items each query has."""

    def hold(self, places: Sequence[int]) -> None:
        """Read the answers of many queries at once, since they will be asked for one by one."""

    def queries(self) -> dict[str, list[Any]]:
        """The block of queries, but for `detail`."""

    def answers(self, places: Sequence[int]) -> Iterator[Floats]:
        """For each query a table of candidates by items; NaN is missing."""

    def figures(self, places: Sequence[int]) -> Iterator[dict[str, Any]]:
        """For each query the texts and figures of its items."""

    def query(self, place: int) -> dict[str, Any]:
        """One query's block, without texts and cells."""

    def texts(self, places: Sequence[int]) -> Iterator[dict[str, Any]]:
        """For each query `texts` and `histories` of its responses."""

    def labels(self) -> dict[str, Any] | None:
        """The block of labels; None without any."""

    def pairs(self) -> dict[str, Any] | None:
        """The block of comparisons; None for fewer than two candidates."""


@dataclass(frozen=True, eq=False)
class ReportSource:
    """A report's head and blocks."""

    head: ReportHead
    content: Content
    detail: Ints
    """How much of each query the blocks hold."""
    made: Mapping[str, bytes] = field(default_factory=dict)
    """Blocks that are at hand."""

    def block(self, name: str) -> bytes | None:
        """Return a block, gzipped; None if there is none of that name."""
        if name in self.made:
            return self.made[name]
        if name.startswith(_QUERY):
            place = _place(name, len(self.detail))
            return None if place is None else self.query_block(place, texts=True)
        return self._whole_block(name)

    def _whole_block(self, name: str) -> bytes | None:
        match name:
            case "queries":
                return self._queries()
            case "scores":
                return self._scores()
            case "answers":
                return self._answers()
            case "items":
                return self._items()
            case "labels":
                return _json_or_none(self.content.labels())
            case "pairs":
                return _json_or_none(self.content.pairs())
        return None

    def places(self, detail: int) -> list[int]:
        """Return the queries that have at least so much detail, in order."""
        return [int(place) for place in np.flatnonzero(self.detail >= detail)]

    def query_block(
        self, place: int, *, texts: bool, found: Mapping[str, Any] | None = None
    ) -> bytes:
        """Return the block of one query; `found` are its texts where they are at hand."""
        block = {**self.content.query(place), "texts": None, "histories": [], "cells": None}
        if texts:
            block |= found or next(self.content.texts([place]))
        if self.detail[place] < ANSWERS:
            block["cells"] = self._cells(place)
        return packed(json_bytes(block))

    def _queries(self) -> bytes:
        return packed(json_bytes({**self.content.queries(), "detail": self.detail.tolist()}))

    def _scores(self) -> bytes:
        return packed(self._coarse(self.places(SCORES)).astype("<f4").tobytes())

    def _answers(self) -> bytes:
        tables = [encoded(table).ravel() for table in self.content.answers(self.places(ANSWERS))]
        return packed(np.concatenate([np.empty(0, "<u2"), *tables]).astype("<u2").tobytes())

    def _items(self) -> bytes:
        return packed(json_bytes(list(self.content.figures(self.places(ANSWERS)))))

    def _cells(self, place: int) -> dict[str, Any]:
        (answers,) = self.content.answers([place])
        (scores,) = self._coarse([place])
        return {
            "scores": [None if score != score else score for score in scores.tolist()],
            "answers": [known(row) for row in answers],
        }

    def items_block(self, place: int) -> bytes:
        """Return what one query adds to the block of items, by itself."""
        return packed(json_bytes(next(self.content.figures([place]))))

    def _coarse(self, places: Sequence[int]) -> Floats:
        scores = self.content.scores[list(places)]
        return coarse(scores, self.head.scale, self.head.tie_margin)


def packed(content: bytes) -> bytes:
    """Return content gzipped; the same content gives the same bytes."""
    return gzip.compress(content, _LEVEL, mtime=0)


def encoded(answers: Floats) -> NDArray[np.uint16]:
    """Return probabilities as steps.

    >>> encoded(np.array([[0.5, np.nan]])).tolist()
    [[30000, 65535]]
    """
    steps = np.where(np.isnan(answers), NO_ANSWER, np.round(answers * ANSWER_STEPS))
    return steps.astype("<u2")


def known(row: Floats) -> list[float | None]:
    """Return numbers for JSON, to four digits; None for NaN."""
    return [None if number != number else number for number in row.round(4).tolist()]


def most_divisive(scores: Floats) -> Ints:
    """Return the queries' places, those first that divide the candidates most.

    >>> most_divisive(np.array([[5.0, 5.0], [np.nan, np.nan], [1.0, 9.0]])).tolist()
    [2, 0, 1]
    """
    return np.argsort(-np.nan_to_num(spread(scores), nan=-1.0), kind="stable")


def spread(scores: Floats) -> Floats:
    """Return the standard deviation of each query's scores; NaN where it has none."""
    present = ~np.isnan(scores)
    counts = present.sum(axis=1)
    least = np.maximum(counts, 1)
    means = np.where(present, scores, 0.0).sum(axis=1) / least
    apart = np.where(present, scores - means[:, None], 0.0)
    return np.where(counts > 0, np.sqrt((apart**2).sum(axis=1) / least), np.nan)


def served_detail(scores: Floats, items: Ints) -> Ints:
    """Return how much of each query a server's blocks hold; anything else can be asked for."""
    order, candidates = most_divisive(scores), scores.shape[1]
    detail = np.zeros(len(scores), dtype=np.int64)
    within = np.arange(1, len(order) + 1) * candidates <= MOST_SCORES
    detail[order[within]] = SCORES
    answered = np.cumsum(items[order]) * candidates <= MOST_ANSWERS
    detail[order[within & answered]] = TEXTS
    return detail


def _json_or_none(block: dict[str, Any] | None) -> bytes | None:
    return None if block is None else packed(json_bytes(block))


def _place(name: str, queries: int) -> int | None:
    number = name.removeprefix(_QUERY)
    if not (number.isascii() and number.isdigit()) or len(number) > 9:
        return None
    return int(number) if int(number) < queries else None
