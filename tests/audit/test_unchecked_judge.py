"""A judge that did not pass an audit makes nobody the best, anywhere in the product."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path

import pytest

import rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from support.in_process import cli

NAMES = ("alpha", "beta", "gamma", "delta")
PRAISE = re.compile(
    r"\b(leads?|leader|best candidate|significantly better|is better|ahead|wins? overall)\b", re.I
)


def hash_of_the_name(prefix: str, suffix: str) -> float:
    """Score a response by a hash of its candidate's name, which its text contains."""
    name = next(name for name in NAMES if f"I am {name}" in prefix)
    return 0.2 + 0.6 * sha256(name.encode()).digest()[0] / 255


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A benchmark of 20 queries without reference data."""
    made = tmp_path / "benchmark"
    (made / "responses").mkdir(parents=True)
    queries = [{"id": f"q{row}", "text": f"Question {row}?"} for row in range(20)]
    (made / "queries.jsonl").write_text("\n".join(map(json.dumps, queries)))
    for name in NAMES:
        rows = [{"query_id": row["id"], "text": f"I am {name}: {row['id']}."} for row in queries]
        (made / "responses" / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    lists = [{"query_id": row["id"], "items": ["Is it right?"]} for row in queries]
    (made / "checklists.jsonl").write_text("\n".join(map(json.dumps, lists)))
    (tmp_path / "rocketeval.yaml").write_text(
        "benchmark: {path: benchmark}\njudge: {engine: scripted, model: hash}\n"
        "ranking: {bootstrap: 50}\n"
    )
    return tmp_path


def add_votes(folder: Path) -> None:
    """Write votes that have nothing to do with the names."""
    votes = [
        {"query_id": f"q{row}", "candidate_a": one, "candidate_b": other, "winner": "ab"[row % 2]}
        for row in range(20)
        for one, other in (("alpha", "beta"), ("gamma", "delta"), ("alpha", "gamma"))
    ]
    (folder / "benchmark" / "votes.jsonl").write_text("\n".join(map(json.dumps, votes)))


@pytest.mark.parametrize("with_votes", [False, True], ids=["no reference data", "random votes"])
def test_hash_judge_names_no_leader(folder: Path, with_votes: bool) -> None:
    """Scores differ significantly, but terminal, report, JSON and exports praise nobody."""
    if with_votes:
        add_votes(folder)
    outcome = rocketeval.run(
        folder / "rocketeval.yaml", judge=ScriptedEngine(hash_of_the_name, model="hash")
    )
    assert outcome.ranking.significant_pairs == 6
    shown = [
        cli(folder, "run", "rocketeval.yaml").stdout,
        cli(folder, "run", "--only", "rank", "rocketeval.yaml").stdout,
        cli(folder, "compare", "alpha", "beta", "rocketeval.yaml", code=(0, 7)).stdout,
        cli(folder, "audit", "rocketeval.yaml").stdout,
        cli(folder, "explain", "rocketeval.yaml").stdout,
        json.loads(cli(folder, "run", "rocketeval.yaml", "--json").stdout)["verdict"],
    ]
    cli(folder, "export", "rocketeval.yaml", "--to", "markdown", "--out", "table.md")
    shown.append((folder / "table.md").read_text())
    shown = [" ".join(text.split()) for text in shown]
    reason = "not significantly better than" if with_votes else "unchecked judge"
    assert all(reason in text for text in (shown[0], shown[2], shown[5], shown[6]))
    shown = [re.sub(rf"{reason}|better than the (best )?baseline", "", text) for text in shown]
    praised = [text for text in shown if PRAISE.search(text)]
    assert praised == []


def test_report_of_an_unchecked_judge_grades_nothing_as_good(folder: Path) -> None:
    """Certain order is not trust: the headline names the missing check."""
    outcome = rocketeval.run(
        folder / "rocketeval.yaml", judge=ScriptedEngine(hash_of_the_name, model="hash")
    )
    page = outcome.report.read_text()
    found = re.search(r'<script type="application/json" id="head">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    head = json.loads(found[1])
    assert "unchecked judge" in head["conclusion"]
    order = next(each for each in head["trust"] if each["question"] == "order")
    assert order["mood"] == "unknown"
