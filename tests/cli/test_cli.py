"""The command line as a person uses it: messages, exit codes, no tracebacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.command import cli
from support.make import write_benchmark

CONFIG = """\
name: demo
benchmark: {path: benchmark}
judge: {engine: scripted, model: scripted}
ranking: {bootstrap: 50}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "rocketeval.yaml").write_text(CONFIG)
    return tmp_path


def test_help_lists_every_verb_in_order() -> None:
    """`--help` shows the walk, and each verb explains itself."""
    shown = cli(Path.cwd(), "--help").stdout
    verbs = ["init", "doctor", "plan", "run", "checklist", "grade", "score", "rank", "audit"]
    verbs += ["explain", "report", "scorers", "ensemble"]
    places = [shown.index(f"\n  {verb} ") for verb in verbs]
    assert places == sorted(places)
    for verb in verbs:
        assert "Usage: rocketeval" in cli(Path.cwd(), verb, "--help").stdout


def test_run_prints_the_ranking_and_what_it_comes_down_to(folder: Path) -> None:
    """One command gives the leaderboard, trust, cost, time, gaps, the report and what is next."""
    shown = cli(folder, "run").stdout
    for text in ("left", "right", "of 3 decided votes", "12 calls", "report.html"):
        assert text in shown
    titles = [line.split()[0] for line in shown.splitlines() if line[:1].isupper()]
    wanted = ["Trust", "Cost", "Time", "Missing", "Report", "Next"]
    assert [title for title in titles if title in wanted] == wanted
    assert (folder / "runs" / "demo" / "report.html").exists()
    assert "longer response" in cli(folder, "audit").stdout


def test_stages_can_be_run_one_by_one(folder: Path) -> None:
    """checklist, grade, score, rank, audit, report give the same files as run."""
    for verb in ("checklist", "grade", "score", "rank", "audit", "report"):
        cli(folder, verb)
    cli(folder, "run", "--name", "whole")
    for name in ("scores.parquet", "ranking.json", "audit.json"):
        alone, whole = (folder / "runs" / run / name for run in ("demo", "whole"))
        assert alone.read_bytes() == whole.read_bytes()


def test_a_stage_out_of_order_names_the_missing_one(folder: Path) -> None:
    """Ranking before grading says what to run first."""
    assert "rocketeval score" in cli(folder, "rank", code=5).stderr


def test_a_figure_without_an_interval_says_so(folder: Path) -> None:
    """One query cannot bound a rating, and the table does not pretend it can."""
    assert "(unknown)" in cli(folder, "run", "--limit", "1").stdout


def test_dry_run_writes_and_contacts_nothing(folder: Path) -> None:
    """--dry-run tells the size of the work and leaves no trace."""
    shown = cli(folder, "run", "--dry-run").stdout
    assert "3 queries, 2 candidates, 6 responses" in shown
    assert "12 items" in shown
    assert not (folder / "runs").exists()


def test_limit_uses_the_first_queries(folder: Path) -> None:
    """--limit judges only so many queries, in a run of its own."""
    cli(folder, "run")
    whole = (folder / "runs" / "demo" / "ranking.json").read_bytes()
    assert "over 1 query" in cli(folder, "run", "--limit", "1").stdout
    assert (folder / "runs" / "demo-first-1" / "report.html").exists()
    assert (folder / "runs" / "demo" / "ranking.json").read_bytes() == whole


def test_the_command_line_beats_the_config(folder: Path) -> None:
    """--judge names the judge that is really used."""
    cli(folder, "run", "--judge", "other-model")
    assert '"model": "other-model"' in (folder / "runs" / "demo" / "manifest.json").read_text()


def test_a_typo_in_the_config_names_the_right_word(folder: Path) -> None:
    """An unknown key is refused with the nearest valid one, exit code 2."""
    (folder / "rocketeval.yaml").write_text(CONFIG.replace("engine:", "engin:"))
    assert "Did you mean 'engine'?" in cli(folder, "run", code=2).stderr


def test_a_missing_config_says_how_to_get_one(tmp_path: Path) -> None:
    """Without a config the user is sent to init."""
    assert "rocketeval init" in cli(tmp_path, "run", code=2).stderr


def test_no_server_is_a_message_not_a_traceback(folder: Path) -> None:
    """An unreachable judge is exit code 4 and says what to check."""
    text = CONFIG.replace("engine: scripted", "base_url: http://127.0.0.1:9/v1")
    (folder / "rocketeval.yaml").write_text(text)
    shown = cli(folder, "run", code=4).stderr
    assert "Cannot reach http://127.0.0.1:9/v1" in shown
    assert "base_url" in shown


def test_missing_answers_end_with_exit_code_three(folder: Path) -> None:
    """A run with gaps finishes, names them and tells the shell."""
    text = CONFIG.replace(
        "model: scripted}", "model: scripted, options: {fail_on: left explains the sun}}"
    )
    (folder / "rocketeval.yaml").write_text(text)
    done = cli(folder, "run", code=3)
    assert "failed: left on sun" in done.stderr
    assert "Missing  1 response could not be judged; run it again to retry" in done.stdout
    assert "Next     rocketeval run" in done.stdout
    quiet = cli(folder, "run", "--quiet", code=3)
    assert quiet.stdout == ""
    assert "1 response could not be judged" in quiet.stderr


def test_init_writes_a_benchmark_that_runs(tmp_path: Path) -> None:
    """What init writes is complete, and nothing is overwritten."""
    cli(tmp_path, "init", "demo", "--model", "m")
    config = tmp_path / "demo" / "rocketeval.yaml"
    config.write_text(config.read_text().replace("model: m", "model: m\n  engine: scripted"))
    assert "careful" in cli(tmp_path, "run", "demo/rocketeval.yaml").stdout
    assert "exists already" in cli(tmp_path, "init", "demo", code=2).stderr


def test_quiet_prints_nothing(folder: Path) -> None:
    """--quiet is silent when all is well."""
    done = cli(folder, "run", "--quiet")
    assert done.stdout + done.stderr == ""


def test_ctrl_c_stops_cleanly_and_goes_on_later(folder: Path) -> None:
    """An interrupt finishes what is in flight, exits 130, and the next run completes."""
    text = CONFIG.replace("model: scripted", "model: scripted, concurrency: 1, options: {delay: 1}")
    (folder / "rocketeval.yaml").write_text(text)
    command = [sys.executable, "-m", "rocketeval.cli.main", "run"]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, env=environment) as process:
        ledger = folder / "runs" / "demo" / "ledger"
        deadline = time.monotonic() + 30
        while not any(p.stat().st_size for p in ledger.glob("journal*")):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert b"Traceback" not in stderr
    assert b"Stopping" in stderr
    (folder / "rocketeval.yaml").write_text(CONFIG)
    shown = cli(folder, "run")
    assert "are already there" in shown.stderr
