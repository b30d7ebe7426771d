"""`rocketeval export` as a person uses it."""

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
    """A finished run with a candidate whose name could redraw a terminal."""
    folder = tmp_path_factory.mktemp("export")
    write_benchmark(folder / "benchmark")
    (folder / "benchmark" / "votes.jsonl").unlink()
    responses = folder / "benchmark" / "responses"
    (responses / "left.jsonl").rename(responses / "\x1b[31mleft.jsonl")
    run_scripted(folder, "first")
    return folder


def test_text_is_printed_and_notes_are_not_in_it(folder: Path) -> None:
    """stdout holds the table alone, for a pipe; a config and a folder name the same run."""
    done = cli(folder, "export", "first.yaml", "--to", "matches")
    assert [json.loads(line)["judge"] for line in done.stdout.splitlines()] == ["first"] * 3
    assert "of 3 matches" in done.stderr
    assert cli(folder, "export", "runs/first", "--to", "matches").stdout == done.stdout
    rows = list(csv.reader(cli(folder, "export", "first.yaml", "--to", "csv").stdout.splitlines()))
    assert {row[3] for row in rows[1:]} == {"\x1b[31mleft", "right"}


def test_a_dash_is_stdout(folder: Path) -> None:
    """`-o -` prints, as for other tools; a file of that name is called ./-."""
    call = ("export", "first.yaml", "--to", "csv", "-o")
    before = sorted(folder.iterdir())
    assert cli(folder, *call, "-").stdout == cli(folder, *call[:-1]).stdout
    assert "--out PATH" in cli(folder, *call[:2], "--to", "wildbench", "-o", "-", code=2).stderr
    assert sorted(folder.iterdir()) == before
    cli(folder, *call, "./-")
    (folder / "-").unlink()


def test_a_terminal_is_not_redrawn(folder: Path) -> None:
    """On a terminal, control characters of names are shown, not obeyed."""
    main, other = pty.openpty()
    command = [sys.executable, "-m", "rocketeval.cli.main", "export", "first.yaml", "--to", "csv"]
    subprocess.run(command, cwd=folder, stdout=other, check=True, timeout=60)
    os.close(other)
    shown = os.read(main, 10_000).decode()
    os.close(main)
    assert "\ufffd[31mleft" in shown
    assert "\x1b" not in shown


def test_a_reader_may_stop(folder: Path) -> None:
    """`| head -0` is no error."""
    command = f"{sys.executable} -m rocketeval.cli.main export first.yaml --to csv | true"
    done = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0
    assert done.stderr == ""


def test_files_are_written_and_told(folder: Path) -> None:
    """The ending says the format, what was renamed is said, and nothing is replaced unasked."""
    shown = cli(folder, "export", "first.yaml", "-o", "out/ranking.md").stdout
    assert shown == "Written: out/ranking.md (2 rows)\n"
    assert (folder / "out" / "ranking.md").read_text().startswith("**Ranking over 3 queries")
    again = cli(folder, "export", "first.yaml", "-o", "out/ranking.md", code=2)
    assert "ranking.md already exists" in again.stderr
    assert "--force" in again.stderr
    cli(folder, "export", "first.yaml", "-o", "out/ranking.md", "--force")
    shown = cli(folder, "export", "first.yaml", "--to", "rocketeval", "-o", "out/official").stdout
    assert "Names made into file names" in shown
    assert "\x1b" not in shown


def test_programs_are_told_in_json(folder: Path) -> None:
    """With --json, stdout is one document about what was written; --quiet leaves the table."""
    call = ("export", "first.yaml", "--to", "wildbench", "-o", "out/wildbench", "--json")
    found = json.loads(cli(folder, *call).stdout)
    assert found["rows"] == 6
    assert found["path"] == "out/wildbench"
    assert found["files"].keys() == {"\x1b[31mleft"}
    assert cli(folder, "export", "first.yaml", "--to", "matches", "--quiet").stderr == ""
    printed = cli(folder, "export", "first.yaml", "--to", "csv", "--json", code=2)
    assert "--out PATH" in printed.stderr


def test_mistakes_are_explained(folder: Path) -> None:
    """Each says what to do instead."""
    for args, told in {
        ("--to", "cvs"): "Did you mean 'csv'?",
        (): "--to with one of",
        ("--to", "parquet"): "--out PATH",
        ("--to", "wildbench"): "--out PATH",
        ("--to", "latex", "--what", "judgments"): "csv, jsonl, parquet",
        ("--to", "latex", "--bom"): "csv only",
        ("--to", "markdown", "--what", "audit"): "no votes, labels or ratings",
    }.items():
        assert told in cli(folder, "export", "first.yaml", *args, code=2).stderr
    assert "run directory already" in (
        cli(folder, "export", "runs/first", "--name", "x", "--to", "csv", code=2).stderr
    )
    absent = cli(folder, "export", "first.yaml", "--name", "other", "--to", "csv", code=5)
    assert "There is no run" in absent.stderr
    assert not (folder / "runs" / "other").exists()


def test_help_lists_every_format(folder: Path) -> None:
    """A person finds the format without the documents."""
    shown = cli(folder, "export", "--help").stdout
    for name in FORMATS:
        assert f"  {name} " in shown
