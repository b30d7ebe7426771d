"""Configs and runs of the first versions load, or are refused with the change that prevents it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reference.old_files import OLDEST, restore_oldest
from support.in_process import cli


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with the configs, the runs and the cache of the first versions."""
    folder = tmp_path / "home"
    restore_oldest(folder)
    return folder


def means(run: Path) -> dict[str, float]:
    """Return the mean score of each candidate in a run's ranking."""
    rows = json.loads((run / "ranking.json").read_bytes())["rows"]
    return {row["candidate"]: row["mean_score"]["value"] for row in rows}


def test_first_run_continues_without_a_request(home: Path) -> None:
    """The same command finishes the old run from its ledger, with the same means and a report."""
    before = means(OLDEST / "runs" / "first")
    stages = json.loads(cli(home, "run", "first.yaml", "--json").stdout)["stages"]
    assert (stages["grade"]["tasks"], stages["grade"]["finished_earlier"]) == (6, 6)
    assert stages["grade"]["usage"]["requests"] == 0
    run = home / "runs" / "first"
    assert means(run) == pytest.approx(before)
    assert "Paris" in (run / "report.html").read_text(encoding="utf-8")


def test_new_run_uses_the_first_cache(home: Path) -> None:
    """Judgments in an old cache are found by a run of another name."""
    config = (home / "first.yaml").read_text().replace("name: first", "name: again")
    (home / "again.yaml").write_text(config)
    grade = json.loads(cli(home, "run", "again.yaml", "--json").stdout)["stages"]["grade"]
    assert (grade["from_cache"], grade["judged"], grade["usage"]["requests"]) == (6, 0, 0)


@pytest.mark.parametrize("name", ["first", "earlier"])
def test_commands_read_the_first_runs(name: str, home: Path) -> None:
    """Scores are audited, compared and exported, and files without checksums verified, as found."""
    config = f"{name}.yaml"
    audit = json.loads(cli(home, "audit", config, "--json").stdout)["audit"]
    assert audit["agreement"]["judge"]["used"] == 3
    assert "3 queries" in cli(home, "compare", "new", "old", config).stdout
    exported = cli(home, "export", f"runs/{name}", "--to", "csv", "--what", "scores").stdout
    assert exported.count("\n") == 7
    assert "6 judgments" in cli(home, "verify", f"runs/{name}").stdout


def test_file_of_the_first_version_names_the_command_that_replaces_it(home: Path) -> None:
    """A report needs the audit in its present form; the message has the command that writes it."""
    refused = cli(home, "run", "first.yaml", "--only", "report", code=5).stderr
    assert "audit.json was written by another version" in refused
    assert "rocketeval audit" in refused
    cli(home, "audit", "first.yaml", "--quiet")
    cli(home, "run", "first.yaml", "--only", "report", "--quiet")
    assert (home / "runs" / "first" / "report.html").exists()


def test_run_judged_with_another_prompt_is_refused(home: Path) -> None:
    """The message names what differs and the way out, and no judgment is touched."""
    ledger = home / "runs" / "earlier" / "ledger"
    before = {path.name: path.read_bytes() for path in ledger.iterdir()}
    refused = cli(home, "run", "earlier.yaml", code=5).stderr
    assert "prompt or grading method" in refused
    assert "another `name`" in refused
    assert {path.name: path.read_bytes() for path in ledger.iterdir()} == before
