"""Output and exit codes of `rocketeval run --only checklist` with a dimension file."""

from __future__ import annotations

import json
from pathlib import Path

from support.dimension_author import TWO_PARTS
from support.in_process import cli
from support.make import write_benchmark

CONFIG = """\
name: demo
benchmark: {{path: benchmark}}
judge: {{engine: scripted, model: m}}
author:
  kind: dimension
  engine: {{engine: scripted, model: big, options: {{text: "{text}"}}}}
  attempts: 1
  options: {{file: own.yaml, steps: {steps}, on_failure: {on_failure}}}
ranking: {{bootstrap: 50}}
"""
LIST = "1. Is it kind?\\n2. Is the name said?\\n3. Is it warm?"


def prepare(
    folder: Path,
    steps: str = "[diversify, elaborate]",
    *,
    text: str = LIST,
    on_failure: str = "stop",
    file: str = TWO_PARTS,
) -> None:
    """Write a benchmark, a dimension file and a config whose author always writes `text`."""
    write_benchmark(folder / "benchmark")
    (folder / "own.yaml").write_text(file)
    config = CONFIG.format(text=text, steps=steps, on_failure=on_failure)
    (folder / "rocketeval.yaml").write_text(config)


def test_table_of_question_origins(tmp_path: Path) -> None:
    """There is one row per sub-dimension and one for all, with a column per reason that occurs."""
    prepare(tmp_path)
    shown = cli(tmp_path, "run", "--only", "checklist").stdout
    rows = [line.split() for line in shown.splitlines()]
    assert ["warmth", "words", "2", "3", "6", "7", "4"] in rows
    assert ["all", "4", "9", "12", "16", "9"] in rows
    assert "duplicate" in shown
    assert "yes not better" not in shown
    assert "7 steps of the author, 0 reused" in shown
    assert "runs/demo/inputs/checklist_provenance.json" in shown
    again = cli(tmp_path, "run", "--only", "checklist").stdout
    assert "7 steps of the author, 7 reused" in again


def test_composition_as_json(tmp_path: Path) -> None:
    """The JSON document has the counts by sub-dimension."""
    prepare(tmp_path, "[]")
    facts = json.loads(cli(tmp_path, "run", "--only", "checklist", "--json").stdout)
    counts = facts["composition"]["counts"]
    assert [(row["sub_dimension"], row["kept"]) for row in counts] == [
        ("words", 2),
        ("tone", 1),
        ("brevity", 1),
    ]
    assert facts["items"] == 3 * 4


def test_failed_step_is_named(tmp_path: Path) -> None:
    """The error has exit code 2 and names the step and the author's mistake."""
    prepare(tmp_path, "[filter]")
    stderr = cli(tmp_path, "run", "--only", "checklist", code=2).stderr
    assert "2 of 2 steps" in stderr
    assert "filter warmth: " in stderr
    assert "not JSON" in stderr


def test_continuing_without_a_step_is_exit_code_3(tmp_path: Path) -> None:
    """The checklist is written, and the failed step is named."""
    prepare(tmp_path, "[filter]", on_failure="skip")
    done = cli(tmp_path, "run", "--only", "checklist", code=3)
    assert "without filter warmth: " in done.stderr
    assert "3 checklists with 12 items" in done.stdout


def test_names_cannot_rewrite_the_terminal(tmp_path: Path) -> None:
    """Brackets are not markup, and a file with control characters is rejected."""
    prepare(tmp_path, "[]", file=TWO_PARTS.replace("words:", "'[bold]words[/]':"))
    assert "[bold]words[/]" in cli(tmp_path, "run", "--only", "checklist").stdout
    prepare(tmp_path, "[]", file=TWO_PARTS.replace("words:", '"\\e[2Jwords":'))
    assert "control character" in cli(tmp_path, "run", "--only", "checklist", code=2).stderr


def test_full_run_from_seeds(tmp_path: Path) -> None:
    """A run without an author writes a report, and the manifest has the counts."""
    prepare(tmp_path, "[]")
    cli(tmp_path, "run", "--quiet")
    manifest = json.loads((tmp_path / "runs" / "demo" / "manifest.json").read_text())
    assert manifest["stages"]["checklist"]["composition"]["steps"] == 0
    assert (tmp_path / "runs" / "demo" / "report.html").exists()
