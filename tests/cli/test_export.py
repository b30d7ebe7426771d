"""End-to-end tests of `rocketeval export`."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from rocketeval.exports.formats import FORMATS
from support.in_process import cli, run_scripted
from support.make import write_benchmark


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with a candidate whose name has terminal control characters."""
    folder = tmp_path_factory.mktemp("export")
    write_benchmark(folder / "benchmark")
    (folder / "benchmark" / "votes.jsonl").unlink()
    responses = folder / "benchmark" / "responses"
    (responses / "left.jsonl").rename(responses / "\x1b[31mleft.jsonl")
    run_scripted(folder, "first")
    return folder


def test_stdout_has_only_the_table(folder: Path) -> None:
    """Notes go to stderr; a config and a folder name the same run."""
    done = cli(folder, "export", "first.yaml", "--to", "matches")
    assert [json.loads(line)["judge"] for line in done.stdout.splitlines()] == ["first"] * 3
    assert "of 3 matches" in done.stderr
    assert cli(folder, "export", "runs/first", "--to", "matches").stdout == done.stdout
    rows = list(csv.reader(cli(folder, "export", "first.yaml", "--to", "csv").stdout.splitlines()))
    assert {row[3] for row in rows[1:]} == {"\x1b[31mleft", "right"}


def test_dash_is_stdout(folder: Path) -> None:
    """`-o -` prints to stdout; `./-` is a file of that name."""
    call = ("export", "first.yaml", "--to", "csv", "-o")
    before = sorted(folder.iterdir())
    assert cli(folder, *call, "-").stdout == cli(folder, *call[:-1]).stdout
    assert "--out PATH" in cli(folder, *call[:2], "--to", "wildbench", "-o", "-", code=2).stderr
    assert sorted(folder.iterdir()) == before
    cli(folder, *call, "./-")
    (folder / "-").unlink()


def test_control_characters_do_not_reach_a_terminal(folder: Path) -> None:
    """On a terminal, control characters of names are replaced."""
    main, other = pty.openpty()
    command = [sys.executable, "-m", "rocketeval.cli.main", "export", "first.yaml", "--to", "csv"]
    subprocess.run(command, cwd=folder, stdout=other, check=True, timeout=60)
    os.close(other)
    shown = os.read(main, 10_000).decode()
    os.close(main)
    assert "\ufffd[31mleft" in shown
    assert "\x1b" not in shown


def test_closed_pipe_is_not_an_error(folder: Path) -> None:
    """A reader may close the pipe early."""
    command = f"{sys.executable} -m rocketeval.cli.main export first.yaml --to csv | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stderr == ""


def test_files_are_written_and_reported(folder: Path) -> None:
    """The suffix determines the format, renamed files are reported, and --force replaces."""
    shown = cli(folder, "export", "first.yaml", "-o", "out/ranking.md").stdout
    assert shown == "Written: out/ranking.md (2 rows)\n"
    assert (folder / "out" / "ranking.md").read_text().startswith("**Ranking over 3 queries")
    again = cli(folder, "export", "first.yaml", "-o", "out/ranking.md", code=2)
    assert "exists" in again.stderr
    assert "--force" in again.stderr
    cli(folder, "export", "first.yaml", "-o", "out/ranking.md", "--force")
    shown = cli(folder, "export", "first.yaml", "--to", "rocketeval", "-o", "out/official").stdout
    assert "file names" in shown
    assert "\x1b" not in shown


def test_export_as_json(folder: Path) -> None:
    """--json describes the written files; --quiet suppresses the notes."""
    call = ("export", "first.yaml", "--to", "wildbench", "-o", "out/wildbench", "--json")
    found = json.loads(cli(folder, *call).stdout)
    assert found["rows"] == 6
    assert found["path"] == "out/wildbench"
    assert found["files"].keys() == {"\x1b[31mleft"}
    assert cli(folder, "export", "first.yaml", "--to", "matches", "--quiet").stderr == ""
    printed = cli(folder, "export", "first.yaml", "--to", "csv", "--json", code=2)
    assert "--out PATH" in printed.stderr


def test_invalid_requests_are_refused(folder: Path) -> None:
    """Each error names a valid alternative."""
    for args, message in {
        ("--to", "cvs"): "Did you mean 'csv'?",
        (): "--to",
        ("--to", "parquet"): "--out PATH",
        ("--to", "wildbench"): "--out PATH",
        ("--to", "latex", "--what", "judgments"): "csv, jsonl, parquet",
        ("--to", "latex", "--bom"): "csv",
        ("--to", "markdown", "--what", "audit"): "votes, labels",
    }.items():
        assert message in cli(folder, "export", "first.yaml", *args, code=2).stderr
    assert "run directory" in (
        cli(folder, "export", "runs/first", "--name", "x", "--to", "csv", code=2).stderr
    )
    absent = cli(folder, "export", "first.yaml", "--name", "other", "--to", "csv", code=5)
    assert "run" in absent.stderr
    assert not (folder / "runs" / "other").exists()


def test_help_lists_every_format(folder: Path) -> None:
    """The help page lists all formats."""
    shown = cli(folder, "export", "--help").stdout
    for name in FORMATS:
        assert f"  {name} " in shown
