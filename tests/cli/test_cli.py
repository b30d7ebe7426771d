"""The command line as a person uses it: messages, exit codes, no tracebacks."""

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


def test_run_prints_the_ranking_and_what_it_comes_down_to(folder: Path) -> None:
    """One command gives the leaderboard, trust, cost, time, gaps, the report and what is next."""
    shown = cli(folder, "run").stdout
    for text in (
        "left",
        "right",
        "of 3 votes, ties included",
        "12 calls",
        "  runs/demo/report.html\n",
    ):
        assert text in shown
    titles = [line.split()[0] for line in shown.splitlines() if line[:1].isupper()]
    wanted = ["Trust", "Cost", "Time", "Missing", "Report", "Next"]
    assert [title for title in titles if title in wanted] == wanted
    assert (folder / "runs" / "demo" / "report.html").exists()
    assert "longer response" in cli(folder, "audit").stdout


def test_stages_can_be_run_one_by_one(folder: Path) -> None:
    """--only runs a stage, audit is a verb; together they give the same files as run."""
    for stage in ("load", "checklist", "grade", "score", "rank"):
        assert cli(folder, "run", "--only", stage).stdout
    cli(folder, "audit")
    cli(folder, "run", "--only", "report")
    cli(folder, "run", "--name", "whole")
    for name in ("scores.parquet", "ranking.json", "audit.json"):
        alone, whole = (folder / "runs" / run / name for run in ("demo", "whole"))
        assert alone.read_bytes() == whole.read_bytes()


def test_an_option_that_a_stage_has_no_use_for_is_refused(folder: Path) -> None:
    """Nothing on the command line is silently passed over; a stage that is a verb is named."""
    refused = ("run", "--only", "rank", "--judge", "x", "--dry-run")
    assert "has no use for --judge, --dry-run" in cli(folder, *refused, code=2).stderr
    assert "`rocketeval audit`" in cli(folder, "run", "--only", "audit", code=2).stderr


def test_a_stage_out_of_order_names_the_missing_one(folder: Path) -> None:
    """Ranking before grading says what to run first."""
    assert "rocketeval run" in cli(folder, "run", "--only", "rank", code=5).stderr
    cli(folder, "run", "--only", "checklist")
    assert "rocketeval run --only score" in cli(folder, "run", "--only", "rank", code=5).stderr


def test_a_figure_without_an_interval_says_so(folder: Path) -> None:
    """One query cannot bound a rating, and the table does not pretend it can."""
    shown = cli(folder, "run", "--limit", "1").stdout
    assert "(unknown)" in shown
    assert "resamples" not in shown


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
    assert "no score" not in done.stdout
    assert "\n         rocketeval run\n" in done.stdout
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
    """--quiet is silent when all is well, also where a response is empty or absent."""
    write_jsonl(
        folder / "benchmark" / "responses" / "left.jsonl", [{"query_id": "sky", "text": ""}]
    )
    assert "empty" in cli(folder, "run").stdout
    done = cli(folder, "run", "--quiet")
    assert done.stdout + done.stderr == ""
    told = json.loads(cli(folder, "run", "--quiet", "--json").stdout)["missing"]
    assert (told["responses_empty"], told["responses_absent"]) == (1, 2)


def test_what_fails_again_takes_nothing_away(folder: Path) -> None:
    """Scores, ranking and report stay until there is a new judgment, and then go at once."""
    failing = CONFIG.replace("scripted}", "scripted, options: {fail_on: left explains the sun}}")
    (folder / "rocketeval.yaml").write_text(failing)
    cli(folder, "run", code=3)
    made = [folder / "runs" / "demo" / name for name in ("scores.parquet", "report.html")]
    cli(folder, "run", "--only", "grade", code=3)
    assert all(path.exists() for path in made)
    (folder / "rocketeval.yaml").write_text(CONFIG)
    cli(folder, "run", "--only", "grade")
    assert not any(path.exists() for path in made)


def test_names_cannot_rewrite_an_error(folder: Path) -> None:
    """Paths and words of the command line are shown without control characters, in every error."""
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


def test_init_names_a_command_that_can_be_typed(tmp_path: Path) -> None:
    """A folder with a space in it is one word."""
    shown = cli(tmp_path, "init", "my demo", "--model", "m").stdout
    assert "Next: rocketeval run 'my demo/rocketeval.yaml'\n" in shown


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("audit",), ("run",), ("nope",)])
def test_a_closed_pipe_is_no_mistake(words: tuple[str, ...], folder: Path) -> None:
    """Whoever reads may go; nothing is said of it, and shells see what they see of others."""
    cli(folder, "run", "--quiet")
    reading, writing = os.pipe()
    os.close(reading)
    command = [sys.executable, "-m", "rocketeval.cli.main", *words]
    streams = {"stderr": writing} if words == ("nope",) else {"stdout": writing}
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    with subprocess.Popen(command, cwd=folder, **both) as process:  # type: ignore[call-overload]
        os.close(writing)
        _, told = process.communicate(timeout=60)
    assert process.returncode == 141
    assert b"Broken" not in (told or b"")
    assert b"Traceback" not in (told or b"")


async def test_a_silent_server_is_waited_for_by_name(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Progress says whom it waits for, and the error does not say to start what is running."""
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
        await drive._ticking(run.observer, run.to_judgments)
    done.set()
    server.close()
    await server.wait_closed()
    assert "still loading" in error.value.hint
    assert "Start the server" not in error.value.hint
    assert f"so far, waiting for the judge small at {address}" in capsys.readouterr().err


def test_ctrl_c_stops_cleanly_and_goes_on_later(folder: Path) -> None:
    """An interrupt finishes what is in flight, exits 130, and the next run completes."""
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
    assert "are already there" in shown.stderr
