"""`rocketeval run --only checklist` with a dimension file: what it prints, and its exit codes."""

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


def test_a_table_of_what_came_from_where(tmp_path: Path) -> None:
    """A row a sub-dimension and one for all; reasons that occur have a column."""
    prepare(tmp_path)
    told = cli(tmp_path, "run", "--only", "checklist").stdout
    rows = [line.split() for line in told.splitlines()]
    assert ["warmth", "words", "2", "3", "6", "7", "4"] in rows
    assert ["all", "4", "9", "12", "16", "9"] in rows
    assert "the same words" in told
    assert "yes not better" not in told
    assert "7 steps of the author, 0 paid for earlier" in told
    assert "runs/demo/inputs/checklist_provenance.json" in told
    assert (
        "7 steps of the author, 7 paid for earlier"
        in cli(tmp_path, "run", "--only", "checklist").stdout
    )


def test_the_same_for_programs(tmp_path: Path) -> None:
    """One JSON document, with the counts by sub-dimension."""
    prepare(tmp_path, "[]")
    told = json.loads(cli(tmp_path, "run", "--only", "checklist", "--json").stdout)
    counts = told["composition"]["counts"]
    assert [(row["sub_dimension"], row["kept"]) for row in counts] == [
        ("words", 2),
        ("tone", 1),
        ("brevity", 1),
    ]
    assert told["items"] == 3 * 4


def test_a_failed_step_ends_with_its_name(tmp_path: Path) -> None:
    """Exit code 2, the step and the author's mistake."""
    prepare(tmp_path, "[filter]")
    told = cli(tmp_path, "run", "--only", "checklist", code=2).stderr
    assert "2 of 2 steps of the checklist failed" in told
    assert "filter warmth: the author's list was refused 1 times: it is not JSON" in told


def test_going_on_without_a_step_is_exit_code_3(tmp_path: Path) -> None:
    """The checklist is there, and so is what it lacks."""
    prepare(tmp_path, "[filter]", on_failure="skip")
    done = cli(tmp_path, "run", "--only", "checklist", code=3)
    assert "went on without filter warmth: the author's list was refused" in done.stderr
    assert "3 checklists with 12 items" in done.stdout


def test_names_cannot_rewrite_the_terminal(tmp_path: Path) -> None:
    """Brackets are no markup; control characters do not get past the file."""
    prepare(tmp_path, "[]", file=TWO_PARTS.replace("words:", "'[bold]words[/]':"))
    assert "[bold]words[/]" in cli(tmp_path, "run", "--only", "checklist").stdout
    prepare(tmp_path, "[]", file=TWO_PARTS.replace("words:", '"\\e[2Jwords":'))
    assert "control character" in cli(tmp_path, "run", "--only", "checklist", code=2).stderr


def test_the_whole_run(tmp_path: Path) -> None:
    """From seeds to a report, without an author; the manifest keeps the counts."""
    prepare(tmp_path, "[]")
    cli(tmp_path, "run", "--quiet")
    manifest = json.loads((tmp_path / "runs" / "demo" / "manifest.json").read_text())
    assert manifest["stages"]["checklist"]["composition"]["steps"] == 0
    assert (tmp_path / "runs" / "demo" / "report.html").exists()
