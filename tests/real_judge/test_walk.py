"""The whole product against a real model: real weights, real server, real command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from mad_eval.spread import QUESTIONS, lay_out

from .server import ServedJudge

ROOT = Path(__file__).parents[2]
SHARED_DATA = Path(os.environ.get("ROCKETEVAL_SHARED_DATA", ROOT.parent / "shared" / "data"))
BRIEF = 107


def run_cli(config: Path, *args: str) -> str:
    """Run `rocketeval run`; gaps are allowed, a weak judge may leave some."""
    command = [sys.executable, "-m", "rocketeval.cli.main", "run", str(config), *args]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode in (0, 3), done.stdout + done.stderr
    return done.stdout


def judgments(run: Path) -> list[dict[str, Any]]:
    """Every judgment in a run's ledger."""
    rows: list[dict[str, Any]] = pq.read_table(run / "ledger").to_pylist()
    return rows


def check_answers(rows: list[dict[str, Any]]) -> None:
    """Real probabilities: in range, inside their bounds, and not all the same."""
    answers = [
        answer
        for row in rows
        for answer in zip(row["p_yes"], row["p_low"], row["p_high"], row["mass"], strict=True)
        if answer[0] is not None
    ]
    assert all(0 <= low <= p <= high <= 1 and 0 < mass <= 1.001 for p, low, high, mass in answers)
    assert len({p for p, *_ in answers}) > len(answers) // 4


def test_the_quickstart_is_judged_by_a_real_model(judge_url: ServedJudge, tmp_path: Path) -> None:
    """One real checklist for five candidates, from `init` to the report."""
    base_url, model = judge_url
    folder = tmp_path / "demo"
    init = ["init", str(folder), "--model", model, "--base-url", base_url]
    subprocess.run([sys.executable, "-m", "rocketeval.cli.main", *init], check=True)
    shown = run_cli(folder / "rocketeval.yaml", "--limit", "1")
    assert "careful" in shown
    run = folder / "runs" / "quickstart-first-1"
    rows = judgments(run)
    assert len(rows) == 5
    assert all(row["prompt_tokens"] > 0 for row in rows)
    check_answers(rows)
    assert (run / "report.html").stat().st_size > 10_000


def brief_first(questions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Put one first whose responses are short, so that a model on a few cores reads them soon."""
    return sorted(questions, key=lambda question: question["question_id"] != BRIEF)


@pytest.mark.skipif(
    not (SHARED_DATA / "mt_bench").is_dir(), reason="MT-Bench is not beside this checkout"
)
def test_the_mt_bench_study_runs_with_a_real_model(judge_url: ServedJudge, tmp_path: Path) -> None:
    """The study's own config, for one brief query and three candidates: agreement, baselines."""
    base_url, model = judge_url
    study = yaml.safe_load((ROOT / "studies" / "mt_bench" / "first_turn.yaml").read_text())
    benchmark = study["benchmark"]
    lay_out(SHARED_DATA / "mt_bench", tmp_path / "mt_bench", brief_first)
    benchmark["path"] = str(tmp_path / "mt_bench")
    benchmark["options"]["questions"] = QUESTIONS
    benchmark["candidates"] = benchmark["candidates"][:3]
    study |= {"output": str(tmp_path / "runs"), "cache": None}
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(study))
    shown = run_cli(config, "--limit", "1", "--judge", model, "--base-url", base_url)
    assert "agrees with" in shown
    run = tmp_path / "runs" / "first_turn-first-1"
    assert "longer response" in (run / "audit.json").read_text()
    rows = judgments(run)
    assert {row["candidate"] for row in rows} == set(study["benchmark"]["candidates"])
    check_answers(rows)
