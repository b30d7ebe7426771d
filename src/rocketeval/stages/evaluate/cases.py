"""Which responses, or pairs of them, an evaluator decides about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Self

from rocketeval.errors import BenchmarkError
from rocketeval.evolve.cases import Case, cases_from_votes
from rocketeval.evolve.evaluator import Evaluator
from rocketeval.records import Vote
from rocketeval.store.inputs import Inputs

MOST_CANDIDATES = 20
"""Responses to one query of which the judge is shown every two side by side: 190 pairs."""


class Cases:
    """All cases of a run, query by query; BenchmarkError if there are none."""

    def __init__(
        self, candidates: Mapping[str, Sequence[str]], votes: Iterable[Vote], evaluator: Evaluator
    ) -> None:
        self._candidates = candidates
        # A pair that was voted on, and so perhaps learned from, is shown in the order of its vote:
        # what was asked before is not asked again the other way round.
        self._voted = {(case.query_id, *case.candidates) for case in cases_from_votes(votes)}
        self._evaluator = evaluator
        if not self.count():
            raise BenchmarkError(
                "No query has two responses, and this evaluator compares every two.",
                hint="Add responses of another candidate, or use an evaluator of single responses "
                "(`evolve.gold: labels`).",
            )

    @classmethod
    def of(cls, inputs: Inputs, evaluator: Evaluator) -> Self:
        """Return the cases of a run that is loaded."""
        candidates: dict[str, list[str]] = {}
        for head in inputs.heads():
            candidates.setdefault(head.query_id, []).append(head.candidate)
        return cls(candidates, inputs.votes(), evaluator)

    def decided(self) -> Iterator[tuple[str, list[Case]]]:
        """Yield each query with what is decided about its responses: one by one, or every two."""
        for query_id, names in self._candidates.items():
            yield query_id, self._pairs(query_id) if self._pairwise else singles(query_id, names)

    def asked(self) -> list[Case]:
        """Return what the judge is asked about: pairs only where it sees two at once."""
        if self._evaluator.asking == "pairs":
            self._refuse_many()
            return [case for query_id in self._candidates for case in self._pairs(query_id)]
        return [
            case
            for query_id, names in self._candidates.items()
            for case in singles(query_id, names)
        ]

    def count(self) -> int:
        """Return how many decisions there are."""
        sizes = (len(names) for names in self._candidates.values())
        return sum(size * (size - 1) // 2 if self._pairwise else size for size in sizes)

    @property
    def lonely(self) -> int:
        """How many responses have no other to be compared with."""
        alone = sum(len(names) == 1 for names in self._candidates.values())
        return alone if self._pairwise else 0

    @property
    def _pairwise(self) -> bool:
        return self._evaluator.task == "pairs"

    def _pairs(self, query_id: str) -> list[Case]:
        return [
            Case(query_id, (b, a) if (query_id, b, a) in self._voted else (a, b), None)
            for a, b in combinations(self._candidates[query_id], 2)
        ]

    def _refuse_many(self) -> None:
        query_id, names = max(self._candidates.items(), key=lambda one: len(one[1]))
        if len(names) > MOST_CANDIDATES:
            pairs = len(names) * (len(names) - 1) // 2
            raise BenchmarkError(
                f"Query {query_id!r} has {len(names)} responses: this evaluator shows the judge "
                f"every two of them, which makes {pairs:,} pairs.",
                hint=f"Choose at most {MOST_CANDIDATES} with `benchmark.candidates`, or evolve an "
                "evaluator with `evolve.asking: each`.",
            )


def singles(query_id: str, candidates: Sequence[str]) -> list[Case]:
    """Return a case for each response to a query."""
    return [Case(query_id, (candidate,), None) for candidate in candidates]
