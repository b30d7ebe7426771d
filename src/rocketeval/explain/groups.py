"""Mean answers of candidates per item group: one score per dimension and sub-dimension.

A response's score in a group is the mean `p_yes` of the group's items; missing answers are left out
and counted. A candidate's score is the mean over its responses. Items have equal weights, even with
a learned scorer, so that a group's score reflects the judge's answers. Items with weights count by
them. With the scorer `points`, a score is points earned over the points that the group's items can
earn; a mean is clipped to 0 to 1, and a group of penalties alone has none.

Groups that share a prefix before a colon ("coherence: order") form a dimension, together with a
group of that name. A dimension with several groups also has a score over all its items.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Ints
from rocketeval.ranking.stage import clip_interval
from rocketeval.records import Checklist, Interval
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.rubric import POINTS, Rubric, answers_are
from rocketeval.stats.bootstrap import Resamples, known_interval, ratios
from rocketeval.workers import one_blas_thread

Codes = NDArray[np.int32]

MOST_GROUPS = 40
"""Maximum number of groups; further ones are left out."""
_JOINT = ": "
_NO_GROUP = -1
_CELLS_AT_ONCE = 8_000_000
"""Maximum cells (queries x candidates x groups) resampled together."""


@dataclass(frozen=True, slots=True)
class Group:
    """A group of items, or a dimension of several groups."""

    name: str
    dimension: str | None
    """The prefix before the colon, or the own name if others have it as prefix; else None."""
    parts: tuple[str, ...]
    """Names of its groups: several for a whole dimension."""

    @property
    def whole(self) -> bool:
        """Return whether this is a whole dimension with several groups."""
        return len(self.parts) > 1


@dataclass(frozen=True, eq=False)
class GroupColumn:
    """Scores of all responses in one group."""

    group: Group
    scores: Floats
    """Mean `p_yes` of the group's items; NaN without answers."""
    items: Ints
    """Number of the group's items in the response's checklist."""
    answered: Ints
    queries: int
    """Queries with items of the group."""


@dataclass(frozen=True, slots=True)
class GroupMean:
    """Mean of one candidate in a group."""

    candidate: str
    mean: Interval | None
    """Mean over its responses; None without answers, or without points to earn. Bounds are NaN with
    too few queries."""
    responses: int
    """Responses with an answer."""
    missing: int
    """Number of missing answers."""


@dataclass(frozen=True, slots=True)
class GroupScore:
    """Means of all candidates in a group."""

    group: str
    dimension: str | None
    whole: bool
    """True for a whole dimension with several groups."""
    queries: int
    """Queries with items of the group."""
    candidates: tuple[GroupMean, ...]
    """In ranking order."""


def find_groups(checklists: Mapping[str, Checklist]) -> list[Group]:
    """Return the groups of all checklists, each whole dimension before its parts.

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
    """Return the prefix before the colon of a group's name; None without one."""
    dimension, joint, part = group.partition(_JOINT)
    return dimension if joint and dimension and part else None


def group_columns(
    answers: AnswerTable,
    checklists: Mapping[str, Checklist],
    groups: Sequence[Group],
    *,
    points: bool = False,
) -> Iterator[GroupColumn]:
    """Yield the scores of all responses, in table order, for each group."""
    codes = {name: code for code, name in enumerate(_parts(groups))}
    queries, places = _numbered(answers.query_ids)
    coded = _coded([checklists.get(query) for query in queries], codes)
    asked = _Sorted(np.concatenate(coded) if coded else np.empty(0, np.int32), len(codes))
    asking = np.repeat(np.arange(len(coded)), [len(own) for own in coded])
    rows = np.repeat(np.arange(len(answers)), answers.items)
    cells = _cell_codes(answers, places, coded)
    cells[np.isnan(answers.p_yes)] = _NO_GROUP
    given = _Sorted(cells, len(codes))
    weights = answers.item_weights
    earned = weights * answers.p_yes
    if points and answers.rubric is not None:
        counted = answers.rubric.weights * answers.rubric.applicable
        earned, weights = counted * answers.rubric.values, np.maximum(counted, 0.0)
    for group in groups:
        own = [codes[part] for part in group.parts]
        chosen = given.places(own)
        answered = np.bincount(rows[chosen], minlength=len(answers))
        totals, shares = (
            np.bincount(rows[chosen], weights=own_values[chosen], minlength=len(answers))
            for own_values in (earned, weights)
        )
        scores = np.full(len(answers), np.nan)
        np.divide(totals, shares, out=scores, where=shares > 0)
        items = np.bincount(asking[asked.places(own)], minlength=len(queries))
        yield GroupColumn(group, scores, items[places], answered, int((items > 0).sum()))


def score_groups(
    answers: AnswerTable,
    checklists: Mapping[str, Checklist],
    ranked: Sequence[str],
    *,
    clusters: Mapping[str, str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    points: bool = False,
) -> tuple[tuple[GroupScore, ...], int]:
    """Return the means of ranked candidates per group, and the number of groups left out.

    Intervals resample queries.
    """
    groups = find_groups(checklists)
    if not groups or not ranked or not len(answers):
        return (), 0
    queries, rows = _numbered(answers.query_ids)
    columns = {name: column for column, name in enumerate(ranked)}
    # Unranked candidates go to a last column, which is dropped.
    places = np.array([columns.get(name, len(columns)) for name in answers.candidates], np.int64)
    width = len(columns) + 1
    at_once = max(1, _CELLS_AT_ONCE // (len(queries) * width))
    own_cluster = _numbered([(clusters or {}).get(query, query) for query in queries])[1]
    resamples = Resamples(int(own_cluster.max()) + 1, bootstrap, seed)
    made = group_columns(answers, checklists, groups[:MOST_GROUPS], points=points)
    found: list[GroupScore] = []
    while batch := list(islice(made, at_once)):
        scores = np.full((len(queries), len(batch), width), np.nan)
        for number, column in enumerate(batch):
            scores[rows, number, places] = column.scores
        with one_blas_thread():
            means = column_means(scores.reshape(len(queries), -1), resamples, level, own_cluster)
        if points:
            means = [(mean and clip_interval(mean, (0.0, 1.0)), given) for mean, given in means]
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
    scores: Floats, resamples: Iterable[Floats], level: float, clusters: Ints
) -> list[tuple[Interval | None, int]]:
    """Return each column's mean over the queries (rows), and the number of queries.

    `clusters` numbers the cluster of each row; `resamples` draw clusters.
    """
    present = ~np.isnan(scores)
    totals, counts = np.where(present, scores, 0.0), present.astype(np.float64)
    if int(clusters.max(initial=-1)) + 1 < len(scores):
        summed = np.zeros((2, int(clusters.max()) + 1, scores.shape[1]))
        np.add.at(summed[0], clusters, totals)
        np.add.at(summed[1], clusters, counts)
        totals, counts = summed
    draws = ratios(resamples, totals, counts)
    independent = (counts > 0).sum(axis=0).tolist()
    found: list[tuple[Interval | None, int]] = []
    for column, given in enumerate(present.sum(axis=0).tolist()):
        mean = None
        if given:
            value = float(totals[:, column].sum()) / given
            draw, queries = draws[:, column], independent[column]
            mean = known_interval(value, draw, queries=queries, level=level)
        found.append((mean, given))
    return found


def groups_are(scorer: str, rubric: Rubric) -> str:
    """Return what the mean of an item group is."""
    if scorer == POINTS:
        return (
            "Points earned over the points that the items of a group can earn, mean over "
            "responses, clipped to 0-1. A group without a positive weight has no mean."
        )
    rule = rubric.rule or "All items have equal weight here."
    return f"{answers_are(rubric)}, mean over the items of a group, then over responses. {rule}"


def _parts(groups: Sequence[Group]) -> list[str]:
    return list(dict.fromkeys(part for group in groups for part in group.parts))


def _numbered(names: Sequence[str]) -> tuple[list[str], Ints]:
    """Return the distinct names, and the index of each name among them."""
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return list(numbers), np.array([numbers[name] for name in names], np.int64)


class _Sorted:
    """Index of the positions of each code, sorted once for fast lookup."""

    def __init__(self, codes: Codes, most: int) -> None:
        self._order = np.argsort(codes, kind="stable")
        self._starts = np.searchsorted(codes[self._order], np.arange(most + 1))

    def places(self, codes: Sequence[int]) -> Ints:
        """Return the positions of the codes in ascending order."""
        found = [self._order[self._starts[code] : self._starts[code + 1]] for code in codes]
        return np.sort(np.concatenate(found)) if len(found) > 1 else found[0]


def _coded(checklists: Sequence[Checklist | None], codes: Mapping[str, int]) -> list[Codes]:
    """Return the group code of each item; identical checklists are coded once."""
    known: dict[tuple[str, ...], Codes] = {}
    found = []
    for checklist in checklists:
        groups = () if checklist is None else checklist.groups or ()
        if groups not in known:
            known[groups] = np.array([codes.get(name, _NO_GROUP) for name in groups], np.int32)
        found.append(known[groups])
    return found


def _cell_codes(answers: AnswerTable, places: Ints, coded: Sequence[Codes]) -> Codes:
    """Return the group code of each answer."""
    cells = np.full(len(answers.p_yes), _NO_GROUP, np.int32)
    for query, start, stop in zip(
        places.tolist(), answers.offsets[:-1].tolist(), answers.offsets[1:].tolist(), strict=True
    ):
        found = coded[query][: stop - start]
        cells[start : start + len(found)] = found
    return cells
