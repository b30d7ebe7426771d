"""End-to-end tests of `rocketeval explain`: tables, JSON, and safe output."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest

from rocketeval import ScriptedEngine, evaluate
from support.in_process import cli, run_scripted
from support.make import write_benchmark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs with a candidate whose name has terminal control characters."""
    folder = tmp_path_factory.mktemp("explain")
    write_benchmark(folder / "benchmark")
    responses = folder / "benchmark" / "responses"
    (folder / "benchmark" / "votes.jsonl").unlink()
    (responses / "left.jsonl").rename(responses / "[red]\x1b[31mleft.jsonl")
    run_scripted(folder, "first", "second")
    return folder


def test_candidate_is_explained_in_tables_and_json(folder: Path) -> None:
    """Losses and strengths are shown, limited by --top."""
    shown = cli(folder, "explain", "first.yaml", "--candidate", "right").stdout
    assert shown.startswith("right is in place ")
    assert "points per query" in shown
    assert "3 queries" in shown
    assert "Largest losses" in shown
    assert "Largest strengths" in shown
    assert "no interval" in shown
    call = ("explain", "first.yaml", "--candidate", "right", "--top", "1", "--json")
    found = json.loads(cli(folder, *call).stdout)
    assert found["candidate"] == "right"
    assert len(found["losses"]) <= 1
    assert len(found["losses"]) + len(found["strengths"]) >= 1


def test_queries_without_ids_are_named_by_their_text(tmp_path: Path) -> None:
    """An id that is a hash comes with the start of the query, in `explain` and `lint`."""
    rows = [
        {"question": f"Why is\n \x1b[31mthing {n} {'so ' * 30}?", "model": who, "output": who}
        for n in range(2)
        for who in ("good", "bad")
    ]
    judge = ScriptedEngine(lambda prefix, item: 0.9 if "good" in prefix else 0.2)
    lists = {row["question"]: [f"Is it fine{n}?", "Is it short?"] for n, row in enumerate(rows)}
    evaluate(rows, judge=judge, checklists=lists, name="r", output=tmp_path, progress=False)
    for call in (("explain",), ("explain", "--candidate=bad"), ("lint",)):
        shown = " ".join(cli(tmp_path, call[0], "r", *call[1:]).stdout.split())
        assert "\x1b" not in shown
        assert re.search(r'[0-9a-f]{12} "Why is \ufffd\[31mthing \d so .*\.\.\."', shown), shown
    found = json.loads(cli(tmp_path, "lint", "r", "--json").stdout)
    assert set(found["query_texts"]) == set(found["query_ids"])


def test_query_is_explained(folder: Path) -> None:
    """Each item has its weight, its answers and its correlation with the score."""
    shown = cli(folder, "explain", "first.yaml", "--query", "sea").stdout
    for text in ("Items over 2 responses", "Is it right?", "0.50", "mean yes", "with score"):
        assert text in shown


def test_overview_explains_all_candidates(folder: Path) -> None:
    """The overview lists every candidate with its largest loss, and the report is kept."""
    shown = cli(folder, "explain", "first.yaml").stdout
    assert "points lost" in shown
    assert "right" in shown
    assert (folder / "runs" / "first" / "report.html").exists()
    command = shlex.split(shown.splitlines()[-1])
    assert command[-1] == "first.yaml"
    assert "points" in cli(folder, *command[1:]).stdout


def test_the_config_of_a_data_file_is_named(tmp_path: Path) -> None:
    """Without rocketeval.yaml, the error names the config that `run DATA` wrote."""
    (tmp_path / "answers.rocketeval.yaml").write_text("name: answers\n")
    error = cli(tmp_path, "compare", "new", "old", code=2).stderr
    assert "Add answers.rocketeval.yaml to the command" in error
    (tmp_path / "more.rocketeval.yaml").write_text("name: more\n")
    error = cli(tmp_path, "explain", code=2).stderr
    assert "answers.rocketeval.yaml" in error
    assert "more.rocketeval.yaml" in error


def test_untrusted_names_are_printed_safely(folder: Path) -> None:
    """A name cannot rewrite the terminal and is not markup."""
    for call in (("explain", "first.yaml"), ("run", "--only", "rank", "second.yaml")):
        shown = cli(folder, *call).stdout
        assert "\x1b" not in shown
        assert "[red]\ufffd[31mleft" in shown


def test_candidate_and_query_exclude_each_other(folder: Path) -> None:
    """Both options together are an error; an unknown name suggests the nearest."""
    both = cli(folder, "explain", "first.yaml", "--query", "sea", "--candidate", "right", code=2)
    assert "not both" in both.stderr
    wrong = cli(folder, "explain", "first.yaml", "--candidate", "rihgt", code=2)
    assert "Did you mean 'right'?" in wrong.stderr


def test_ranking_names_tied_candidates(folder: Path) -> None:
    """With three queries, the candidates are tied, and the output names them."""
    assert "tied with" in cli(folder, "run", "--only", "rank", "second.yaml").stdout
