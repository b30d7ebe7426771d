"""Output of `rocketeval audit --against`: 80 columns, the advice first."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from rocketeval.audit.repeatability import disagreement
from rocketeval.cli import audit_tables as module
from rocketeval.cli.audit_tables import show_reliability
from rocketeval.judges.reliability import JudgePair, JudgeReliability
from rocketeval.stats.agreement import rank_matrix, reliability
from support.in_process import cli, run_scripted
from support.make import write_benchmark

WIDEST = 80


def three() -> JudgeReliability:
    """Return three judges with long names, one of them contrary, so that figures are negative."""
    rng = np.random.default_rng(0)
    names = tuple(f"some-publisher/a-rather-long-model-name-{n}b (run)" for n in (1, 7, 70))
    p_yes = rng.random((3, 200))
    p_yes[2] = 1.0 - p_yes[0]
    groups = np.arange(200) // 5
    items = reliability((p_yes >= 0.5).astype(float), groups, names, bootstrap=50)
    orders = {name: {c: float(rng.random()) for c in "abcd"} for name in names}
    return JudgeReliability(
        judges=names,
        yes_no=True,
        items=items,
        scores=reliability(9 * p_yes, groups, names, level="interval", bootstrap=50),
        pairs=tuple(
            JudgePair(
                names[one],
                names[two],
                disagreement(p_yes[one], p_yes[two], groups, bootstrap=50),
                items.cohen[one][two],
            )
            for one, two in ((0, 1), (0, 2), (1, 2))
        ),
        orders=rank_matrix(orders),
        responses=1200,
        left_out=1,
        other_items=7,
        advice=("One.", "Two."),
    )


def test_tables_fit_80_columns_and_count_omissions(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Judges are numbered, so that each name is printed once."""
    monkeypatch.setattr(module, "make_console", lambda: Console(width=WIDEST))
    show_reliability(three())
    shown = capsys.readouterr().out
    lines = shown.splitlines()
    assert max(len(line.rstrip()) for line in lines) <= WIDEST
    for text in (
        "Spearman between their rankings of 4 candidates",
        "1  some-publisher/a-rather-long-model-name-1b (run)",
        "yes and no, item by item",
        "Krippendorff's alpha",
        "1 / 3",
        "100.0 (",
        "1,200 responses were judged by all judges",
        "1 response is left out",
        "7 responses are left out",
    ):
        assert text in shown
    assert lines[0] == "One."
    assert [line.rstrip() for line in lines[-2:]] == [
        "How far one judge can replace another",
        "- Two.",
    ]


def test_grades_have_no_yes_and_no(capsys: pytest.CaptureFixture[str]) -> None:
    """Figures that a scale does not have are dashes."""
    graded = replace(
        three(),
        yes_no=False,
        pairs=tuple(replace(pair, kappa=None) for pair in three().pairs),
    )
    show_reliability(graded)
    shown = capsys.readouterr().out
    assert "grades from 0 to 1, item by item" in shown
    (pair,) = (line for line in shown.splitlines() if line.startswith("1 / 2"))
    assert pair.split()[3] == "-"
    assert pair.split()[-1] == "-"


def test_runs_and_configs_are_compared_with_a_run(tmp_path: Path) -> None:
    """The comparison is printed and saved in the first run; there is no other audit."""
    write_benchmark(tmp_path / "benchmark")
    run_scripted(tmp_path, "first", "second", "third")
    command = ("audit", "first.yaml", "--against", "runs/second", "--against", "third.yaml")
    shown = cli(tmp_path, *command).stdout
    for text in ("1  first", "2  second", "3  third", "2 / 3", "6 responses were judged by all"):
        assert text in shown
    assert "Agreement with" not in shown
    assert (tmp_path / "runs" / "first" / "reliability.json").exists()
    assert cli(tmp_path, *command, "--quiet").stdout == ""


def test_invalid_runs_are_refused(tmp_path: Path) -> None:
    """A folder without a run, a missing path, and the same run are errors."""
    write_benchmark(tmp_path / "benchmark")
    run_scripted(tmp_path, "first")
    for other, message in (
        ("benchmark", "not a run directory"),
        ("nowhere", "does not exist"),
        ("runs/first", "twice"),
    ):
        assert message in cli(tmp_path, "audit", "first.yaml", "--against", other, code=2).stderr
