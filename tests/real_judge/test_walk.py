"""The whole product with a real model: real weights, real server, real command line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml

from support.make import write_jsonl

from .server import ServedJudge

CANDIDATES = ["brief", "broken"]


def run_cli(config: Path, *args: str) -> str:
    """Run `rocketeval run`; gaps are allowed, because a weak judge may leave some."""
    command = [sys.executable, "-m", "rocketeval.cli.main", "run", str(config), *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    return done.stdout


def judgments(run: Path) -> list[dict[str, Any]]:
    """Return every judgment in a run's ledger."""
    rows: list[dict[str, Any]] = pq.read_table(run / "ledger").to_pylist()
    return rows


def check_answers(rows: list[dict[str, Any]]) -> None:
    """Check for real probabilities: in range, inside their bounds, and not all the same."""
    answers = [
        answer
        for row in rows
        for answer in zip(row["p_yes"], row["p_low"], row["p_high"], row["mass"], strict=True)
        if answer[0] is not None
    ]
    assert all(0 <= low <= p <= high <= 1 and 0 < mass <= 1.001 for p, low, high, mass in answers)
    assert len({p for p, *_ in answers}) > len(answers) // 4


def shorten(folder: Path) -> Path:
    """Keep two candidates and two items per query, because a model on one core is slow."""
    config = folder / "rocketeval.yaml"
    settings = yaml.safe_load(config.read_text())
    settings["benchmark"]["candidates"] = CANDIDATES
    config.write_text(yaml.safe_dump(settings))
    path = folder / "benchmark" / "checklists.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    write_jsonl(path, [{**row, "items": row["items"][:2]} for row in rows])
    return config


def test_quickstart_with_a_real_model(judge_url: ServedJudge, tmp_path: Path) -> None:
    """A real checklist for two candidates, from `init` to the report."""
    base_url, model = judge_url
    folder = tmp_path / "demo"
    init = ["init", str(folder), "--model", model, "--base-url", base_url]
    subprocess.run([sys.executable, "-m", "rocketeval.cli.main", *init], check=True)
    shown = run_cli(shorten(folder), "--limit", "1")
    assert "broken" in shown
    run = folder / "runs" / "quickstart-first-1"
    rows = judgments(run)
    assert sorted(row["candidate"] for row in rows) == CANDIDATES
    assert all(row["prompt_tokens"] > 0 for row in rows)
    check_answers(rows)
    assert (run / "report.html").stat().st_size > 10_000
