"""`rocketeval explain` as a person uses it: tables, JSON, and nothing that redraws a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.in_process import cli, run_scripted
from support.make import write_benchmark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs of a benchmark with a candidate's name that could redraw a terminal."""
    folder = tmp_path_factory.mktemp("explain")
    write_benchmark(folder / "benchmark")
    responses = folder / "benchmark" / "responses"
    (folder / "benchmark" / "votes.jsonl").unlink()
    (responses / "left.jsonl").rename(responses / "[red]\x1b[31mleft.jsonl")
    run_scripted(folder, "first", "second")
    return folder


def test_a_candidate_is_explained_in_tables_and_in_json(folder: Path) -> None:
    """Losses and strengths with query, item and both probabilities; --top limits them."""
    shown = cli(folder, "explain", "first.yaml", "--candidate", "right").stdout
    assert shown.startswith("right is in place ")
    assert "points per query against its neighbors, over 3 queries" in shown
    assert "Largest losses" in shown
    assert "Largest strengths" in shown
    assert "no interval" in shown
    call = ("explain", "first.yaml", "--candidate", "right", "--top", "1", "--json")
    found = json.loads(cli(folder, *call).stdout)
    assert found["candidate"] == "right"
    assert len(found["losses"]) <= 1
    assert len(found["losses"]) + len(found["strengths"]) >= 1


def test_a_query_is_explained(folder: Path) -> None:
    """Each item with its weight, its answers and how far it follows the score."""
    shown = cli(folder, "explain", "first.yaml", "--query", "sea").stdout
    for text in ("Items over 2 responses", "Is it right?", "0.50", "mean yes", "with score"):
        assert text in shown


def test_everybody_is_explained_without_a_name(folder: Path) -> None:
    """The overview lists every candidate with its largest loss, and the report stays."""
    shown = cli(folder, "explain", "first.yaml").stdout
    assert "points lost per query" in shown
    assert "right" in shown
    assert (folder / "runs" / "first" / "report.html").exists()


def test_untrusted_names_are_printed_harmlessly(folder: Path) -> None:
    """A name cannot colour or redraw the terminal, and is not read as markup."""
    for call in (("explain", "first.yaml"), ("run", "--only", "rank", "second.yaml")):
        shown = cli(folder, *call).stdout
        assert "\x1b" not in shown
        assert "[red]\ufffd[31mleft" in shown


def test_one_question_at_a_time(folder: Path) -> None:
    """Both options together are a usage error; a wrong name is answered with the nearest."""
    both = cli(folder, "explain", "first.yaml", "--query", "sea", "--candidate", "right", code=2)
    assert "not both" in both.stderr
    wrong = cli(folder, "explain", "first.yaml", "--candidate", "rihgt", code=2)
    assert "Did you mean 'right'?" in wrong.stderr


def test_the_ranking_says_in_words_what_cannot_be_told_apart(folder: Path) -> None:
    """Three queries separate nobody, and the terminal says whom."""
    assert "cannot be told apart from" in cli(folder, "run", "--only", "rank", "second.yaml").stdout
