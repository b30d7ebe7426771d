"""`--evaluator FILE` as a person uses it."""

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
    """Write an evaluator for the folder's judge; its name."""
    config = load_config(folder / "rocketeval.yaml")
    save_fitted(folder / "good.npz", config, task, asking, **notes)
    return "good.npz"


@pytest.mark.parametrize(
    ("task", "asking"), [("pairs", "each"), ("pairs", "pairs"), ("scores", "each")]
)
def test_run_with_an_evaluator(folder: Path, task: str, asking: Asking) -> None:
    """The ranking is shown; a second time nothing is asked, and JSON says all of it."""
    name = evaluator(folder, task, asking)
    shown = cli(folder, "run", "--evaluator", name).stdout
    assert "judge: " in shown
    assert "ada" in shown
    found = json.loads(cli(folder, "run", "--evaluator", name, "--json").stdout)
    assert found["stages"]["grade"]["usage"]["requests"] == 0
    assert found["stages"]["grade"]["evaluator"]["task"] == task
    assert found["stages"]["score"]["scorer"] == "evaluator"
    assert {row["candidate"] for row in found["ranking"]["rows"]} == {"ada", "bob", "cid"}


def test_grade_says_what_a_decision_takes(folder: Path) -> None:
    """And the stages after it know the evaluator without being told."""
    shown = cli(folder, "run", "--only", "grade", "--evaluator", "good.npz").stdout
    assert "42 judged now, 0 earlier" in shown
    assert "66 questions about 18 pairs: 3.7 each" in shown
    found = json.loads(cli(folder, "run", "--only", "score", "--json").stdout)
    assert found["scorer"] == "evaluator"
    for words in ("run --only rank", "audit", "explain", "run --only report"):
        cli(folder, *words.split())
    exported = cli(folder, "export", "runs/demo", "--to", "csv", "--what", "judgments").stdout
    assert "Is it right?" in exported


def test_a_config_can_name_the_evaluator(folder: Path) -> None:
    """Relative to the config file; what it has no use for is said."""
    evaluator(folder, "scores", threshold=0.9)
    text = CONFIG + "evaluator: good.npz\nscorer: {kind: hard, scale: [4, 5]}\n"
    (folder / "rocketeval.yaml").write_text(text)
    assert "6 checklists with 18 items" in cli(folder, "run", "--only", "checklist").stdout
    told = cli(folder, "run").stderr
    assert "The evaluator takes the place of `scorer`, which is not used." in told
    assert "of 18 with a confidence below 0.9: let a person decide." in told
    assert "of the evaluator outside of `scorer.scale`" in told


def test_an_evaluator_that_does_not_say_what_it_learned_from(folder: Path) -> None:
    """It is said; with a list, be it empty, there is nothing to say."""
    words = "The evaluator does not say what it learned from"
    assert words not in cli(folder, "run", "--evaluator", "good.npz").stderr
    known = load_evaluator(folder / "good.npz")
    notes = {name: note for name, note in known.provenance.items() if name != "learned_from"}
    save_evaluator(replace(known, provenance=notes), folder / "good.npz")
    assert words in cli(folder, "run", "--evaluator", "good.npz").stderr


def test_plan_and_dry_run_count_what_an_evaluator_asks(folder: Path) -> None:
    """Every perspective of every response, and of every query once."""
    assert (
        "66 items of 42 responses to ask" in cli(folder, "plan", "--evaluator", "good.npz").stdout
    )
    dry = cli(folder, "run", "--evaluator", "good.npz", "--dry-run").stdout
    assert "66 items of 42 responses to ask" in dry
    billed = cli(folder, "run", "--only", "grade", "--evaluator", "good.npz").stdout
    assert "plan" in billed
    assert "bill" in billed


def test_a_file_that_cannot_be_used_is_named(folder: Path) -> None:
    """Missing or damaged: nothing is written."""
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


def test_another_judge_is_refused(folder: Path) -> None:
    """With both names."""
    told = cli(folder, "run", "--evaluator", "good.npz", "--judge", "other", code=1).stderr
    assert "model 'scripted' -> 'other'" in told
    assert "train an evaluator with this judge" in told
