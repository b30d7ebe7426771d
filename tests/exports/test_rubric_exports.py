"""Exports of runs with penalties, weights, levels and checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.pipeline import Run
from support.in_process import cli
from support.make import CANDIDATES, QUERIES, make_config, write_benchmark, write_jsonl

RUBRIC: list[object] = [
    "Is it right?",
    {"text": "Is it rude?", "weight": -5},
    {"text": "Is it clear?", "weight": 3},
    {"text": "How deep is it?", "levels": ["shallow", "deep"]},
    {"text": "At most 99 words", "check": {"fn": "words", "args": {"max": 99}}},
]
PENALTY = "Is it rude? [penalty of weight 5]"


def p_yes(prefix: str, item: str) -> float:
    """Return answers by which the responses of `left` are rude; all else is fine."""
    return 0.9 if "rude" not in item else 0.88 if "left explains" in prefix else 0.06


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A run whose checklists have items of every kind."""
    folder = write_benchmark(tmp_path / "benchmark")
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": RUBRIC} for q in QUERIES])
    config = make_config(tmp_path)
    rocketeval.run(config, judge=ScriptedEngine(p_yes))
    return Run(config)


def parsed_results(folder: Path, candidate: str) -> list[dict[str, Any]]:
    """Return what WildBench's files say about a candidate."""
    entries = json.loads((folder / "score.v2/eval=scripted" / f"{candidate}.json").read_text())
    return [entry["parsed_result"] for entry in entries]


def test_penalty_answered_yes_is_a_weakness(run: Run, tmp_path: Path) -> None:
    """In WildBench's files a penalty is marked, and counts by its turned answer."""
    run.export("wildbench", tmp_path / "out")
    for candidate, place, other, answer in (
        ("left", "weaknesses", "strengths", "0.88"),
        ("right", "strengths", "weaknesses", "0.06"),
    ):
        found = parsed_results(tmp_path / "out", candidate)
        assert len(found) == len(QUERIES)
        for each in found:
            assert f"{PENALTY} (yes {answer})" in each[place].splitlines()
            assert "rude" not in each[other]
            assert "Is it right? (yes 0.90)" in each["strengths"].splitlines()


def test_paper_files_note_what_they_lack(run: Run, tmp_path: Path) -> None:
    """The note counts weights, penalties, levels and checks, in the file and on the terminal."""
    printed = cli(
        tmp_path, "export", str(run.store.path), "--to", "rocketeval", "-o", str(tmp_path / "out")
    ).stdout
    notes = " ".join(json.loads((tmp_path / "out" / "export.json").read_text())["notes"])
    for text in (notes, " ".join(printed.split())):
        for what in ("weights", "penalties", "levels", "code checks"):
            assert f"{what} ({len(QUERIES)} items)" in text
        assert "a yes to a penalty counts as good" in text


def test_plain_checklists_need_no_note(tmp_path: Path) -> None:
    """Yes/no questions of weight 1 are complete in the paper's files."""
    config = make_config(tmp_path)
    rocketeval.run(config, judge=ScriptedEngine(p_yes))
    assert Run(config).export("rocketeval", tmp_path / "out").notes == ()


def test_rationale_marks_penalties(run: Run, tmp_path: Path) -> None:
    """A feedback for MLflow has the judge's answers, with weights and penalties marked."""
    run.export("mlflow", tmp_path / "feedback.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "feedback.jsonl").read_text().splitlines()]
    assert len(rows) == len(QUERIES) * len(CANDIDATES)
    for row in rows:
        answer = "0.88" if row["metadata"]["candidate"] == "left" else "0.06"
        lines = row["rationale"].splitlines()
        assert f"{answer}  {PENALTY}" in lines
        assert "0.90  Is it clear? [weight 3]" in lines


def test_items_that_do_not_apply_are_no_weaknesses(tmp_path: Path) -> None:
    """An item that more likely does not apply is neither good nor bad, and is named as such."""
    folder = write_benchmark(tmp_path / "benchmark")
    items = ["Is it right?", {"text": "Is the code short?", "na": True}]
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": items} for q in QUERIES])
    config = make_config(tmp_path)
    judge = ScriptedEngine(
        lambda prefix, item: 0.3 if "code" in item else 0.9,
        p_na=lambda prefix, item: 0.9 if "left explains" in prefix else 0.2,
    )
    rocketeval.run(config, judge=judge)
    run = Run(config)
    run.export("wildbench", tmp_path / "out")
    for candidate, applies in (("left", False), ("right", True)):
        for each in parsed_results(tmp_path / "out", candidate):
            assert each["strengths"] == "Is it right? (yes 0.90)"
            assert ("code" in each["weaknesses"]) == applies
    run.export("mlflow", tmp_path / "feedback.jsonl")
    for row in map(json.loads, (tmp_path / "feedback.jsonl").read_text().splitlines()):
        answer = "not applicable" if row["metadata"]["candidate"] == "left" else "0.30"
        assert row["rationale"].splitlines()[1].startswith(f"{answer}  Is the code short?")
