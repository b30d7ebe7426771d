"""The load stage applies the config's selection and refuses contradictions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from rocketeval.benchmarks.base import check_benchmark
from rocketeval.benchmarks.load import imported_checklists, load
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote


@dataclass
class InMemory:
    """A valid in-memory benchmark that tests can break."""

    the_queries: list[Query] = field(
        default_factory=lambda: [Query("q1", "one"), Query("q2", "two")]
    )
    the_responses: list[Response] = field(
        default_factory=lambda: [
            Response(query, candidate, "text") for candidate in "ab" for query in ("q1", "q2")
        ]
    )
    the_checklists: list[Checklist] = field(default_factory=lambda: [Checklist("q1", ("Is it?",))])
    the_labels: list[Label] = field(default_factory=lambda: [Label("q1", "a", 3.0)])
    the_votes: list[Vote] = field(default_factory=lambda: [Vote("q1", "a", "b", "tie")])
    the_ratings: list[Rating] = field(default_factory=lambda: [Rating("a", 1000.0)])

    @classmethod
    def create(cls, config: BenchmarkConfig) -> InMemory:
        return cls()

    def queries(self) -> Iterable[Query]:
        return iter(self.the_queries)

    def responses(self) -> Iterable[Response]:
        return iter(self.the_responses)

    def checklists(self) -> Iterable[Checklist]:
        return iter(self.the_checklists)

    def labels(self) -> Iterable[Label]:
        return iter(self.the_labels)

    def votes(self) -> Iterable[Vote]:
        return iter(self.the_votes)

    def ratings(self) -> Iterable[Rating]:
        return iter(self.the_ratings)


def choosing(**settings: Any) -> BenchmarkConfig:
    """A config with a selection."""
    return BenchmarkConfig.model_validate({"path": "x", **settings})


def read_all(benchmark: InMemory, config: BenchmarkConfig) -> None:
    """Read everything that the load stage reads."""
    loaded = load(benchmark, config)
    for records in (loaded.responses(), loaded.labels(), loaded.votes(), loaded.ratings()):
        list(records)


def refusal(benchmark: InMemory, **settings: Any) -> BenchmarkError:
    """The error raised by reading everything."""
    with pytest.raises(BenchmarkError) as refused:
        read_all(benchmark, choosing(**settings))
    return refused.value


def test_everything_is_loaded_by_default() -> None:
    """Without a choice nothing is left out."""
    loaded = load(InMemory(), choosing())
    assert [query.id for query in loaded.queries] == ["q1", "q2"]
    assert list(loaded.responses()) == InMemory().the_responses
    assert not loaded.skipped


def test_limit_keeps_the_first_queries_and_their_records() -> None:
    """Responses and reference data of later queries are left out and counted."""
    benchmark = InMemory(the_labels=[Label("q1", "a", 3.0), Label("q2", "a", 4.0)])
    loaded = load(benchmark, choosing(limit=1))
    assert [query.id for query in loaded.queries] == ["q1"]
    assert {response.query_id for response in loaded.responses()} == {"q1"}
    assert [label.query_id for label in loaded.labels()] == ["q1"]
    assert loaded.skipped == {"responses": 2, "labels": 1}


def test_limit_above_the_number_of_queries() -> None:
    """`limit: 100` of two queries is two queries."""
    assert len(load(InMemory(), choosing(limit=100)).queries) == 2


def test_candidates_are_selected_in_all_records() -> None:
    """Responses, labels, votes and ratings of others are left out and counted."""
    loaded = load(InMemory(), choosing(candidates=["b"]))
    assert {response.candidate for response in loaded.responses()} == {"b"}
    assert [*loaded.labels(), *loaded.votes(), *loaded.ratings()] == []
    assert loaded.skipped == {"responses": 2, "labels": 1, "votes": 1, "ratings": 1}


def test_unknown_candidate_suggests_the_nearest() -> None:
    """A typo in benchmark.candidates is reported with the known names."""
    benchmark = InMemory()
    benchmark.the_responses += [Response("q1", "gpt-4-turbo", "x")]
    error = refusal(benchmark, candidates=["a", "gpt4-turbo"])
    assert "'gpt4-turbo' has no response to any selected query" in error.message
    assert "Did you mean 'gpt-4-turbo'?" in error.hint


def test_two_queries_with_one_id_are_refused() -> None:
    """It would be unclear which one a response answers."""
    query = Query("q1", "one")
    assert refusal(InMemory(the_queries=[query, query])).message == (
        "Two queries have the id 'q1'."
    )


def test_two_responses_of_one_candidate_are_refused() -> None:
    """The hint says what to do with repeated responses."""
    benchmark = InMemory()
    benchmark.the_responses.append(Response("q2", "a", "again"))
    error = refusal(benchmark)
    assert error.message == "'a' has two responses to query 'q2'."
    assert "another candidate name" in error.hint


@pytest.mark.parametrize(
    ("kind", "record"),
    [
        ("responses", Response("q9", "a", "x")),
        ("labels", Label("q9", "a", 1.0)),
        ("votes", Vote("q9", "a", "b", "tie")),
    ],
)
def test_a_record_of_an_unknown_query_is_refused(kind: str, record: Any) -> None:
    """Unknown ids are reported, never silently dropped."""
    benchmark = InMemory()
    getattr(benchmark, f"the_{kind}").append(record)
    error = refusal(benchmark)
    assert error.message.startswith(f"The {kind} name a query 'q9'")
    assert kind in error.hint


def test_vote_between_a_candidate_and_itself_is_refused() -> None:
    """It must be a mistake in the file."""
    benchmark = InMemory(the_votes=[Vote("q1", "a", "a", "tie")])
    assert "'a' with itself" in refusal(benchmark).message


def test_two_ratings_of_one_candidate_are_refused() -> None:
    """It would be unclear which one is the reference."""
    benchmark = InMemory(the_ratings=[Rating("a", 1.0), Rating("a", 2.0)])
    assert refusal(benchmark).message == "The candidate 'a' has two ratings."


def test_an_empty_benchmark_is_refused() -> None:
    """Without queries, or without responses."""
    assert "no queries" in refusal(InMemory(the_queries=[])).message
    assert "no responses" in refusal(InMemory(the_responses=[])).message


def test_two_checklists_of_one_query_are_refused() -> None:
    """Otherwise the second would silently replace the first."""
    benchmark = InMemory()
    assert imported_checklists(benchmark) == {"q1": Checklist("q1", ("Is it?",))}
    benchmark.the_checklists *= 2
    with pytest.raises(BenchmarkError, match="Query 'q1' has two checklists"):
        imported_checklists(benchmark)


class Exhausted(InMemory):
    """A benchmark whose responses can be read only once."""

    def __init__(self) -> None:
        super().__init__()
        self._once = iter(self.the_responses)

    def responses(self) -> Iterable[Response]:
        return self._once


QUERY, RESPONSE = InMemory().the_queries[0], InMemory().the_responses[0]
BROKEN = {
    "no query": (InMemory(the_queries=[]), "there is no query"),
    "no response": (InMemory(the_responses=[]), "there is no response"),
    "read once": (Exhausted(), "`responses` yields something else the second time"),
    "wrong record": (InMemory(the_labels=[QUERY]), "`labels` yields .*, which is not a Label"),
    "id twice": (InMemory(the_queries=[QUERY] * 2), "the query id 'q1' occurs twice"),
    "blank id": (InMemory(the_queries=[replace(QUERY, id="")]), "a query id is ''"),
    "id of a number": (InMemory(the_queries=[replace(QUERY, id=1)]), "a query id is 1"),
    "text of a number": (InMemory(the_queries=[replace(QUERY, text=1)]), "is not a string"),
    "response twice": (InMemory(the_responses=[RESPONSE] * 2), "occurs twice"),
    "unknown query": (
        InMemory(the_responses=[replace(RESPONSE, query_id="q9")]),
        "the response of 'a' to 'q9' belongs to no query",
    ),
    "blank candidate": (InMemory(the_responses=[replace(RESPONSE, candidate=" ")]), "candidate"),
    "null response": (InMemory(the_responses=[replace(RESPONSE, text=None)]), "is not a string"),
    "list of items": (InMemory(the_checklists=[Checklist("q1", ["a"])]), "is not a tuple"),
    "items of numbers": (InMemory(the_checklists=[Checklist("q1", (1,))]), "is not all text"),
    "unknown checklist": (InMemory(the_checklists=[Checklist("q9", ("a",))]), "belongs to no q"),
    "label nan": (InMemory(the_labels=[Label("q1", "a", float("nan"))]), "'q1' is nan"),
    "unknown label": (InMemory(the_labels=[Label("q9", "a", 1.0)]), "belongs to no query"),
    "winner": (InMemory(the_votes=[Vote("q1", "a", "b", "model_a")]), "the winner 'model_a'"),
    "against itself": (InMemory(the_votes=[Vote("q1", "a", "a", "tie")]), "with itself"),
    "rated twice": (InMemory(the_ratings=[Rating("a", 1.0)] * 2), "rated candidate 'a' occurs tw"),
    "rating inf": (InMemory(the_ratings=[Rating("a", float("inf"))]), "'a' is rated inf"),
}


def test_public_check_accepts_a_valid_benchmark() -> None:
    """The base of the broken ones below."""
    check_benchmark(InMemory())


@pytest.mark.parametrize(("benchmark", "problem"), BROKEN.values(), ids=BROKEN.keys())
def test_public_check_finds_each_violation(benchmark: InMemory, problem: str) -> None:
    """Every rule of `check_benchmark` can fail, with its own message."""
    with pytest.raises(AssertionError, match=problem):
        check_benchmark(benchmark)
