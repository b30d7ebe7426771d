"""The quickstart benchmark is complete, consistent and balanced."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from importlib.resources import files
from itertools import combinations, pairwise
from statistics import mean
from typing import Any

import pytest

QUICKSTART = files("rocketeval").joinpath("examples").joinpath("quickstart")
BEST_TO_WORST = ("careful", "solid", "brief", "rambling", "broken")

Row = dict[str, Any]


def read(*path: str) -> list[Row]:
    file = QUICKSTART
    for part in path:
        file = file.joinpath(part)
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def query_ids() -> list[str]:
    return [query["id"] for query in read("queries.jsonl")]


@pytest.fixture(scope="module")
def texts() -> dict[tuple[str, str], str]:
    return {
        (row["query_id"], candidate): row["text"]
        for candidate in BEST_TO_WORST
        for row in read("responses", f"{candidate}.jsonl")
    }


@pytest.fixture(scope="module")
def votes() -> list[Row]:
    return read("votes.jsonl")


@pytest.fixture(scope="module")
def labels() -> dict[tuple[str, str], float]:
    return {(row["query_id"], row["candidate"]): row["value"] for row in read("labels.jsonl")}


def test_twelve_distinct_queries(query_ids: list[str]) -> None:
    """There are twelve queries, each with its own id."""
    assert len(query_ids) == len(set(query_ids)) == 12


def test_queries_have_only_known_fields() -> None:
    """Every query has a text and a category, and no unknown field."""
    for query in read("queries.jsonl"):
        assert query["text"].strip()
        assert query["category"].strip()
        assert query.keys() <= {"id", "text", "category", "history", "reference"}


def test_one_query_continues_a_conversation() -> None:
    """One query has a history, and it ends with the assistant's turn."""
    histories = [query["history"] for query in read("queries.jsonl") if "history" in query]
    assert [[turn["role"] for turn in history] for history in histories] == [["user", "assistant"]]


def test_response_files_are_the_five_candidates() -> None:
    """The responses folder has exactly one file per candidate."""
    names = {file.name for file in QUICKSTART.joinpath("responses").iterdir()}
    assert names == {f"{candidate}.jsonl" for candidate in BEST_TO_WORST}


@pytest.mark.parametrize("candidate", BEST_TO_WORST)
def test_every_candidate_responds_once_to_every_query(candidate: str, query_ids: list[str]) -> None:
    """A candidate has exactly one non-empty response to each query, in the queries' order."""
    responses = read("responses", f"{candidate}.jsonl")
    assert [row["query_id"] for row in responses] == query_ids
    assert all(row["text"].strip() for row in responses)


def test_every_query_has_one_checklist(query_ids: list[str]) -> None:
    """Checklists and queries match one to one."""
    assert [row["query_id"] for row in read("checklists.jsonl")] == query_ids


def test_checklists_are_short_lists_of_questions() -> None:
    """A checklist has five to seven distinct items and every item is a question."""
    for checklist in read("checklists.jsonl"):
        items = checklist["items"]
        assert 5 <= len(items) <= 7
        assert len(set(items)) == len(items)
        assert all(item.endswith("?") for item in items)


def test_every_response_has_one_label(query_ids: list[str]) -> None:
    """Each of the 60 responses has exactly one label, between 1 and 10."""
    rows = read("labels.jsonl")
    labelled = Counter((row["query_id"], row["candidate"]) for row in rows)
    assert labelled == Counter((q, c) for q in query_ids for c in BEST_TO_WORST)
    assert all(1 <= row["value"] <= 10 for row in rows)


def test_mean_labels_follow_the_promised_order(
    query_ids: list[str], labels: dict[tuple[str, str], float]
) -> None:
    """Overall the candidates rank as the README says, with a clear gap between neighbors."""
    means = [mean(labels[q, candidate] for q in query_ids) for candidate in BEST_TO_WORST]
    assert all(better - worse > 1 for better, worse in pairwise(means))


def test_neighbors_swap_as_documented(labels: dict[tuple[str, str], float]) -> None:
    """The labels disagree with the overall order exactly where the README says."""
    swapped = {
        (query_id, worse)
        for (query_id, worse), value in labels.items()
        for better in BEST_TO_WORST[: BEST_TO_WORST.index(worse)]
        if value > labels[query_id, better]
    }
    assert swapped == {
        ("hike-list", "solid"),
        ("translate-train", "brief"),
        ("talk-plan", "rambling"),
        ("library-summary", "broken"),
        ("twisted-ankle", "broken"),
    }


def test_votes_name_known_queries_and_two_candidates(
    votes: list[Row], query_ids: list[str]
) -> None:
    """Every vote compares two known candidates on a known query, with six votes per query."""
    assert Counter(vote["query_id"] for vote in votes) == dict.fromkeys(query_ids, 6)
    for vote in votes:
        assert vote["candidate_a"] != vote["candidate_b"]
        assert {vote["candidate_a"], vote["candidate_b"]} <= set(BEST_TO_WORST)


def test_vote_winners_are_legal(votes: list[Row]) -> None:
    """A winner is a, b or tie, and all three occur."""
    assert {vote["winner"] for vote in votes} == {"a", "b", "tie"}


def test_votes_cover_all_pairs_evenly(votes: list[Row]) -> None:
    """Each of the ten pairs of candidates has seven or eight votes."""
    counts = Counter(frozenset((vote["candidate_a"], vote["candidate_b"])) for vote in votes)
    assert counts.keys() == {frozenset(pair) for pair in combinations(BEST_TO_WORST, 2)}
    assert set(counts.values()) <= {7, 8}


def test_votes_favor_no_side(votes: list[Row]) -> None:
    """Candidates and winners are about equally often on both sides."""
    for candidate in BEST_TO_WORST:
        left = sum(vote["candidate_a"] == candidate for vote in votes)
        right = sum(vote["candidate_b"] == candidate for vote in votes)
        assert abs(left - right) <= 2
    winners = Counter(vote["winner"] for vote in votes)
    assert abs(winners["a"] - winners["b"]) <= 4


def test_voters_share_the_work(votes: list[Row]) -> None:
    """Four voters cast equally many votes."""
    assert Counter(vote["voter"] for vote in votes) == dict.fromkeys(("v1", "v2", "v3", "v4"), 18)


def test_second_opinions_sometimes_disagree(votes: list[Row]) -> None:
    """Twelve pairs have two votes by different voters, and four of those disagree."""
    opinions: dict[tuple[str, frozenset[str]], dict[str, str]] = defaultdict(dict)
    for vote in votes:
        winner = vote.get(f"candidate_{vote['winner']}", "tie")
        pair = frozenset((vote["candidate_a"], vote["candidate_b"]))
        opinions[vote["query_id"], pair][vote["voter"]] = winner
    seconds = [list(by_voter.values()) for by_voter in opinions.values() if len(by_voter) == 2]
    assert len(seconds) == 12
    assert sum(first != second for first, second in seconds) == 4


def test_votes_mostly_follow_the_labels(
    votes: list[Row], labels: dict[tuple[str, str], float]
) -> None:
    """Of the votes with a winner, at least nine in ten prefer the higher label, but not all."""
    margins = [
        (
            labels[vote["query_id"], vote["candidate_a"]]
            - labels[vote["query_id"], vote["candidate_b"]]
        )
        * (1 if vote["winner"] == "a" else -1)
        for vote in votes
        if vote["winner"] != "tie"
    ]
    agreeing = mean(margin > 0 for margin in margins)
    assert 0.9 <= agreeing < 1


def test_length_is_no_proxy_for_quality(
    query_ids: list[str], texts: dict[tuple[str, str], str]
) -> None:
    """The longest response to every query is the rambling one, never the careful one."""
    for query_id in query_ids:
        longest = max(BEST_TO_WORST, key=lambda candidate: len(texts[query_id, candidate]))
        assert longest == "rambling"


def test_responses_stay_quick_to_judge(texts: dict[tuple[str, str], str]) -> None:
    """No response is longer than 150 words, so that a tiny judge on a CPU is fast."""
    assert max(len(text.split()) for text in texts.values()) <= 150


def test_careful_code_does_what_the_query_asks(texts: dict[tuple[str, str], str]) -> None:
    """The best coding response runs and gives the output that it shows."""
    code = texts["unique-words", "careful"].removeprefix("```python\n").removesuffix("```")
    scope: Row = {}
    exec(code, scope)
    assert scope["unique_words"]("Tea, cake. More tea") == ["tea", "cake", "more"]


def test_careful_extraction_equals_the_reference(texts: dict[tuple[str, str], str]) -> None:
    """The best extraction is JSON with exactly the content of the reference."""
    queries = {query["id"]: query for query in read("queries.jsonl")}
    reference = json.loads(queries["order-json"]["reference"])
    assert json.loads(texts["order-json", "careful"]) == reference


def test_readme_counts_the_items() -> None:
    """The README states the real number of items and answers."""
    items = sum(len(checklist["items"]) for checklist in read("checklists.jsonl"))
    readme = QUICKSTART.joinpath("README.md").read_text(encoding="utf-8")
    assert f"{items} items, {items * len(BEST_TO_WORST)} answers" in readme
