"""What candidates get in each group of items: one score a dimension and a sub-dimension.

A response's score in a group is the mean `p_yes` of the group's items; missing answers are left out
and counted. A candidate's is the mean over its responses. Items weigh the same, whatever a learned
scorer gives them: a group's score says what the judge answered.

Groups whose names begin alike up to a colon ("coherence: order") are of one dimension, and so is a
group that is called like it. A dimension of several groups has a score as a whole, over all its
items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Ints
from rocketeval.records import Checklist, Interval
from rocketeval.scoring.answers import AnswerTable
from rocketeval.stats.bootstrap import Resamples, interval, ratios
from rocketeval.workers import one_blas_thread

Codes = NDArray[np.int32]

MOST_GROUPS = 40
"""Of more, the first are summed up: beyond a few dozen they are no dimensions of quality."""
_JOINT = ": "
_NO_GROUP = -1
_CELLS_AT_ONCE = 8_000_000
"""Queries by candidates by groups that are resampled together."""


@dataclass(frozen=True, slots=True)
class Group:
    """Items that belong together."""

    name: str
    dimension: str | None
    """What stands before the colon in its name, or the name that others have there; else None."""
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
    queries: int
    """Queries whose checklist has items of the group."""


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
    dimensions = {dimension_of(name) for name in names}
    together: dict[str, list[str]] = {}
    for name in names:
        together.setdefault(dimension_of(name) or name, []).append(name)
    found = []
    for first, parts in together.items():
        dimension = first if first in dimensions else None
        if len(parts) > 1:
            found.append(Group(first, dimension, tuple(parts)))
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
    queries, places = _numbered(answers.query_ids)
    coded = _coded([checklists.get(query) for query in queries], codes)
    asked = _Sorted(np.concatenate(coded) if coded else np.empty(0, np.int32), len(codes))
    asking = np.repeat(np.arange(len(coded)), [len(own) for own in coded])
    rows = np.repeat(np.arange(len(answers)), answers.items)
    cells = _cell_codes(answers, places, coded)
    cells[np.isnan(answers.p_yes)] = _NO_GROUP
    given = _Sorted(cells, len(codes))
    for group in groups:
        own = [codes[part] for part in group.parts]
        chosen = given.places(own)
        answered = np.bincount(rows[chosen], minlength=len(answers))
        totals = np.bincount(rows[chosen], weights=answers.p_yes[chosen], minlength=len(answers))
        scores = np.full(len(answers), np.nan)
        np.divide(totals, answered, out=scores, where=answered > 0)
        items = np.bincount(asking[asked.places(own)], minlength=len(queries))
        yield GroupColumn(group, scores, items[places], answered, int((items > 0).sum()))


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
    if not groups or not ranked or not len(answers):
        return (), 0
    queries, rows = _numbered(answers.query_ids)
    columns = {name: column for column, name in enumerate(ranked)}
    # Whoever is not ranked goes to a last column, which is left out.
    places = np.array([columns.get(name, len(columns)) for name in answers.candidates], np.int64)
    width = len(columns) + 1
    at_once = max(1, _CELLS_AT_ONCE // (len(queries) * width))
    resamples = Resamples(len(queries), bootstrap, seed)
    made = group_columns(answers, checklists, groups[:MOST_GROUPS])
    found: list[GroupScore] = []
    while batch := list(islice(made, at_once)):
        scores = np.full((len(queries), len(batch), width), np.nan)
        for number, column in enumerate(batch):
            scores[rows, number, places] = column.scores
        with one_blas_thread():
            means = column_means(scores.reshape(len(queries), -1), resamples, level)
        for number, column in enumerate(batch):
            lacking = np.bincount(places, column.items - column.answered, width)
            own = zip(ranked, means[number * width :], lacking.tolist(), strict=False)
            found.append(
                GroupScore(
                    column.group.name,
                    column.group.dimension,
                    column.group.whole,
                    column.queries,
                    tuple(GroupMean(name, *mean, missing=int(n)) for name, mean, n in own),
                )
            )
    return tuple(found), max(0, len(groups) - MOST_GROUPS)


def column_means(
    scores: Floats, resamples: Iterable[Floats], level: float
) -> list[tuple[Interval | None, int]]:
    """Return each column's mean over the queries, one per row, and how many it rests on."""
    present = ~np.isnan(scores)
    totals, counts = np.where(present, scores, 0.0), present.astype(np.float64)
    draws = ratios(resamples, totals, counts)
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


class _Sorted:
    """Where each code stands: found without going through all of them for every group."""

    def __init__(self, codes: Codes, most: int) -> None:
        self._order = np.argsort(codes, kind="stable")
        self._starts = np.searchsorted(codes[self._order], np.arange(most + 1))

    def places(self, codes: Sequence[int]) -> Ints:
        """Return the places of some codes, from the first to the last."""
        found = [self._order[self._starts[code] : self._starts[code + 1]] for code in codes]
        return np.sort(np.concatenate(found)) if len(found) > 1 else found[0]


def _coded(checklists: Sequence[Checklist | None], codes: Mapping[str, int]) -> list[Codes]:
    """Return the code of every item's group; equal checklists are looked at once."""
    known: dict[tuple[str, ...], Codes] = {}
    found = []
    for checklist in checklists:
        groups = () if checklist is None else checklist.groups or ()
        if groups not in known:
            known[groups] = np.array([codes.get(name, _NO_GROUP) for name in groups], np.int32)
        found.append(known[groups])
    return found


def _cell_codes(answers: AnswerTable, places: Ints, coded: Sequence[Codes]) -> Codes:
    """Return the code of every answer's group."""
    cells = np.full(len(answers.p_yes), _NO_GROUP, np.int32)
    for query, start, stop in zip(
        places.tolist(), answers.offsets[:-1].tolist(), answers.offsets[1:].tolist(), strict=True
    ):
        found = coded[query][: stop - start]
        cells[start : start + len(found)] = found
    return cells
