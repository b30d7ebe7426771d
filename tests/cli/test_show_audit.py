"""The audit as it is printed: every table within 80 columns, the meaning last."""

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
    """An audit with every kind of gold; scores go against it, so that figures are negative."""
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


def test_every_table_fits_80_columns(capsys: pytest.CaptureFixture[str]) -> None:
    """Also with negative figures, which are the widest, and with every kind of row."""
    show_audit(everything())
    shown = capsys.readouterr().out
    for text in (
        "Agreement with 360 of 361 votes",
        "labeler (192 votes)",
        "always a tie",
        "human-human agreement",
        "By category",
        "fewer than 20 votes each: rare.",
        "By tie margin (ranking.tie_margin)",
        "Against all labels (134 responses)",
        "per query (30)",
        "judge, Kendall",
        "RMSE: judge ",
        "score vs. length, Spearman",
        "score minus label correlation",
        "lost votes won by the longer response, %",
        "own family at equal labels",
        "guessed by name: candidate0, candidate3.",
        "Reference ratings: Spearman",
    ):
        assert text in shown
    tables = [line for line in shown.splitlines() if "  " in line.strip()]
    assert len(tables) > 25
    assert max(len(line.rstrip()) for line in tables) <= WIDEST


def test_what_was_not_looked_at_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """A sample, queries that tell nothing, a family without labels; of nothing, no table."""
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


def test_the_used_margin_is_marked(capsys: pytest.CaptureFixture[str]) -> None:
    """One line, the run's own, says `used`."""
    show_audit(everything())
    (used,) = (line for line in capsys.readouterr().out.splitlines() if line.endswith("used"))
    assert used.split()[0] == "0.1"


def test_the_meaning_comes_last_and_is_wrapped_for_people(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A terminal of 80 columns breaks sentences under their first word."""
    monkeypatch.setattr(module, "make_console", lambda: Console(width=WIDEST))
    none = Agreement(None, None, votes=1, used=0, decisive=0, unusable=1)
    sentence = "It agrees with voters as often as they agree with each other, on the votes so far."
    found = Audit({"judge": none}, None, None, {}, RefusedGold(), advice=("One.", sentence))
    show_audit(found)
    *_, title, one, two, three = capsys.readouterr().out.splitlines()
    assert title == "How far to trust this judge"
    assert one.rstrip() == "- One."
    assert two.startswith("- It agrees")
    assert three.startswith("  ")
    assert max(len(line) for line in (two, three)) <= WIDEST


def test_a_run_says_what_its_audit_means(tmp_path: Path) -> None:
    """Printed by `run`, kept in audit.json, shown in the report; and the same without gold."""
    write_benchmark(tmp_path / "benchmark")
    run_scripted(tmp_path, "voted")
    for name in ("audit.json", "report.html"):
        text = (tmp_path / "runs" / "voted" / name).read_text(encoding="utf-8")
        assert "at least 6 are needed" in text
    shown = cli(tmp_path, "audit", "voted.yaml").stdout
    assert shown.startswith("Too few votes for a verdict")
    assert "at least 6 are needed" in shown
    write_jsonl(tmp_path / "benchmark" / "votes.jsonl", [])
    run_scripted(tmp_path, "bare")
    shown = cli(tmp_path, "audit", "bare.yaml").stdout
    assert "there are no votes, labels or reference ratings" in shown
    assert "To find out, collect votes" in shown
