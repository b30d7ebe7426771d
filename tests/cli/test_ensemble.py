"""End-to-end tests of `rocketeval ensemble`."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.store.files import write_jsonl
from support.in_process import cli, run_scripted
from support.make import CANDIDATES, QUERIES, write_benchmark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs by two judges."""
    folder = tmp_path_factory.mktemp("ensemble")
    write_benchmark(folder / "benchmark")
    run_scripted(folder, "first", "second")
    return folder


def test_both_rankings_are_printed_and_written(folder: Path) -> None:
    """Runs are given as directory and as config; each ranking has a table and files."""
    shown = cli(folder, "ensemble", "runs/first", "second.yaml", "--out", "both").stdout
    assert "Mean of 2 judges over 3 queries" in shown
    assert "Pooled matches of 2 judges over 3 queries" in shown
    for method in ("first", "second", "mean of judges", "pooled matches"):
        assert f"\n{method} " in shown
    assert "Written: both" in shown
    assert (folder / "both" / "pooled" / "ranking.csv").exists()


def test_omissions_are_reported(folder: Path) -> None:
    """A shorter run and different settings are reported."""
    cli(folder, "run", "second.yaml", "--limit", "2", "--quiet")
    other = (folder / "second.yaml").read_text().replace("bootstrap: 50", "bootstrap: 60")
    (folder / "other.yaml").write_text(other.replace("name: second", "name: second-first-2"))
    shown = cli(folder, "ensemble", "first.yaml", "other.yaml", "--out", "short").stdout
    assert "1 query left out: not in every run" in shown
    assert "ranking settings of" in shown


def test_two_runs_and_out_are_required(folder: Path) -> None:
    """The error names the missing argument."""
    assert "--out" in cli(folder, "ensemble", "runs/first", code=2).stderr
    one = cli(folder, "ensemble", "runs/first", "--out", "alone", code=2)
    assert "two runs" in one.stderr


def test_labels_that_are_not_used_are_named(tmp_path: Path) -> None:
    """With labels only, the output says that they are not used, and which command uses them."""
    (write_benchmark(tmp_path / "benchmark") / "votes.jsonl").unlink()
    rows = [{"query_id": q, "candidate": c, "value": 5} for q in QUERIES for c in CANDIDATES]
    write_jsonl(tmp_path / "benchmark" / "labels.jsonl", rows)
    run_scripted(tmp_path, "first", "second")
    shown = cli(tmp_path, "ensemble", "runs/first", "runs/second", "--out", "both").stdout
    assert "no human votes, labels" not in shown
    assert "6 labels were not used" in shown
    command = next(line for line in shown.splitlines() if "rocketeval audit" in line)
    cli(tmp_path, *command.partition(": rocketeval ")[2].split())
