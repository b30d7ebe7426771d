"""What candidates get in each group of items: one score a dimension and a sub-dimension.

A response's score in a group is the mean `p_yes` of the group's items; missing answers are left out
and counted. A candidate's is the mean over its responses. Items weigh the same, whatever a learned
scorer gives them: a group's score says what the judge answered.

Groups whose names begin alike up to a colon ("coherence: order") are of one dimension. A dimension
of several groups has a score as a whole, over all its items.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rocketeval.ranking.bootstrap import interval, ratio_draws
from rocketeval.records import Checklist, Interval
from rocketeval.scoring.answers import AnswerTable
from rocketeval.threads import one_blas_thread

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_GROUPS = 40
"""Of more, the first are summed up: beyond a few dozen they are no dimensions of quality."""
_JOINT = ": "
_CELLS_AT_ONCE = 8_000_000
"""Queries by candidates by groups that are resampled together: drawing queries is what costs."""


@dataclass(frozen=True, slots=True)
class Group:
    """Items that belong together."""

    name: str
    dimension: str | None
    """What stands before the colon in its name; None without one."""
    parts: tuple[str, ...]
    """The names of its items' groups: several for a dimension as a whole."""

    @property
    def whole(self) -> bool:
        """Whether it is a dimension with all its groups."""
        return len(self.parts) > 1


@dataclass(frozen=True, eq=False)
class GroupColumn:
    """What every response got in one group."""

    group: Group
    scores: Floats
    """Mean `p_yes` of its items; NaN without any answer."""
    items: Ints
    """How many items of the group the response should have answers to."""
    answered: Ints


@dataclass(frozen=True, slots=True)
class GroupMean:
    """What one candidate got in a group."""

    candidate: str
    mean: Interval | None
    """Mean over its responses; None without any answer. Bounds are NaN for too few queries."""
    responses: int
    """Responses with an answer."""
    missing: int
    """Answers that are missing."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """What every candidate got in a group."""

    group: str
    dimension: str | None
    whole: bool
    """Whether it is a dimension with all its groups."""
    queries: int
    """Queries whose checklist has such items."""
    candidates: tuple[GroupMean, ...]
    """In the order of the ranking."""


def find_groups(checklists: Mapping[str, Checklist]) -> list[Group]:
    """Return the groups of all checklists, a dimension as a whole before its parts.

    >>> both = Checklist("q", ("A?", "B?", "C?"), groups=("tone: warm", "length", "tone: glad"))
    >>> [group.name for group in find_groups({"q": both})]
    ['tone', 'tone: warm', 'tone: glad', 'length']
    """
    names = dict.fromkeys(name for made in checklists.values() for name in made.groups or ())
    together: dict[tuple[str | None, str], list[str]] = {}
    for name in names:
        dimension = dimension_of(name)
        together.setdefault((dimension, "" if dimension else name), []).append(name)
    found = []
    for (dimension, _), parts in together.items():
        if dimension is not None and len(parts) > 1:
            found.append(Group(dimension, dimension, tuple(parts)))
        found += [Group(name, dimension, (name,)) for name in parts]
    return found


def dimension_of(group: str) -> str | None:
    """Return what stands before the colon in a group's name; None without one."""
    dimension, joint, part = group.partition(_JOINT)
    return dimension if joint and dimension and part else None


def group_columns(
    answers: AnswerTable, checklists: Mapping[str, Checklist], groups: Sequence[Group]
) -> Iterator[GroupColumn]:
    """Yield what every response, in the table's order, got in each of some groups."""
    codes = {name: code for code, name in enumerate(_parts(groups))}
    cells = _cell_codes(answers, checklists, codes)
    rows = np.repeat(np.arange(len(answers)), answers.items)
    known = ~np.isnan(answers.p_yes)
    asked, places = _asked(answers, checklists, codes)
    for group in groups:
        own = [codes[part] for part in group.parts]
        # Answers without a group have the code -1, which is the last place.
        is_own = np.zeros(len(codes) + 1, np.bool_)
        is_own[own] = True
        chosen = known & is_own[cells]
        answered = np.bincount(rows[chosen], minlength=len(answers))
        totals = np.bincount(rows[chosen], weights=answers.p_yes[chosen], minlength=len(answers))
        scores = np.full(len(answers), np.nan)
        np.divide(totals, answered, out=scores, where=answered > 0)
        yield GroupColumn(group, scores, asked[:, own].sum(axis=1)[places], answered)


def score_groups(
    answers: AnswerTable,
    checklists: Mapping[str, Checklist],
    ranked: Sequence[str],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[tuple[GroupScore, ...], int]:
    """Return what every ranked candidate got in each group, and how many groups are left out.

    Intervals are over the queries.
    """
    groups = find_groups(checklists)
    if not groups or not len(answers):
        return (), 0
    queries, rows = _numbered(answers.query_ids)
    columns = {name: column for column, name in enumerate(ranked)}
    # Whoever is not ranked goes to a last column, which is left out.
    places = np.array([columns.get(name, len(columns)) for name in answers.candidates], np.int64)
    width = len(columns) + 1
    at_once = max(1, _CELLS_AT_ONCE // (len(queries) * width))
    made = group_columns(answers, checklists, groups[:MOST_GROUPS])
    found: list[GroupScore] = []
    while batch := list(islice(made, at_once)):
        scores = np.full((len(queries), len(batch), width), np.nan)
        for number, column in enumerate(batch):
            scores[rows, number, places] = column.scores
        with one_blas_thread():
            means = _means(scores.reshape(len(queries), -1), bootstrap, seed, level)
        for number, column in enumerate(batch):
            lacking = np.bincount(places, column.items - column.answered, width)
            own = zip(ranked, means[number * width :], lacking.tolist(), strict=False)
            found.append(
                GroupScore(
                    column.group.name,
                    column.group.dimension,
                    column.group.whole,
                    len(np.unique(rows[column.items > 0])),
                    tuple(GroupMean(name, *mean, missing=int(n)) for name, mean, n in own),
                )
            )
    return tuple(found), max(0, len(groups) - MOST_GROUPS)


def _means(
    scores: Floats, bootstrap: int, seed: int, level: float
) -> list[tuple[Interval | None, int]]:
    """Return each column's mean, and how many values it rests on."""
    present = ~np.isnan(scores)
    totals, counts = np.where(present, scores, 0.0), present.astype(np.float64)
    draws = ratio_draws(totals, counts, times=bootstrap, seed=seed)
    found: list[tuple[Interval | None, int]] = []
    for column, given in enumerate(present.sum(axis=0).tolist()):
        mean = None
        if given:
            value = float(totals[:, column].sum()) / given
            mean = interval(value, draws[:, column], queries=given, level=level)
        found.append((mean, given))
    return found


def _parts(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(part for group in groups for part in group.parts))


def _numbered(names: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the different names, and for each name its place among them."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return list(numbers), np.array([numbers[name] for name in names], np.int64)


def _cell_codes(
    answers: AnswerTable, checklists: Mapping[str, Checklist], codes: Mapping[str, int]
) -> Ints:
    """Return the code of every answer's group; -1 where it has none."""
    own = {query: _codes(checklists.get(query), codes) for query in set(answers.query_ids)}
    cells = np.full(len(answers.p_yes), -1, np.int64)
    for query, start, stop in zip(
        answers.query_ids, answers.offsets[:-1].tolist(), answers.offsets[1:].tolist(), strict=True
    ):
        found = own[query][: stop - start]
        cells[start : start + len(found)] = found
    return cells


def _codes(checklist: Checklist | None, codes: Mapping[str, int]) -> Ints:
    groups = () if checklist is None else checklist.groups or ()
    return np.array([codes.get(name, -1) for name in groups], np.int64)


def _asked(
    answers: AnswerTable, checklists: Mapping[str, Checklist], codes: Mapping[str, int]
) -> tuple[Ints, Ints]:
    """Return how many items of each part every query has, and each response's query."""
    queries, places = _numbered(answers.query_ids)
    asked = np.zeros((len(queries), len(codes)), np.int64)
    for row, query in enumerate(queries):
        found = _codes(checklists.get(query), codes)
        np.add.at(asked[row], found[found >= 0], 1)
    return asked, places
