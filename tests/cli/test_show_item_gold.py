"""Output of `rocketeval audit --reference-answers`: 80 columns, the advice first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from rocketeval.audit.calibration import calibration
from rocketeval.audit.item_gold import ItemGold, on_items
from rocketeval.cli import audit_tables as module
from rocketeval.cli.audit_tables import show_reference_answers
from support.in_process import cli, run_scripted
from support.make import CANDIDATES, QUERIES, write_benchmark, write_jsonl

WIDEST = 80


def found(items: int) -> ItemGold:
    """Return the figures of a judge that says yes too often, with a few missing answers."""
    rng = np.random.default_rng(0)
    p_yes = rng.random(items) ** 0.5
    gold = rng.random(items) < p_yes**2
    p_yes[:3] = np.nan
    told = calibration(p_yes, gold.astype(float), np.arange(items) // 5, bootstrap=100)
    return ItemGold(told, responses=1200, unjudged=1, unknown=2, advice=tuple(on_items(told)))


def test_figures_and_bins_fit_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """All figures and bins are printed, and miscalibrated bins are marked."""
    monkeypatch.setattr(module, "make_console", lambda: Console(width=WIDEST))
    show_reference_answers(found(2000))
    shown = capsys.readouterr().out
    assert max(len(line.rstrip()) for line in shown.splitlines()) <= WIDEST
    for text in (
        "1,997 items of 1,200 responses",
        "share of yes minus reference, points",
        "yes where the reference is no, %",
        "AUC",
        "Brier score",
        "calibration error (ECE)",
        "0.5-0.6",
        "too high",
        "3 items have a reference but no answer.",
        "1 response with a reference was not judged.",
        "2 rows are for responses not in the run.",
    ):
        assert text in shown
    assert shown.startswith("The judge says yes too often")
    assert "too low" not in shown


def test_no_items_give_no_bins(capsys: pytest.CaptureFixture[str]) -> None:
    """Without items, figures are dashes and the advice gives the reason."""
    show_reference_answers(found(0))
    shown = capsys.readouterr().out
    assert "mean" not in shown
    assert "No conclusion from the reference answers" in shown


def test_answers_of_a_run_are_compared_with_a_file(tmp_path: Path) -> None:
    """The comparison is printed and saved; a mistake in the file names its line."""
    write_benchmark(tmp_path / "benchmark")
    run_scripted(tmp_path, "first")
    rows = [
        {"query_id": q, "candidate": c, "answers": [True, False]}
        for q in QUERIES
        for c in CANDIDATES
    ]
    write_jsonl(tmp_path / "gold.jsonl", rows)
    command = ("audit", "first.yaml", "--reference-answers", "gold.jsonl")
    shown = cli(tmp_path, *command).stdout
    assert "12 items of 6 responses" in shown
    assert "How far to trust a yes" in shown
    assert "Agreement with" not in shown
    assert (tmp_path / "runs" / "first" / "item_gold.json").exists()
    assert cli(tmp_path, *command, "--quiet").stdout == ""
    write_jsonl(tmp_path / "gold.jsonl", [{**rows[0], "answers": [True]}])
    wrong = cli(tmp_path, *command, code=2).stderr
    assert "gold.jsonl:1: 1 answers for a checklist of 2 items" in wrong
