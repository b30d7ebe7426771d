"""Output of `rocketeval audit`: 80 columns, the advice first."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from rocketeval.audit.audit import Audit, audit
from rocketeval.audit.figures import Agreement
from rocketeval.cli import audit as module
from rocketeval.cli.audit import show_audit
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Label, Rating, Vote
from rocketeval.scoring.split import RefusedGold
from support.in_process import cli, run_scripted
from support.make import write_benchmark, write_jsonl

WIDEST = 80
CONFIG = RankingConfig(bootstrap=100)


def everything() -> Audit:
    """Return an audit with all reference data and contrary scores, so that figures are negative."""
    rng = np.random.default_rng(0)
    ids, names = tuple(f"q{row}" for row in range(30)), tuple(f"candidate{n}" for n in range(11))
    truth = rng.normal(5.5, 1.0, size=(30, 11))
    grid = ScoreGrid(ids, names, 11.0 - truth + rng.normal(size=truth.shape))
    labels = [
        Label(ids[row], names[column], float(truth[row, column]))
        for row in range(30)
        for column in range(4)
    ]
    labels += [Label(ids[row], names[column], 5.0) for row in (0, 1) for column in range(4, 11)]
    votes = [
        Vote(ids[row], names[c], names[c + 1], "a" if rng.random() < 0.5 else "b", voter)
        for row in range(30)
        for c in range(6)
        for voter in ("v1", "v2")
    ]
    votes.append(Vote("nowhere", names[0], names[1], "tie"))
    lengths = {(query, name): float(rng.integers(9, 999)) for query in ids for name in names}
    kinds = {query: f"kind {row % 3}" for row, query in enumerate(ids)} | {"q29": "rare"}
    gold = Gold(labels, votes, [Rating(name, float(n)) for n, name in enumerate(names)])
    rivals = {"mean of answers": grid, "hard yes/no": grid}
    ranked = grid.mean_by_candidate()
    family = {"candidate0", "candidate3"}
    return audit(grid, rivals, lengths, ranked, gold, {}, CONFIG, categories=kinds, family=family)


def test_every_table_fits_80_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables with negative figures, the widest, and with every kind of row fit."""
    monkeypatch.setenv("COLUMNS", str(WIDEST))
    show_audit(everything())
    shown = capsys.readouterr().out
    for text in (
        "Agreement with 360 of 361 votes",
        "labels as scores (192 votes)",
        "always a tie",
        "human-human agreement",
        "By category",
        "fewer than 20 votes each: rare.",
        "By tie margin (ranking.tie_margin)",
        "labels of 134 responses",
        "within a query (30)",
        "Kendall",
        "RMSE",
        "score vs. length, Spearman",
        "score vs. length, labeled",
        "people chose longer, judge shorter",
        "own family at equal labels",
        "guessed by name: candidate0, candidate3.",
        "Reference ratings: Spearman",
    ):
        assert text in shown
    tables = [line for line in shown.splitlines() if "  " in line.strip()]
    assert len(tables) > 25
    assert max(len(line.rstrip()) for line in tables) <= WIDEST


def test_unused_queries_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """The notes count sampled and unusable queries; without data there is no output."""
    ids, names = tuple(f"q{row}" for row in range(9)), ("a", "b", "c")
    grid = ScoreGrid(ids, names, np.tile([1.0, 2.0, 3.0], (9, 1)))
    lengths = {(query, name): float(len(name)) for query in ids[:2] for name in names}
    lengths |= {(ids[3], name): float(place) for place, name in enumerate(names)}
    show_audit(audit(grid, {}, lengths, {}, Gold(), {}, CONFIG, family={"a"}))
    shown = capsys.readouterr().out
    assert "3 of 9 queries" in shown
    assert "2 queries have fewer than 3 scores" in shown
    assert "guessed by name: a. No figure: no query has differing scores" in shown
    show_audit(audit(grid, {}, {}, {}, Gold(), {}, CONFIG))
    assert capsys.readouterr().out.startswith("No verdict on this judge")


def test_used_margin_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    """Only the line of the run's tie margin is marked as used."""
    show_audit(everything())
    (used,) = (line for line in capsys.readouterr().out.splitlines() if line.endswith("used"))
    assert used.split()[0] == "0.1"


def test_advice_comes_last_and_is_wrapped(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In 80 columns, sentences are wrapped with an indent."""
    monkeypatch.setattr(module, "make_console", lambda: Console(width=WIDEST))
    none = Agreement(None, None, votes=1, used=0, decisive=0, unusable=1)
    sentence = "It agrees with voters as often as they agree with each other, on the votes so far."
    found = Audit({"judge": none}, None, None, {}, RefusedGold(), advice=("One.", sentence))
    show_audit(found)
    *_, one, two, three = capsys.readouterr().out.splitlines()
    assert one.rstrip() == "- One."
    assert two.startswith("- It agrees")
    assert three.startswith("  ")
    assert max(len(line) for line in (two, three)) <= WIDEST


def test_advice_is_the_same_everywhere(tmp_path: Path) -> None:
    """The advice is in audit.json, in the report and in the terminal, also without votes."""
    write_benchmark(tmp_path / "benchmark")
    run_scripted(tmp_path, "voted")
    for name in ("audit.json", "report.html"):
        text = (tmp_path / "runs" / "voted" / name).read_text(encoding="utf-8")
        assert "at least 6 are needed" in text
    shown = cli(tmp_path, "audit", "voted.yaml").stdout
    assert shown.startswith("Undecided, too few votes")
    assert "at least 6 are needed" in shown
    write_jsonl(tmp_path / "benchmark" / "votes.jsonl", [])
    run_scripted(tmp_path, "bare")
    shown = cli(tmp_path, "audit", "bare.yaml").stdout
    assert "no votes, labels or reference ratings" in shown
