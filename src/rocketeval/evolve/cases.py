"""Cases that an evaluator decides, with their reference data and the judge's answers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Ints
from rocketeval.errors import ArtifactError
from rocketeval.evolve.perspective import Perspective
from rocketeval.hashing import content_hash
from rocketeval.records import Label, Query, Vote, Winner

Task = Literal["pairs", "scores"]
OUTCOMES: tuple[Winner, ...] = ("b", "tie", "a")
"""Outcomes in class order: class index = value (-1, 0, 1 from a's side) + 1."""


@dataclass(frozen=True, slots=True)
class Case:
    """A response to score or two responses to compare, with the reference value."""

    query_id: str
    candidates: tuple[str, ...]
    """One candidate, or two: a and b."""
    gold: float | None
    """The label; for a pair 1 if a wins, -1 if b wins, 0 for a tie; None if unknown."""
    group: str | None = None
    """Id of the first query of its group, if that is another one; see `query_groups`. Split, folds
    and resampling keep a group together."""

    @property
    def name(self) -> str:
        """Return a readable name."""
        return f"{self.query_id}: {' vs '.join(self.candidates)}"

    @property
    def unit(self) -> str:
        """Return the id of the first query of its group."""
        return self.group or self.query_id


@dataclass(frozen=True, eq=False)
class CaseTable:
    """The judge's answers: one row per case, one column per perspective.

    Columns about responses hold answers from 0 to 1, or for pairs from -1 (b is better) to 1 (a is
    better). Columns about queries hold p_yes. NaN is a missing answer.
    """

    cases: tuple[Case, ...]
    about_responses: tuple[Perspective, ...]
    answers: Floats
    """Shape (cases, about_responses)."""
    about_queries: tuple[Perspective, ...]
    traits: Floats
    """Shape (cases, about_queries)."""

    def __len__(self) -> int:
        return len(self.cases)

    @property
    def pairs(self) -> bool:
        """Return whether the cases are pairs."""
        return bool(self.cases) and len(self.cases[0].candidates) == 2

    @property
    def task(self) -> Task:
        """Return what is decided about a case: pairs or scores."""
        return "pairs" if self.pairs else "scores"

    @property
    def gold(self) -> Floats:
        """Return the reference value of every case; NaN if unknown."""
        return np.array([np.nan if case.gold is None else case.gold for case in self.cases])

    @property
    def query_ids(self) -> list[str]:
        """Return the query id of every case; queries of one group share the id of the first."""
        return [case.unit for case in self.cases]

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> CaseTable:
        """Return the given rows, in order."""
        places = np.asarray(rows, dtype=np.intp)
        return CaseTable(
            tuple(self.cases[row] for row in places.tolist()),
            self.about_responses,
            self.answers[places],
            self.about_queries,
            self.traits[places],
        )

    def narrow(self, kept: Iterable[str]) -> CaseTable:
        """Return the table with only the columns of these perspectives."""
        ids = set(kept)
        dependent = [place for place, each in enumerate(self.about_responses) if each.id in ids]
        independent = [place for place, each in enumerate(self.about_queries) if each.id in ids]
        return CaseTable(
            self.cases,
            tuple(self.about_responses[place] for place in dependent),
            self.answers[:, dependent],
            tuple(self.about_queries[place] for place in independent),
            self.traits[:, independent],
        )


def query_groups(queries: Iterable[Query]) -> dict[str, str]:
    """Return the id of the first query of each query's group.

    Queries with the same text or the same cluster are in one group, also if only through others.

    >>> turns = [Query("1", "Hi", cluster="x"), Query("2", "Why?", cluster="x"), Query("3", "Hi")]
    >>> query_groups([*turns, Query("4", "Bye")])
    {'1': '1', '2': '1', '3': '1', '4': '4'}
    """
    first: list[int] = []
    seen: dict[str | bytes, int] = {}

    def find(place: int) -> int:
        while first[place] != place:
            first[place] = first[first[place]]
            place = first[place]
        return place

    names = []
    for place, query in enumerate(queries):
        names.append(query.id)
        first.append(place)
        for mark in (query.content_hash, query.cluster):
            if mark is None:
                continue
            one, other = find(seen.setdefault(mark, place)), find(place)
            first[max(one, other)] = min(one, other)
    return {name: names[find(place)] for place, name in enumerate(names)}


def cases_from_votes(votes: Iterable[Vote]) -> tuple[Case, ...]:
    """Return one case per pair of candidates with votes, decided by majority.

    A draw between outcomes is a tie. The candidate that is `a` in the first vote stays `a`.

    >>> votes = [Vote("q", "x", "y", "a"), Vote("q", "y", "x", "b"), Vote("q", "x", "y", "tie")]
    >>> [(case.name, case.gold) for case in cases_from_votes(votes)]
    [('q: x vs y', 1.0)]
    """
    counted_votes: dict[tuple[str, str, str], Counter[float]] = {}
    for vote in votes:
        side = {"a": 1.0, "b": -1.0, "tie": 0.0}[vote.winner]
        there = (vote.query_id, vote.candidate_a, vote.candidate_b)
        turned = (vote.query_id, vote.candidate_b, vote.candidate_a)
        if turned in counted_votes:
            counted_votes[turned][-side] += 1
        else:
            counted_votes.setdefault(there, Counter())[side] += 1
    return tuple(
        Case(query_id, (first, second), _most(counted))
        for (query_id, first, second), counted in counted_votes.items()
    )


ONE_SIDED = 0.9
"""If one side wins at least this share of the decided pairs, the order of a pair gives its winner
away."""
FEWEST_CASES = 20
"""Minimum number of cases for a meaningful result."""


def is_one_sided(cases: Collection[Case]) -> bool:
    """Return whether one side of the pairs nearly always wins, as in files of chosen responses."""
    wins = sum(case.gold == 1.0 for case in cases)
    losses = sum(case.gold == -1.0 for case in cases)
    return len(cases) >= FEWEST_CASES and max(wins, losses) >= ONE_SIDED * (wins + losses) > 0


def oriented(cases: Collection[Case], queries: Iterable[Query]) -> tuple[Case, ...]:
    """Return the pairs; if they are one-sided, each in an order drawn from a hash.

    Without a second outcome nothing can be learned or selected, and a judge that sees both
    responses would only have to prefer the first. Other pairs keep their order.
    """
    if not is_one_sided(cases):
        return tuple(cases)
    texts = {query.id: query.content_hash.hex() for query in queries}
    return tuple(_drawn_order(case, texts.get(case.query_id, "")) for case in cases)


def _drawn_order(case: Case, text: str) -> Case:
    names = sorted(case.candidates)
    if content_hash("evolve order", text, names)[0] % 2:
        names.reverse()
    return case if tuple(names) == case.candidates else _turned(case)


def _turned(case: Case) -> Case:
    """Return the same pair with a and b exchanged."""
    gold = None if case.gold is None else 0.0 - case.gold
    return replace(case, candidates=case.candidates[::-1], gold=gold)


def in_both_orders(table: CaseTable) -> CaseTable:
    """Return a table's pairs, then the same pairs with a and b exchanged."""
    turned = tuple(map(_turned, table.cases))
    return stacked(table, replace(table, cases=turned, answers=-table.answers))


def cases_from_labels(labels: Iterable[Label]) -> tuple[Case, ...]:
    """Return one case per labeled response, with the mean of its labels."""
    values: dict[tuple[str, str], list[float]] = {}
    for label in labels:
        values.setdefault((label.query_id, label.candidate), []).append(label.value)
    return tuple(
        Case(query_id, (candidate,), float(np.mean(given)))
        for (query_id, candidate), given in values.items()
    )


def _most(counted: Counter[float]) -> float:
    (first, most), *others = counted.most_common()
    return first if not others or others[0][1] < most else 0.0


def answers_of(table: CaseTable, needed: Sequence[Perspective]) -> Floats:
    """Return the columns of the needed perspectives about responses, in order."""
    return _columns(table.answers, table.about_responses, needed)


def traits_of(table: CaseTable, needed: Sequence[Perspective]) -> Floats:
    """Return the columns of the needed perspectives about queries, in order."""
    return _columns(table.traits, table.about_queries, needed)


def stacked(table: CaseTable, more: CaseTable) -> CaseTable:
    """Return the cases of both tables, with the first one's perspectives."""
    return CaseTable(
        table.cases + more.cases,
        table.about_responses,
        np.vstack([table.answers, answers_of(more, table.about_responses)]),
        table.about_queries,
        np.vstack([table.traits, traits_of(more, table.about_queries)]),
    )


def _columns(values: Floats, there: Sequence[Perspective], needed: Sequence[Perspective]) -> Floats:
    place = {each.id: number for number, each in enumerate(there)}
    absent = [each for each in needed if each.id not in place]
    if absent:
        raise ArtifactError(
            f"{len(absent)} of the needed perspectives were not asked, the first of them "
            f"{absent[0].text!r}.",
            hint="Ask the judge all of them about these cases.",
        )
    columns: Floats = values[:, [place[each.id] for each in needed]]
    return columns


def query_numbers(query_ids: Sequence[str]) -> Ints:
    """Return the number of every case's query, from 0 in order of appearance.

    >>> query_numbers(["q7", "q2", "q7"]).tolist()
    [0, 1, 0]
    """
    place: dict[str, int] = {}
    return np.array([place.setdefault(query_id, len(place)) for query_id in query_ids], np.int64)


def by_query(values: Floats, query_ids: Sequence[str]) -> Floats:
    """Return the sums over each query's cases, per column.

    >>> by_query(np.array([[1.0], [2.0], [4.0]]), ["q7", "q2", "q7"]).tolist()
    [[5.0], [2.0]]
    """
    numbers = query_numbers(query_ids)
    sums = np.zeros((int(numbers.max(initial=-1)) + 1, values.shape[1]))
    np.add.at(sums, numbers, values)
    return sums


def error_of_mean(values: Floats, query_ids: Sequence[str]) -> float:
    """Return the standard error of a mean over cases, clustered by query.

    >>> error_of_mean(np.array([1.0, 1.0, 0.0, 0.0]), ["q1", "q1", "q2", "q2"])
    0.3535533905932738
    """
    sums = by_query((values - values.mean())[:, None], query_ids)
    return float(np.sqrt((sums**2).sum())) / len(values)


def medians(answers: Floats) -> Floats:
    """Return the median of each column's answers; 0 for a column without any.

    >>> medians(np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])).tolist()
    [2.0, 0.0]
    """
    found = np.zeros(answers.shape[1])
    some = ~np.isnan(answers).all(axis=0)
    if some.any():
        found[some] = np.nanmedian(answers[:, some], axis=0)
    return found


def filled(answers: Floats, fill: Floats) -> Floats:
    """Return the answers with missing values replaced by each column's `fill`."""
    return np.where(np.isnan(answers), fill, answers)
