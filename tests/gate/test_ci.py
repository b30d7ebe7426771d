"""The CI gate: two runs compared, the comment, and the steps of the action run as a script."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from rocketeval import ScriptedEngine, evaluate
from rocketeval.errors import ConfigError
from rocketeval.gate.ci import compare_runs, gate_comment

ROOT = Path(__file__).parents[2]
ITEMS = ["Is it fine?", "Is it short?"]


def p_yes(prefix: str, item: str) -> float:
    """Return a high probability for responses that say good."""
    return 0.9 if "good" in prefix else 0.2


def graded(folder: Path, name: str, text: str, judge: str = "scripted") -> Path:
    """Grade eight responses of the candidate `bot`; return the run directory."""
    rows = [
        {"question": f"query | {n} <b>", "model": "bot", "output": f"{text} {n}"} for n in range(8)
    ]
    engine = ScriptedEngine(p_yes, model=judge)
    evaluate(rows, judge=engine, checklists=ITEMS, name=name, output=folder, progress=False)
    return folder / name


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of a good and a bad version, and of another judge."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        "good": graded(folder, "good", "good"),
        "bad": graded(folder, "bad", "bad"),
        "other": graded(folder, "other", "good", judge="other"),
    }


def test_worse_version_fails(runs: dict[str, Path]) -> None:
    """A significant fall fails the gate, and names every query that fell."""
    outcome = compare_runs(runs["bad"], runs["good"])
    (failed,) = outcome.failed
    assert failed.comparison.effect.value == pytest.approx(-6.3)
    assert len(failed.falls) == 8
    assert compare_runs(runs["good"], runs["bad"]).failed == ()
    assert compare_runs(runs["good"], runs["good"], max_drop=0.0).failed == ()


def test_comment_holds_untrusted_text(runs: dict[str, Path]) -> None:
    """The comment has the verdict and the falls; text of a query cannot leave its cell."""
    comment = gate_comment(compare_runs(runs["bad"], runs["good"]), "https://example.org/report")
    assert "gate failed" in comment
    assert "| bot | significantly worse | -6.300 |" in comment
    assert "query \\| 0 \\<b\\>" in comment
    assert "[Report](https://example.org/report)" in comment


def test_other_judge_is_refused(runs: dict[str, Path]) -> None:
    """Scores of two judges are not compared."""
    with pytest.raises(ConfigError, match=r"another judge \(model: other -> scripted\)"):
        compare_runs(runs["good"], runs["other"])


def project(folder: Path) -> None:
    """Write a project with a config, judged by the scripted engine."""
    benchmark = folder / "benchmark"
    (benchmark / "responses").mkdir(parents=True)
    queries = [{"id": f"q{n}", "text": f"query {n}"} for n in range(8)]
    lists = [{"query_id": f"q{n}", "items": ["Is it fine?", "Is it a?", "b?"]} for n in range(8)]
    texts = [{"query_id": f"q{n}", "candidate": "bot", "text": f"reply {n}"} for n in range(8)]
    for name, rows in (("queries", queries), ("checklists", lists), ("responses/bot", texts)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (benchmark / f"{name}.jsonl").write_text(lines)
    config = {
        "name": "head",
        "benchmark": {"path": "benchmark"},
        "judge": {"model": "m", "engine": "scripted"},
    }
    (folder / "rocketeval.yaml").write_text(yaml.safe_dump(config))


def test_steps_of_the_action_run(tmp_path: Path) -> None:
    """The action's own script grades, compares, writes outputs and a summary, and exits with 0."""
    project(tmp_path)
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = [step for step in action["runs"]["steps"] if step.get("id") == "gate"]
    script = step["run"]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "CONFIG": action["inputs"]["config"]["default"],
        "BASE_RUN": "",
        "MAX_DROP": "",
        "REPORT_URL": "",
    }
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    first = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert first.returncode == 0, first.stdout + first.stderr
    assert "nothing to compare with" in first.stdout
    outputs = dict(line.split("=", 1) for line in (tmp_path / "output").read_text().splitlines())
    base = tmp_path / "base"
    (tmp_path / outputs["run"]).rename(base)
    environment["BASE_RUN"] = str(base)
    second = subprocess.run(shell, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "Gate passed." in second.stdout
    assert "no significant difference" in (tmp_path / "summary").read_text()
