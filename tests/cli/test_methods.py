"""`rocketeval audit --methods` as a person uses it, with every method there is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rocketeval.grading.methods import KINDS
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
    """Requests of each run's last grading, by its folder."""
    runs = [folder / "runs" / "demo", *(folder / "runs" / "demo" / "methods").iterdir()]
    return {
        run.name: json.loads((run / "manifest.json").read_text())["stages"]["grade"]["usage"][
            "requests"
        ]
        for run in runs
    }


def test_every_method_can_be_compared_and_a_second_time_for_nothing(folder: Path) -> None:
    """One table for all, an analysis after the cot run, and nothing is paid for twice."""
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


def test_gaps_are_told_with_exit_code_three(folder: Path) -> None:
    """A failed response is named by its method; the others' figures stand."""
    text = CONFIG.replace("options: {", 'options: {fail_on: "left explains the sun", ')
    (folder / "rocketeval.yaml").write_text(text)
    done = cli(folder, "audit", "--methods", "checklist,direct", code=3)
    assert "direct: 1 response could not be judged" in done.stderr
    assert "the 5 responses" in done.stdout


def test_a_method_that_cannot_be_read_is_not_compared(folder: Path) -> None:
    """It is said how few it scored."""
    (folder / "rocketeval.yaml").write_text(CONFIG.replace(TEXT, "Lovely."))
    shown = cli(folder, "audit", "--methods", "cot,checklist").stdout
    assert "cot was not compared: it scored only 0 of 6 responses." in shown
    assert "\ncot " in shown[shown.index("Cost") :]


def test_without_usable_gold_the_tables_give_way_to_words(folder: Path) -> None:
    """Votes on other candidates make no table, and no advice."""
    (folder / "benchmark" / "labels.jsonl").unlink()
    votes = folder / "benchmark" / "votes.jsonl"
    shown = cli(folder, "audit", "--methods", "checklist,fixed").stdout
    assert "Agreement with 3 votes" in shown
    votes.unlink()
    shown = cli(folder, "audit", "--methods", "checklist,fixed").stdout
    assert "Agreement" not in shown
    assert "there are no votes, labels or ratings" in shown


def test_quiet_prints_nothing(folder: Path) -> None:
    """--quiet is silent when all is well, with methods and without."""
    done = cli(folder, "audit", "--methods", "checklist,direct", "--quiet")
    assert done.stdout + done.stderr == ""
    cli(folder, "run", "--quiet")
    done = cli(folder, "audit", "--quiet")
    assert done.stdout + done.stderr == ""


@pytest.mark.parametrize(
    ("methods", "said"),
    [
        (" , ", "No method is named"),
        ("checklst", "There is no grading method 'checklst'"),
        ("checklist+meen", "mean"),
        ("rubric", "criterion: this setting is needed"),
        ("analysis:run=nowhere", "nowhere is not a run directory"),
    ],
)
def test_mistakes_are_messages(folder: Path, methods: str, said: str) -> None:
    """Exit code 2, before anything is written."""
    assert said in cli(folder, "audit", "--methods", methods, code=2).stderr
    assert not (folder / "runs" / "demo" / "ledger").exists()


def test_help_lists_the_methods(folder: Path) -> None:
    """Each with what it does."""
    shown = " ".join(cli(folder, "audit", "--help").stdout.split())
    for name, kind in KINDS.items():
        assert f"{name} {' '.join(kind.told.split())}" in shown
