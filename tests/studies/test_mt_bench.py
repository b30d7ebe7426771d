"""The MT-Bench study's config, from the recorded files to the report."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from mad_eval.spread import QUESTIONS, in_turn, lay_out

from support.in_process import cli

ROOT = Path(__file__).parents[2]
SHARED_DATA = Path(os.environ.get("ROCKETEVAL_SHARED_DATA", ROOT.parent / "shared" / "data"))


@pytest.mark.skipif(
    not (SHARED_DATA / "mt_bench").is_dir(), reason="MT-Bench is not next to this checkout"
)
def test_study_runs_with_scripted_judge(tmp_path: Path) -> None:
    """Two queries and three candidates give agreement, baselines and a report."""
    study = yaml.safe_load((ROOT / "studies" / "mt_bench" / "first_turn.yaml").read_text())
    benchmark = study["benchmark"]
    lay_out(SHARED_DATA / "mt_bench", tmp_path / "mt_bench", in_turn)
    benchmark["path"] = str(tmp_path / "mt_bench")
    benchmark["options"]["questions"] = QUESTIONS
    benchmark["candidates"] = benchmark["candidates"][:3]
    study |= {"output": str(tmp_path / "runs"), "cache": None}
    study["judge"] = {"engine": "scripted", "model": study["judge"]["model"]}
    config = tmp_path / "study.yaml"
    config.write_text(yaml.safe_dump(study))
    shown = cli(tmp_path, "run", str(config), "--limit", "2").stdout
    assert "agree" in shown
    run = tmp_path / "runs" / "first_turn-first-2"
    assert "longer response" in (run / "audit.json").read_text()
    rows = pq.read_table(run / "ledger").to_pylist()
    assert {row["candidate"] for row in rows} == set(benchmark["candidates"])
    assert len(rows) == 6
    assert all(0.0 <= p <= 1.0 for row in rows for p in row["p_yes"])
    assert (run / "report.html").stat().st_size > 10_000
