"""End-to-end tests of `--evaluator FILE`."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rocketeval.config import load_config
from rocketeval.evolve.artifact import load_evaluator, save_evaluator
from rocketeval.evolve.perspective import Asking
from support.evaluators import save_fitted, write_opinions
from support.in_process import cli

CONFIG = """\
name: demo
benchmark: {path: benchmark}
judge: {engine: scripted, model: scripted}
ranking: {bootstrap: 50}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark without checklists, a config, and an evaluator."""
    write_opinions(tmp_path / "benchmark")
    (tmp_path / "rocketeval.yaml").write_text(CONFIG)
    evaluator(tmp_path)
    return tmp_path


def evaluator(folder: Path, task: str = "pairs", asking: Asking = "each", **notes: Any) -> str:
    """Write an evaluator for the folder's judge and return its file name."""
    config = load_config(folder / "rocketeval.yaml")
    save_fitted(folder / "good.npz", config, task, asking, **notes)
    return "good.npz"


@pytest.mark.parametrize(
    ("task", "asking"), [("pairs", "each"), ("pairs", "pairs"), ("scores", "each")]
)
def test_run_with_an_evaluator(folder: Path, task: str, asking: Asking) -> None:
    """The ranking is shown; a second run sends no request."""
    name = evaluator(folder, task, asking)
    shown = cli(folder, "run", "--evaluator", name).stdout
    assert "judge: " in shown
    assert "ada" in shown
    found = json.loads(cli(folder, "run", "--evaluator", name, "--json").stdout)
    assert found["stages"]["grade"]["usage"]["requests"] == 0
    assert found["stages"]["grade"]["evaluator"]["task"] == task
    assert found["stages"]["score"]["scorer"] == "evaluator"
    assert {row["candidate"] for row in found["ranking"]["rows"]} == {"ada", "bob", "cid"}


def test_grade_prints_questions_per_decision(folder: Path) -> None:
    """Later stages use the evaluator without the option."""
    shown = cli(folder, "run", "--only", "grade", "--evaluator", "good.npz").stdout
    assert "42 judged now, 0 earlier" in shown
    assert "66 questions about 18 pairs: 3.7 each" in shown
    found = json.loads(cli(folder, "run", "--only", "score", "--json").stdout)
    assert found["scorer"] == "evaluator"
    for words in ("run --only rank", "audit", "explain", "run --only report"):
        cli(folder, *words.split())
    exported = cli(folder, "export", "runs/demo", "--to", "csv", "--what", "judgments").stdout
    assert "Is it right?" in exported


def test_config_can_name_the_evaluator(folder: Path) -> None:
    """The path is relative to the config file, and unused sections are reported."""
    evaluator(folder, "scores", threshold=0.9)
    text = CONFIG + "evaluator: good.npz\nscorer: {kind: hard, scale: [4, 5]}\n"
    (folder / "rocketeval.yaml").write_text(text)
    assert "6 checklists with 18 items" in cli(folder, "run", "--only", "checklist").stdout
    told = cli(folder, "run").stderr
    assert "replaces `scorer`" in told
    assert "of 18 with a confidence below 0.9" in told
    assert "outside `scorer.scale`" in told


def test_evaluator_without_training_data_gives_a_warning(folder: Path) -> None:
    """Without the list of training data there is a warning; an empty list gives none."""
    words = "does not record its training data"
    assert words not in cli(folder, "run", "--evaluator", "good.npz").stderr
    known = load_evaluator(folder / "good.npz")
    notes = {name: note for name, note in known.provenance.items() if name != "learned_from"}
    save_evaluator(replace(known, provenance=notes), folder / "good.npz")
    assert words in cli(folder, "run", "--evaluator", "good.npz").stderr


def test_plan_and_dry_run_count_the_evaluators_questions(folder: Path) -> None:
    """They count every perspective per response, and per query once."""
    assert (
        "66 items of 42 responses to ask" in cli(folder, "plan", "--evaluator", "good.npz").stdout
    )
    dry = cli(folder, "run", "--evaluator", "good.npz", "--dry-run").stdout
    assert "66 items of 42 responses to ask" in dry
    billed = cli(folder, "run", "--only", "grade", "--evaluator", "good.npz").stdout
    assert "plan" in billed
    assert "actual" in billed


def test_unusable_evaluator_file_is_named(folder: Path) -> None:
    """A missing or damaged file is an error, and nothing is written."""
    told = cli(folder, "run", "--evaluator", "none.npz", code=1).stderr
    assert "none.npz" in told
    assert "rocketeval evolve" in told
    content = bytearray((folder / "good.npz").read_bytes())
    content[len(content) // 2] ^= 0xFF
    (folder / "bad.npz").write_bytes(content)
    assert (
        "bad.npz" in cli(folder, "run", "--only", "grade", "--evaluator", "bad.npz", code=1).stderr
    )
    assert not (folder / "runs" / "demo" / "manifest.json").exists()


def test_evaluator_of_another_judge_is_refused(folder: Path) -> None:
    """The error names both judges."""
    told = cli(folder, "run", "--evaluator", "good.npz", "--judge", "other", code=1).stderr
    assert "model 'scripted' -> 'other'" in told
    assert "evaluator" in told
