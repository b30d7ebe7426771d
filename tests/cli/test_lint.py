"""End-to-end tests of `rocketeval lint` on a run, a config, a folder and a file."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from support.in_process import cli, run_scripted
from support.make import QUERIES, write_benchmark, write_jsonl

GOOD = "Does the response name the cause?"
BAD = "Does the response fail to name the [red]\x1b[31mcause?"
SHARED = ["Is the tone polite?", BAD, "is the tone polite?"]


def bad(query: str) -> str:
    """Return the bad item of one query."""
    return BAD.replace("cause", f"cause of the {query}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run whose checklists have a bad item with terminal control characters."""
    folder = tmp_path_factory.mktemp("lint")
    write_benchmark(folder / "benchmark")
    rows = [{"query_id": query, "items": [GOOD, bad(query)]} for query in QUERIES]
    write_jsonl(folder / "benchmark" / "checklists.jsonl", rows)
    run_scripted(folder, "first")
    return folder


def test_run_is_linted_by_static_checks_and_answers(folder: Path) -> None:
    """The output has kinds with counts, the ranking without flagged items, and the items."""
    shown = cli(folder, "lint", "first.yaml").stdout
    assert "6 items in 3 checklists" in shown
    assert "yes_is_worse" in shown
    assert "all flagged items left out" in shown
    assert "Yes would be the worse answer ('fail')" in shown
    assert "\x1b" not in shown
    assert "[red]\ufffd[31mcause of the sky?" in shown
    assert cli(folder, "lint", "runs/first").stdout.count("\n") == shown.count("\n")


def test_findings_as_json(folder: Path) -> None:
    """Findings have query, item, kind and severity; there are figures of every item."""
    found = json.loads(cli(folder, "lint", "runs/first", "--json").stdout)
    one = next(each for each in found["findings"] if each["kind"] == "yes_is_worse")
    assert (one["query_id"], one["item"], one["severity"]) == ("sky", 2, "error")
    assert one["text"] == bad("sky")
    assert len(found["behaviour"]["figures"]) == 6
    assert found["errors"] == 3


def test_nothing_is_written(folder: Path) -> None:
    """Linting does not change the run."""
    before = {path: path.read_bytes() for path in _files(folder / "runs")}
    cli(folder, "lint", "first.yaml")
    assert {path: path.read_bytes() for path in _files(folder / "runs")} == before


def test_query_kind_and_top_filter_the_output(folder: Path) -> None:
    """--query, --kind and --top select findings; an unknown query names the nearest."""
    chosen = cli(folder, "lint", "first.yaml", "--query", "sea", "--kind", "yes_is_worse", "--json")
    assert [each["query_id"] for each in json.loads(chosen.stdout)["findings"]] == ["sea"]
    assert (
        "2 more items"
        in cli(folder, "lint", "first.yaml", "--kind", "yes_is_worse", "--top", "1").stdout
    )
    wrong = cli(folder, "lint", "first.yaml", "--query", "see", code=2)
    assert "Did you mean 'sea'?" in wrong.stderr
    assert "Invalid value" in cli(folder, "lint", "--kind", "spelling", code=2).stderr


def test_strict_gives_exit_code_3_on_errors(folder: Path, tmp_path: Path) -> None:
    """The exit code is 3 for an error with --strict, else 0."""
    cli(folder, "lint", "first.yaml", "--quiet")
    assert cli(folder, "lint", "first.yaml", "--quiet", "--strict", code=3).stdout == ""
    write_jsonl(tmp_path / "checklists.jsonl", [{"query_id": "q", "items": [GOOD]}])
    cli(tmp_path, "lint", "checklists.jsonl", "--strict")


def test_checklists_without_a_run(folder: Path, tmp_path: Path) -> None:
    """A benchmark folder, a plain file and a gzipped one can be linted."""
    shown = cli(folder, "lint", "benchmark").stdout
    assert "3 of 6 items in 3 checklists have a problem" in shown
    assert "Static checks only: there is no run." in shown
    row = {"session_id": "q", "checklist": ["What is the capital?"]}
    with gzip.open(tmp_path / "own.jsonl.gz", "wt") as file:
        file.write(json.dumps(row))
    assert "not_yes_no" in cli(tmp_path, "lint", "own.jsonl.gz").stdout


def test_config_without_a_run(folder: Path) -> None:
    """The benchmark's checklists are linted, and no run directory is created."""
    shown = cli(folder, "lint", "first.yaml", "--name", "later").stdout
    assert "Static checks only" in shown
    assert not (folder / "runs" / "later").exists()


def test_shared_checklist_counts_once(tmp_path: Path) -> None:
    """Items, findings and shares count once; JSON has every query's id."""
    write_benchmark(tmp_path / "benchmark")
    rows = [{"query_id": query, "items": SHARED} for query in QUERIES]
    write_jsonl(tmp_path / "benchmark" / "checklists.jsonl", rows)
    shown = cli(tmp_path, "lint", "benchmark").stdout
    assert "2 of 3 items in 1 checklist that 3 queries share have a problem (66.7%" in shown
    assert "all 3 queries, item 2: " in shown
    assert shown.count("Yes would be the worse answer") == 1
    found = json.loads(cli(tmp_path, "lint", "benchmark", "--query", "sea", "--json").stdout)
    assert (found["items"], found["checklists"], found["flagged"]) == (3, 1, 2)
    assert [(row["query_id"], row["query_ids"]) for row in found["findings"]] == [
        ("sky", list(QUERIES))
    ] * 2
    assert {row["kind"]: row["items"] for row in found["kinds"]} == {
        "yes_is_worse": 1,
        "duplicate": 1,
    }


def test_judged_shared_checklist(tmp_path: Path) -> None:
    """Flagged items are dropped in each query; figures are per query."""
    write_benchmark(tmp_path / "benchmark")
    rows = [{"query_id": query, "items": SHARED} for query in QUERIES]
    write_jsonl(tmp_path / "benchmark" / "checklists.jsonl", rows)
    run_scripted(tmp_path, "first")
    assert "to 3 items (9 over all queries)" in cli(tmp_path, "lint", "first.yaml").stdout
    found = json.loads(cli(tmp_path, "lint", "first.yaml", "--json").stdout)
    assert len(found["behaviour"]["figures"]) == 9
    flagged = {(query, row["item"]) for row in found["findings"] for query in row["query_ids"]}
    without = found["behaviour"]["without_flagged"]
    assert without["dropped"] + without["kept_after_all"] == len(flagged)


def test_edited_files_are_linted(tmp_path: Path) -> None:
    """YAML and CSV give the same findings; an item may refer to its query's text."""
    about = "Does the response list its references?"
    (tmp_path / "own.yaml").write_text(
        f"for_all: {{items: ['{GOOD}', 'How good is it?']}}\n"
        f"queries:\n  q7: {{query: List all references., items: ['{about}']}}\n"
    )
    found = json.loads(cli(tmp_path, "lint", "own.yaml", "--json").stdout)
    assert [(each["query_id"], each["item"]) for each in found["findings"]] == [("for_all", 2)]
    sheet = f"query_id,query,item\n,,{GOOD}\n,,How good is it?\nq7,List all references.,{about}\n"
    (tmp_path / "own.csv").write_text(sheet)
    same = json.loads(cli(tmp_path, "lint", "own.csv", "--json").stdout)
    assert same["findings"] == found["findings"]
    cli(tmp_path, "lint", "own.csv", "--strict", code=3)
    (tmp_path / "bad.csv").write_text("query_id,question\n,Is it?\n")
    assert "'question' is unknown" in cli(tmp_path, "lint", "bad.csv", code=2).stderr


def test_config_with_an_unknown_key_is_still_a_config(tmp_path: Path) -> None:
    """The error is the one for a config."""
    (tmp_path / "odd.yaml").write_text("queries: 5\nbenchmark: {path: b}\njudge: {model: m}\n")
    stderr = cli(tmp_path, "lint", "odd.yaml", code=2).stderr
    assert "queries: there is no such setting" in stderr


def test_targets_that_cannot_be_linted(tmp_path: Path) -> None:
    """A missing path, a folder without checklists and another file are errors."""
    assert "nowhere does not exist" in cli(tmp_path, "lint", "nowhere", code=2).stderr
    assert "no checklists in" in cli(tmp_path, "lint", ".", code=2).stderr
    write_jsonl(tmp_path / "other.jsonl", [{"id": "q"}])
    assert "is not a checklist" in cli(tmp_path, "lint", "other.jsonl", code=2).stderr


def _files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]
