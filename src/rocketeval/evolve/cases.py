"""Cases: what an evaluator is to decide, with what people decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rocketeval.evolve.perspective import Perspective
from rocketeval.records import Label, Vote, Winner

Floats = NDArray[np.float64]
Task = Literal["pairs", "scores"]
OUTCOMES: tuple[Winner, ...] = ("b", "tie", "a")
"""In the order of classes: -1, 0, 1 from the first response's side, plus one."""


@dataclass(frozen=True, slots=True)
class Case:
    """A response to be scored, or two responses to be compared, with the gold."""

    query_id: str
    candidates: tuple[str, ...]
    """One candidate, or two: a and b."""
    gold: float | None
    """Its label; of a pair 1 when a wins, -1 when b does, 0 for a tie; None when nobody said."""
    same_as: str | None = None
    """The first query that says the same, where this one is not that: no fold parts the two."""

    @property
    def name(self) -> str:
        """How it is called for people."""
        return f"{self.query_id}: {' vs '.join(self.candidates)}"


@dataclass(frozen=True, eq=False)
class CaseTable:
    """What a judge said about every case: one row a case, one column a perspective.

    A column about responses holds answers from 0 to 1, or, of pairs, from -1 (for b) to 1 (for a).
    A column about queries holds p_yes. NaN is a missing answer.
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
        """Whether the cases are pairs."""
        return bool(self.cases) and len(self.cases[0].candidates) == 2

    @property
    def task(self) -> Task:
        """What is to be decided about a case."""
        return "pairs" if self.pairs else "scores"

    @property
    def gold(self) -> Floats:
        """The gold of every case; NaN where there is none."""
        return np.array([np.nan if case.gold is None else case.gold for case in self.cases])

    @property
    def query_ids(self) -> list[str]:
        """The query of every case, under one name if several say the same: no fold parts them."""
        return [case.same_as or case.query_id for case in self.cases]

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> CaseTable:
        """Return the table of the given rows, in their order."""
        places = np.asarray(rows, dtype=np.intp)
        return CaseTable(
            tuple(self.cases[row] for row in places.tolist()),
            self.about_responses,
            self.answers[places],
            self.about_queries,
            self.traits[places],
        )

    def narrow(self, kept: Iterable[str]) -> CaseTable:
        """Return the table with the columns of the perspectives with these ids alone."""
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


def cases_from_votes(votes: Iterable[Vote]) -> tuple[Case, ...]:
    """Return one case for every two candidates that were voted on: what most voters said.

    As many votes for the one as for the other, or for a tie, is a tie. The candidate that is `a`
    in the first vote stays so.

    >>> votes = [Vote("q", "x", "y", "a"), Vote("q", "y", "x", "b"), Vote("q", "x", "y", "tie")]
    >>> [(case.name, case.gold) for case in cases_from_votes(votes)]
    [('q: x vs y', 1.0)]
    """
    ballots: dict[tuple[str, str, str], Counter[float]] = {}
    for vote in votes:
        side = {"a": 1.0, "b": -1.0, "tie": 0.0}[vote.winner]
        there = (vote.query_id, vote.candidate_a, vote.candidate_b)
        turned = (vote.query_id, vote.candidate_b, vote.candidate_a)
        if turned in ballots:
            ballots[turned][-side] += 1
        else:
            ballots.setdefault(there, Counter())[side] += 1
    return tuple(
        Case(query_id, (first, second), _most(counted))
        for (query_id, first, second), counted in ballots.items()
    )


def cases_from_labels(labels: Iterable[Label]) -> tuple[Case, ...]:
    """Return one case for every labelled response: the mean of its labels."""
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
