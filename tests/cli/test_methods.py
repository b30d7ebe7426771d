"""End-to-end tests of `rocketeval audit --methods`, with every method."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rocketeval.grading.methods import KINDS
from rocketeval.scoring.base import SCORERS
from support.in_process import cli
from support.make import CANDIDATES, QUERIES, write_benchmark, write_jsonl

TEXT = "Q1: Yes\\nQ2: No\\nscore: 7"
CONFIG = f"""\
name: demo
benchmark: {{path: benchmark}}
judge:
  engine: scripted
  model: scripted
  options: {{text: "{TEXT}"}}
ranking: {{bootstrap: 50}}
"""
OPTIONS = {"criterion": ":criterion=fluency", "rubric": ":criterion=fluency"}
ALONE = [f"{kind}{OPTIONS.get(kind, '')}" for kind in KINDS if kind != "analysis"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark with votes, labels and references, and a config."""
    write_benchmark(tmp_path / "benchmark")
    rows = [{"id": q, "text": f"Why the {q}?", "reference": f"the {q}"} for q in QUERIES]
    write_jsonl(tmp_path / "benchmark" / "queries.jsonl", rows)
    labels = [
        {"query_id": q, "candidate": c, "value": 1 + row + 3 * column}
        for row, q in enumerate(QUERIES)
        for column, c in enumerate(CANDIDATES)
    ]
    write_jsonl(tmp_path / "benchmark" / "labels.jsonl", labels)
    (tmp_path / "rocketeval.yaml").write_text(CONFIG)
    return tmp_path


def paid(folder: Path) -> dict[str, int]:
    """Return the requests of each run's last grading, by folder."""
    runs = [folder / "runs" / "demo", *(folder / "runs" / "demo" / "methods").iterdir()]
    return {
        run.name: json.loads((run / "manifest.json").read_text())["stages"]["grade"]["usage"][
            "requests"
        ]
        for run in runs
    }


def test_every_method_is_compared_and_reused(folder: Path) -> None:
    """All methods are in one table, and a second comparison sends no request."""
    shown = cli(folder, "audit", "--methods", ",".join(ALONE)).stdout
    for name in (*ALONE, "longer response", "always a tie", "random guess"):
        assert f"\n{name} " in shown
    for text in (
        "Agreement with 3 votes (tie margin 0.1)",
        "Spearman with 6 labeled responses",
        "the 6 responses that every compared method scored",
        " of 3 decided votes",
    ):
        assert text in shown
    # Characters are on no scale: the row ends in a dash where the others have a distance.
    rmse = shown[shown.index("RMSE") : shown.index("Cost")].splitlines()
    assert [line.endswith(" -") for line in rmse if line.startswith(("checklist", "longer"))] == [
        False,
        True,
    ]
    assert all(paid(folder).values())
    again = cli(folder, "audit", "--methods", ",".join(ALONE)).stdout
    assert again == shown
    assert not any(paid(folder).values())
    analysis = "analysis:run=runs/demo/methods/cot"
    assert f"\n{analysis} " in cli(folder, "audit", "--methods", f"direct,{analysis}").stdout


def test_failed_responses_are_exit_code_three(folder: Path) -> None:
    """A failed response is reported with its method; other figures are printed."""
    text = CONFIG.replace("options: {", 'options: {fail_on: "left explains the sun", ')
    (folder / "rocketeval.yaml").write_text(text)
    done = cli(folder, "audit", "--methods", "checklist,direct", code=3)
    assert "direct: 1 response could not be judged" in done.stderr
    assert "the 5 responses" in done.stdout


def test_unreadable_method_is_not_compared(folder: Path) -> None:
    """The output gives the number of responses it scored."""
    (folder / "rocketeval.yaml").write_text(CONFIG.replace(TEXT, "Lovely."))
    shown = cli(folder, "audit", "--methods", "cot,checklist").stdout
    assert "cot was not compared: it scored only 0 of 6 responses." in shown
    assert "\ncot " in shown[shown.index("Cost") :]


def test_without_reference_data_there_is_no_preference(folder: Path) -> None:
    """Without votes and labels there is no table and no preferred method."""
    (folder / "benchmark" / "labels.jsonl").unlink()
    votes = folder / "benchmark" / "votes.jsonl"
    shown = cli(folder, "audit", "--methods", "checklist,fixed").stdout
    assert "Agreement with 3 votes" in shown
    votes.unlink()
    shown = cli(folder, "audit", "--methods", "checklist,fixed").stdout
    assert "Agreement" not in shown
    assert "there are no votes, labels or ratings" in shown


def test_quiet_prints_nothing(folder: Path) -> None:
    """--quiet prints nothing on success, with and without methods."""
    done = cli(folder, "audit", "--methods", "checklist,direct", "--quiet")
    assert done.stdout + done.stderr == ""
    cli(folder, "run", "--quiet")
    done = cli(folder, "audit", "--quiet")
    assert done.stdout + done.stderr == ""


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        (" , ", "method"),
        ("checklst", "'checklst'"),
        ("checklist+meen", "mean"),
        ("rubric", "criterion: this setting is required"),
        ("analysis:run=nowhere", "nowhere is not a run directory"),
    ],
)
def test_invalid_methods_are_refused(folder: Path, methods: str, message: str) -> None:
    """The exit code is 2, before anything is written."""
    assert message in cli(folder, "audit", "--methods", methods, code=2).stderr
    assert not (folder / "runs" / "demo" / "ledger").exists()


def test_help_lists_methods_and_scorers(folder: Path) -> None:
    """Each method and each scorer has a description."""
    shown = cli(folder, "audit", "--help").stdout
    for name in (*KINDS, *SCORERS.names()):
        assert re.search(rf"^ +{name} +\w", shown, re.MULTILINE), name
