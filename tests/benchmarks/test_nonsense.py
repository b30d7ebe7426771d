"""Nonsense in a benchmark is counted and named; what is clearly wrong is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rocketeval.pipeline import Run
from support.make import make_config, write_benchmark, write_jsonl


def notes(tmp_path: Path) -> str:
    """Return the warnings of the load stage."""
    return "\n".join(Run(make_config(tmp_path)).load().notes)


def vote(winner: str, voter: str = "ann", **changes: Any) -> dict[str, Any]:
    """Return a vote on one pair."""
    base = {"query_id": "sky", "candidate_a": "left", "candidate_b": "right"}
    return {**base, "winner": winner, "voter": voter, **changes}


@pytest.mark.parametrize(
    ("votes", "words"),
    [
        ([vote("a"), vote("b")], "contradict"),
        ([vote("a"), vote("a")], "repeat"),
        ([vote("a"), vote("a", candidate_a="right", candidate_b="left")], "contradict"),
    ],
)
def test_votes_of_one_voter_are_compared(
    tmp_path: Path, votes: list[dict[str, Any]], words: str
) -> None:
    """One voter who votes twice on a pair is named, in either order of the pair."""
    write_jsonl(write_benchmark(tmp_path / "benchmark") / "votes.jsonl", votes)
    found = notes(tmp_path)
    assert words in found
    assert "'ann' on 'sky'" in found


def test_votes_without_a_name_may_be_of_several_people(tmp_path: Path) -> None:
    """Votes that name no voter are not compared."""
    rows = [vote("a", "human"), vote("b", "human"), vote("a", "bob")]
    write_jsonl(write_benchmark(tmp_path / "benchmark") / "votes.jsonl", rows)
    assert notes(tmp_path) == ""


def test_labels_of_one_labeler_are_compared(tmp_path: Path) -> None:
    """A named labeler who labels a response twice is named."""
    row = {"query_id": "sky", "candidate": "left", "value": 5, "labeler": "ann"}
    write_jsonl(write_benchmark(tmp_path / "benchmark") / "labels.jsonl", [row, row])
    assert "labeled before: 1 of 2" in notes(tmp_path)


@pytest.mark.parametrize("other", ["LEFT", "\uff4c\uff45\uff46\uff54"])
def test_names_that_look_alike_are_named(tmp_path: Path, other: str) -> None:
    """Candidates that differ only by case or Unicode form are counted."""
    folder = write_benchmark(tmp_path / "benchmark")
    write_jsonl(folder / "responses" / f"{other}.jsonl", [{"query_id": "sky", "text": "x"}])
    assert "differ only by case or Unicode form: 1" in notes(tmp_path)


def test_misspelled_fields_are_named(tmp_path: Path) -> None:
    """A field that almost has the name of an optional one is named; any other is not."""
    folder = write_benchmark(tmp_path / "benchmark")
    rows = [{"id": q, "text": q, "refrence": "x", "note": "y"} for q in ("sky", "sea", "sun")]
    write_jsonl(folder / "queries.jsonl", rows)
    found = notes(tmp_path)
    assert "'refrence', which is not used: 3. Did you mean 'reference'?" in found
    assert "note'" not in found
