"""End-to-end tests of writing, showing and exporting checklists."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.in_process import cli
from support.make import QUERIES, write_benchmark, write_jsonl

CONFIG = """\
name: demo
benchmark: {{path: benchmark}}
judge: {{engine: scripted, model: m}}
author:
  kind: instance
  engine: {{engine: scripted, model: big, options: {{text: "{text}"}}}}
  attempts: 2
"""
GOOD = "1. Is it right?\\n2. Is it short?\\n3. Is it kind?"


def prepare(folder: Path, text: str) -> Path:
    """Write a benchmark and a config whose author always writes `text`; return the inputs."""
    write_benchmark(folder / "benchmark")
    (folder / "rocketeval.yaml").write_text(CONFIG.format(text=text))
    return folder / "runs" / "demo" / "inputs"


def refuse_first(monkeypatch: pytest.MonkeyPatch, text: str, query: str) -> None:
    """Let the author write something else first, for one query."""
    from rocketeval.engines.base import WrittenText as Written
    from rocketeval.engines.scripted import ScriptedEngine

    write = ScriptedEngine.write

    async def once(self: ScriptedEngine, prompt: str, *, max_tokens: int) -> Written:
        written = await write(self, prompt, max_tokens=max_tokens)
        bad = query in prompt and "# Your last answer" not in prompt
        return Written(text, written.usage, finished=True) if bad else written

    monkeypatch.setattr(ScriptedEngine, "write", once)


def test_refused_lists_are_counted_with_their_mistakes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refusals are reported in text and JSON, also when the lists are reused."""
    inputs = prepare(tmp_path, GOOD)
    refuse_first(monkeypatch, "Sure!\n1. Is it?", "Why the sea?")
    told = cli(tmp_path, "run", "--only", "checklist").stdout
    line = "1 of 3 lists refused at first: a line is not a numbered question (1)"
    assert line in told
    assert "Origin of each checklist: " in told
    first = (inputs / "checklist_provenance.json").read_bytes()
    again = json.loads(cli(tmp_path, "run", "--only", "checklist", "--json").stdout)
    assert (again["reused"], again["usage"]["requests"]) == (3, 0)
    assert again["refusals"] == {
        "lists": 3,
        "refused_at_first": 1,
        "refusals": 1,
        "mistakes": {"a line is not a numbered question": 1},
        "untold": 0,
    }
    assert (inputs / "checklist_provenance.json").read_bytes() == first


def test_provenance_of_lists_is_saved(tmp_path: Path) -> None:
    """The file has the author, its limits, and one row per query with attempts and run."""
    inputs = prepare(tmp_path, GOOD)
    cli(tmp_path, "run", "--only", "checklist", "--quiet")
    told = json.loads((inputs / "checklist_provenance.json").read_text())
    assert (told["kind"], told["author"], told["asked_for"]) == ("instance", "big", [5, 10])
    assert (told["accepted"], told["attempts"], told["template_file"]) == ([3, 12], 2, None)
    assert [row["query_id"] for row in told["queries"]] == list(QUERIES)
    run_id = json.loads((inputs.parent / "manifest.json").read_text())["run_id"]
    row = told["queries"][0]
    assert (row["items"], row["attempts"], row["refused"], row["run"]) == (3, 1, [], run_id)
    cli(tmp_path, "run", "--only", "checklist", "--quiet", "--name", "other")
    other = tmp_path / "runs" / "other" / "inputs" / "checklist_provenance.json"
    assert json.loads(other.read_text())["queries"] == told["queries"], "paid for by the first run"


def test_failure_of_all_lists_names_the_queries(tmp_path: Path) -> None:
    """The exit code is 2, and the provenance of earlier checklists is kept."""
    inputs = prepare(tmp_path, GOOD)
    cli(tmp_path, "run", "--only", "checklist", "--quiet")
    before = (inputs / "checklist_provenance.json").read_bytes()
    config = CONFIG.format(text="Sorry \\e[2J.").replace("model: big", "model: small")
    (tmp_path / "rocketeval.yaml").write_text(config)
    told = cli(tmp_path, "run", "--only", "checklist", code=2).stderr
    assert "\x1b" not in told
    for query in QUERIES:
        assert f"Query '{query}': " in told
    assert (inputs / "checklist_provenance.json").read_bytes() == before


def test_query_without_a_list_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The exit code is 3, with the reason on stderr and in the provenance."""
    inputs = prepare(tmp_path, GOOD)
    refuse_first(monkeypatch, "1. Is it?", "Why the sea?")
    config = (tmp_path / "rocketeval.yaml").read_text().replace("attempts: 2", "attempts: 1")
    (tmp_path / "rocketeval.yaml").write_text(config)
    told = cli(tmp_path, "run", "--only", "checklist", code=3)
    assert "no checklist for sea: " in told.stderr
    assert "1 of 3 lists refused at first: too few items (1)" in told.stdout
    rows = json.loads((inputs / "checklist_provenance.json").read_text())["queries"]
    failed = {row["query_id"]: row for row in rows}["sea"]
    assert (failed["items"], failed["attempts"]) == (None, 1)
    assert failed["refused"][0]["reason"] in failed["failure"]


def test_export_never_replaces_inputs_of_the_run(tmp_path: Path) -> None:
    """The config cannot be overwritten, not even with --force."""
    prepare(tmp_path, GOOD)
    before = (tmp_path / "rocketeval.yaml").read_bytes()
    told = cli(tmp_path, "checklist", "--out", "rocketeval.yaml", "--force", code=2).stderr
    assert "rocketeval.yaml" in told
    assert "--force" not in told
    (tmp_path / "taken.yaml").write_text("mine")
    assert "exists" in cli(tmp_path, "checklist", "--out", "taken.yaml", code=2).stderr
    assert (tmp_path / "rocketeval.yaml").read_bytes() == before
    assert not (tmp_path / "runs").exists()


def test_csv_export_warns_about_lost_fields(tmp_path: Path) -> None:
    """The field `about` is lost in CSV and kept in YAML."""
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "own.yaml").write_text("for_all: {about: tone, items: ['Is it kind?']}\n")
    (tmp_path / "rocketeval.yaml").write_text(
        "benchmark: {path: benchmark}\njudge: {engine: scripted, model: m}\n"
        "author: {kind: file, options: {file: own.yaml}}\n"
    )
    cli(tmp_path, "run", "--only", "checklist", "--quiet")
    told = cli(tmp_path, "checklist", "--out", "out.csv").stderr
    assert "`about`, which 3 checklists have" in told
    assert "no place" not in cli(tmp_path, "checklist", "--out", "out.yaml").stderr


def test_checklists_are_shown_without_an_llm(tmp_path: Path) -> None:
    """All or one are shown; before there are any, the error names the command."""
    prepare(tmp_path, GOOD)
    missing = cli(tmp_path, "checklist", code=5).stderr
    assert "`rocketeval run --only checklist`" in missing
    assert not (tmp_path / "runs").exists()
    cli(tmp_path, "run", "--only", "checklist", "--quiet")
    shown = cli(tmp_path, "checklist").stdout
    assert "runs/demo: 3 checklists with 9 items" in shown
    assert "3 queries share this checklist" in shown
    assert [line for line in shown.splitlines() if line.startswith("  3. ")]
    one = json.loads(cli(tmp_path, "checklist", "--query", "sea", "--json").stdout)
    assert [made["query_id"] for made in one["checklists"]] == ["sea"]
    assert "Did you mean 'sea'?" in cli(tmp_path, "checklist", "--query", "se", code=2).stderr


def test_sources_of_checklists(tmp_path: Path) -> None:
    """A benchmark folder, a config and an edited file need no run."""
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "rocketeval.yaml").write_text(
        "benchmark: {path: benchmark}\njudge: {engine: scripted, model: m}\n"
    )
    rows = [
        {"query_id": query, "items": [f"Is {query} in it?", "Is it kind?"]} for query in QUERIES
    ]
    write_jsonl(tmp_path / "benchmark" / "checklists.jsonl", rows)
    for what in ("benchmark", "rocketeval.yaml"):
        assert f"benchmark: {len(QUERIES)} checklists" in cli(tmp_path, "checklist", what).stdout
    assert "2 more checklists" in cli(tmp_path, "checklist", "--top", "1").stdout
    assert "Edit this file: mine.yaml" in cli(tmp_path, "checklist", "--out", "mine.yaml").stdout
    assert f"mine.yaml: {len(QUERIES)} checklists" in cli(tmp_path, "checklist", "mine.yaml").stdout
    said = cli(tmp_path, "checklist", "mine.yaml", "--out", "other.yaml", code=2).stderr
    assert "mine.yaml can be edited directly" in said
    assert not (tmp_path / "runs").exists()
