"""End-to-end tests of `rocketeval cascade`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rocketeval.cli.ensemble import ties_in_words
from rocketeval.judges.cascade import CascadeRow
from rocketeval.records import Interval
from support.command import SCRIPTED
from support.in_process import cli, run_scripted
from support.make import write_grid


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a cheap judge, and the config of a strong one."""
    folder = tmp_path_factory.mktemp("cascade")
    write_grid(folder / "benchmark", queries=40, candidates=2, items=2)
    run_scripted(folder, "cheap")
    (folder / "strong.yaml").write_text(SCRIPTED.format(name="strong"))
    return folder


def test_ranking_use_and_doubts_are_printed(folder: Path) -> None:
    """The output says what is estimated, what was asked, and how far the cheap judge is off."""
    words = ("cascade", "runs/cheap", "strong.yaml", "--share", "0.5", "--out", "both")
    shown = cli(folder, *words).stdout
    assert "Estimated ranking by strong over 40 queries" in shown
    assert "Estimated mean scores of strong over all responses; it graded" in shown
    assert "of 80 responses" in shown
    assert "times as wide as from a random 50%" in shown
    assert "The means of cheap alone are off by" in shown
    assert "no price set" in shown
    assert (folder / "both" / "cascade.json").exists()
    found = json.loads(cli(folder, *words, "--json").stdout)
    assert (found["asked"], found["responses"]) == (0, 80)
    by_run = cli(folder, "cascade", "cheap.yaml", "runs/strong", *words[3:], "--json").stdout
    assert json.loads(by_run)["rows"] == found["rows"]


def test_cascade_calls_nobody_better() -> None:
    """The estimate is not compared with people, so a ranking without ties is about scores."""
    any_ = Interval(1.0, 1.0, 1.0)
    rows = tuple(
        CascadeRow(name, at, at, at, any_, any_, beats, at, 1.0, any_, 9, 9, 9)
        for name, at, beats in (("a", 1, True), ("b", 2, None))
    )
    assert next(ties_in_words(rows, 0.95)) == (
        "Every candidate scores significantly higher than the next."
    )


def test_mistakes_are_named(folder: Path) -> None:
    """A cheap run without scores and a share that draws too little are refused with a hint."""
    few = cli(
        folder, "cascade", "runs/cheap", "strong.yaml", "--share", "0.1", "--out", "x", code=2
    )
    assert "an interval needs 6" in few.stderr
    (folder / "new.yaml").write_text(SCRIPTED.format(name="new"))
    ungraded = cli(folder, "cascade", "new.yaml", "strong.yaml", "--out", "x", code=5)
    assert "rocketeval run" in ungraded.stderr
