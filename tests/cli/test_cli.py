"""End-to-end tests of the command line: messages, exit codes, no tracebacks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rocketeval.cli import progress
from rocketeval.cli import run_with_signals as drive
from rocketeval.config import JudgeConfig, load_config
from rocketeval.engines import http
from rocketeval.errors import EngineUnavailable
from rocketeval.pipeline import Run
from support.forked import Forked
from support.in_process import cli
from support.make import write_benchmark, write_jsonl

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


def test_run_prints_ranking_and_summary(folder: Path) -> None:
    """The output has the ranking, trust, cost, time, missing data, report and next step."""
    shown = cli(folder, "run").stdout
    for text in (
        "left",
        "right",
        "of 3 votes (win, loss or tie)",
        "12 requests",
        "  runs/demo/report.html\n",
    ):
        assert text in shown
    titles = [line.split()[0] for line in shown.splitlines() if line[:1].isupper()]
    wanted = ["Trust", "Cost", "Time", "Missing", "Report", "Next"]
    assert [title for title in titles if title in wanted] == wanted
    assert (folder / "runs" / "demo" / "report.html").exists()
    assert "longer response" in cli(folder, "audit").stdout


def test_stages_can_be_run_one_by_one(folder: Path) -> None:
    """Stages run with --only give the same files as a full run."""
    for stage in ("load", "checklist", "grade", "score", "rank"):
        assert cli(folder, "run", "--only", stage).stdout
    cli(folder, "audit")
    cli(folder, "run", "--only", "report")
    cli(folder, "run", "--name", "whole")
    for name in ("scores.parquet", "ranking.json", "audit.json"):
        alone, whole = (folder / "runs" / run / name for run in ("demo", "whole"))
        assert alone.read_bytes() == whole.read_bytes()


def test_steps_of_a_limited_run_keep_its_limits(folder: Path) -> None:
    """The step that uses the labels grades no more queries than the run has."""
    (folder / "part.txt").write_text("sky\n")
    for options, kept, name in (
        (("--limit", "1"), "--limit 1", "demo-first-1"),
        (("--queries", "part.txt"), "--queries part.txt", "demo-part"),
        (("--limit", "1", "--name", "own"), "--limit 1 --name own", "own"),
    ):
        cli(folder, "run", *options, "--quiet")
        steps = cli(folder, "labels", "next", "--top", "2", "--out", "w.jsonl", "--name", name)
        assert f"reused: rocketeval run {kept}\n" in steps.stdout
        (folder / "w.jsonl").unlink()
    steps = cli(folder, "labels", "next", "--top", "2", "--out", "w.jsonl", "runs/own").stdout
    assert "In runs/own/run.yaml, add the line `collected: " in steps
    assert "reused: rocketeval run runs/own\n" in steps


def test_unused_option_of_a_stage_is_refused(folder: Path) -> None:
    """Options are never ignored silently; a stage that is a verb is named."""
    refused = ("run", "--only", "rank", "--judge", "x", "--dry-run")
    assert "--judge, --dry-run" in cli(folder, *refused, code=2).stderr
    assert "`rocketeval audit`" in cli(folder, "run", "--only", "audit", code=2).stderr


def test_stage_out_of_order_names_the_missing_one(folder: Path) -> None:
    """Ranking before grading names the command to run first."""
    assert "rocketeval run" in cli(folder, "run", "--only", "rank", code=5).stderr
    cli(folder, "run", "--only", "checklist")
    assert "Run `rocketeval run` first" in cli(folder, "run", "--only", "rank", code=5).stderr


def test_verbs_without_scores_name_the_whole_run(folder: Path) -> None:
    """After an interruption, the hint is the command that finishes the run, with its config."""
    (folder / "slow.yaml").write_text(CONFIG)
    cli(folder, "run", "slow.yaml", "--limit", "2", "--only", "grade")
    cli(folder, "run", "slow.yaml", "--only", "grade")
    for words in (
        ("compare", "left", "right", "slow.yaml"),
        ("labels", "next", "--top", "1", "slow.yaml"),
        ("audit", "slow.yaml"),
        ("anchors", "slow.yaml"),
        ("gate", "slow.yaml", "slow.yaml"),
    ):
        assert "Run `rocketeval run slow.yaml` first." in cli(folder, *words, code=5).stderr
    limited = cli(folder, "compare", "left", "right", "slow.yaml", "--name", "demo-first-2", code=5)
    assert "Run `rocketeval run --limit 2 slow.yaml` first." in limited.stderr
    inside = cli(folder, "anchors", "runs/demo", code=5).stderr
    assert "Run `rocketeval run runs/demo` first." in inside


def test_figure_without_interval_is_marked(folder: Path) -> None:
    """With one query, the interval of a rating is unknown."""
    shown = cli(folder, "run", "--limit", "1").stdout
    assert "no interval" in shown
    assert "resamples" not in shown


def test_dry_run_writes_and_contacts_nothing(folder: Path) -> None:
    """--dry-run prints the size of the work and writes no file."""
    shown = cli(folder, "run", "--dry-run").stdout
    assert "3 queries, 2 candidates, 6 responses" in shown
    assert "12 items" in shown
    assert not (folder / "runs").exists()


def test_limit_uses_the_first_queries(folder: Path) -> None:
    """--limit judges the first N queries, in a separate run."""
    cli(folder, "run")
    whole = (folder / "runs" / "demo" / "ranking.json").read_bytes()
    assert "over 1 query" in cli(folder, "run", "--limit", "1").stdout
    assert (folder / "runs" / "demo-first-1" / "report.html").exists()
    assert (folder / "runs" / "demo" / "ranking.json").read_bytes() == whole


def test_command_line_overrides_config(folder: Path) -> None:
    """--judge overrides the config's judge."""
    cli(folder, "run", "--judge", "other-model")
    assert '"model": "other-model"' in (folder / "runs" / "demo" / "manifest.json").read_text()


def test_typo_in_config_suggests_the_nearest_key(folder: Path) -> None:
    """An unknown key is an error with the nearest valid key and exit code 2."""
    (folder / "rocketeval.yaml").write_text(CONFIG.replace("engine:", "engin:"))
    assert "Did you mean 'engine'?" in cli(folder, "run", code=2).stderr


def test_missing_config_points_to_init(tmp_path: Path) -> None:
    """Without a config, the error names `rocketeval init`."""
    assert "rocketeval init" in cli(tmp_path, "run", code=2).stderr


def test_unreachable_judge_is_exit_code_four(folder: Path) -> None:
    """An unreachable judge gives exit code 4 and names the URL setting."""
    text = CONFIG.replace("engine: scripted", "base_url: http://127.0.0.1:9/v1")
    (folder / "rocketeval.yaml").write_text(text)
    shown = cli(folder, "run", code=4).stderr
    assert "Cannot reach http://127.0.0.1:9/v1" in shown
    assert "base_url" in shown


def test_missing_answers_end_with_exit_code_three(folder: Path) -> None:
    """A run with failures finishes, names them and returns exit code 3."""
    text = CONFIG.replace(
        "model: scripted}", "model: scripted, options: {fail_on: left explains the sun}}"
    )
    (folder / "rocketeval.yaml").write_text(text)
    done = cli(folder, "run", code=3)
    assert "failed: left on sun" in done.stderr
    assert "Missing  1 response could not be judged; run it again to retry" in done.stdout
    assert "no score" not in done.stdout
    assert "\n         rocketeval run\n" in done.stdout
    quiet = cli(folder, "run", "--quiet", code=3)
    assert quiet.stdout == ""
    assert "1 response could not be judged" in quiet.stderr


def test_init_writes_a_benchmark_that_runs(tmp_path: Path) -> None:
    """The files of init are complete, and existing files are not overwritten."""
    cli(tmp_path, "init", "demo", "--model", "m")
    config = tmp_path / "demo" / "rocketeval.yaml"
    config.write_text(config.read_text().replace("model: m", "model: m\n  engine: scripted"))
    assert "careful" in cli(tmp_path, "run", "demo/rocketeval.yaml").stdout
    assert "already exists" in cli(tmp_path, "init", "demo", code=2).stderr


def test_quiet_prints_nothing(folder: Path) -> None:
    """--quiet prints nothing on success, even if a response is empty or absent."""
    write_jsonl(
        folder / "benchmark" / "responses" / "left.jsonl", [{"query_id": "sky", "text": ""}]
    )
    assert "empty" in cli(folder, "run").stdout
    done = cli(folder, "run", "--quiet")
    assert done.stdout + done.stderr == ""
    missing = json.loads(cli(folder, "run", "--quiet", "--json").stdout)["missing"]
    assert (missing["responses_empty"], missing["responses_absent"]) == (1, 2)


def test_results_stay_until_there_is_a_new_judgment(folder: Path) -> None:
    """Scores and report stay if grading fails again, and are removed by a new judgment."""
    failing = CONFIG.replace("scripted}", "scripted, options: {fail_on: left explains the sun}}")
    (folder / "rocketeval.yaml").write_text(failing)
    cli(folder, "run", code=3)
    made = [folder / "runs" / "demo" / name for name in ("scores.parquet", "report.html")]
    cli(folder, "run", "--only", "grade", code=3)
    assert all(path.exists() for path in made)
    (folder / "rocketeval.yaml").write_text(CONFIG)
    cli(folder, "run", "--only", "grade")
    assert not any(path.exists() for path in made)


def test_errors_have_no_control_characters(folder: Path) -> None:
    """Control characters in paths and arguments are replaced in every error."""
    (folder / "in\x07\r").mkdir()
    (folder / "in\x07\r" / "rocketeval.yaml").write_text(CONFIG)
    for words, code in (
        (("run", "no\x07\r.yaml"), 2),
        (("run", "--only", "rank", "in\x07\r/rocketeval.yaml"), 5),
        (("run", "--no\x07\r"), 2),
        (("no\x07\r",), 2),
    ):
        shown = cli(folder, *words, code=code).stderr
        assert "\x07" not in shown
        assert "\r" not in shown
        assert len(shown.splitlines()) > 1


def test_init_quotes_the_next_command(tmp_path: Path) -> None:
    """A folder with a space is quoted."""
    shown = cli(tmp_path, "init", "my demo", "--model", "m").stdout
    assert "Next: rocketeval run 'my demo/rocketeval.yaml'\n" in shown


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("audit",), ("run",), ("nope",)])
def test_closed_pipe_is_exit_code_141(words: tuple[str, ...], folder: Path) -> None:
    """A closed pipe prints no error and gives the exit code of SIGPIPE."""
    cli(folder, "run", "--quiet")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "rocketeval.cli.main", *words]
    streams = {"stderr": writing} if words == ("nope",) else {"stdout": writing}
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    with subprocess.Popen(command, cwd=folder, **both) as process:  # type: ignore[call-overload]
        os.close(writing)
        _, stderr = process.communicate(timeout=60)
    assert process.returncode == 141
    assert b"Broken" not in (stderr or b"")
    assert b"Traceback" not in (stderr or b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize(
    ("words", "code"), [(("audit", "--json"), 1), (("audit", "no.yaml", "--json"), 2)]
)
def test_json_on_a_full_disk_is_a_message(words: tuple[str, ...], code: int, folder: Path) -> None:
    """The error is on stderr, without a traceback, and names what cannot be written."""
    cli(folder, "run", "--quiet")
    command = [sys.executable, "-m", "rocketeval.cli.main", *words]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            command, cwd=folder, stdout=full, stderr=subprocess.PIPE, timeout=60, check=False
        )
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert (b"standard output" in done.stderr) == (code == 1)
    assert done.stderr.count(b"Error: ") == 1


async def test_progress_names_a_server_that_does_not_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Progress names the judge and URL, and the error does not say to start the server."""
    monkeypatch.setattr(http, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(progress, "FIRST_SECONDS", 0.1)
    done = asyncio.Event()

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await done.wait()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    config = load_config(folder / "rocketeval.yaml")
    judge = JudgeConfig(model="small", base_url=address)
    run = Run(config.model_copy(update={"judge": judge}), observer=progress.LineObserver(config))
    with pytest.raises(EngineUnavailable, match="gave no answer") as error:
        await drive.ticking(run.observer, run.to_judgments)
    done.set()
    server.close()
    await server.wait_closed()
    assert "still loading" in error.value.hint
    assert "Start the server" not in error.value.hint
    assert f"so far, waiting for the judge small at {address}" in capsys.readouterr().err


def test_ctrl_c_stops_cleanly_and_the_next_run_continues(folder: Path) -> None:
    """An interrupt waits for answers in flight and exits with 130; the next run completes."""
    text = CONFIG.replace("model: scripted", "model: scripted, concurrency: 1, options: {delay: 1}")
    (folder / "rocketeval.yaml").write_text(text)
    process = Forked(folder, ("run",))
    ledger = folder / "runs" / "demo" / "ledger"
    while not any(p.stat().st_size for p in ledger.glob("journal*")):
        assert process.returncode is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate()
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    assert "Stopping" in stderr
    (folder / "rocketeval.yaml").write_text(CONFIG)
    shown = cli(folder, "run")
    assert "already done" in shown.stderr
