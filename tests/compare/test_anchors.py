"""Anchors of a run: the file, a run on these queries, and the place of a new candidate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import SCRIPTED
from support.in_process import cli, run_scripted
from support.make import write_grid


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of six candidates, and the config of a benchmark with a seventh."""
    folder = tmp_path_factory.mktemp("anchors")
    write_grid(folder / "benchmark", queries=30, candidates=6, items=2)
    run_scripted(folder, "judge")
    write_grid(folder / "later", queries=30, candidates=7, items=2)
    config = SCRIPTED.format(name="judge").replace(
        "path: benchmark", "path: later, candidates: [c6]"
    )
    (folder / "later.yaml").write_text(config.replace("name: judge", "name: later", 1))
    return folder


def test_anchors_are_written_graded_and_used_for_a_look(folder: Path) -> None:
    """A run on the anchors grades only these; the look places the new candidate."""
    shown = cli(folder, "anchors", "runs/judge", "--count", "8", "--out", "anchors.txt").stdout
    assert "8 anchors of 30 queries" in shown
    assert "from as many random queries" in shown
    ids = (folder / "anchors.txt").read_text().split()
    assert len(ids) == 8
    cli(folder, "run", "later.yaml", "--queries", "anchors.txt", "--quiet")
    manifest = json.loads((folder / "runs" / "later-anchors" / "manifest.json").read_text())
    assert manifest["stages"]["load"]["queries"] == 8
    words = ("anchors", "runs/judge", "--count", "8", "--look", "runs/later-anchors")
    looked = cli(folder, *words).stdout
    assert "new" in looked
    assert "order without intervals" in looked
    placed = json.loads(cli(folder, *words, "--json").stdout)["placed"]
    assert [row["candidate"] for row in placed if row["new"]] == ["c6"]
    assert len(placed) == 7


def test_mistakes_are_named(folder: Path) -> None:
    """Too many anchors, a run without them and unknown ids are refused."""
    assert "spare little" in cli(folder, "anchors", "runs/judge", "--count", "20", code=2).stderr
    words = ("anchors", "runs/judge", "--count", "9", "--look", "runs/judge")
    assert "no candidate" in cli(folder, *words, code=2).stderr
    scorer = (folder / "later.yaml").read_text() + "\nscorer: {scale: [0, 1]}\n"
    (folder / "scale.yaml").write_text(scorer.replace("name: later", "name: scale", 1))
    cli(folder, "run", "scale.yaml", "--queries", "anchors.txt", "--quiet")
    words = ("anchors", "runs/judge", "--count", "8", "--look", "runs/scale-anchors")
    assert "on another scale" in cli(folder, *words, code=2).stderr
    (folder / "other.txt").write_text("q1\nnever\n")
    wrong = cli(folder, "run", "later.yaml", "--queries", "other.txt", code=2).stderr
    assert "'never'" in wrong
