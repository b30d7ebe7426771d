"""End-to-end tests of `rocketeval audit --scorers`."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path

import pytest

from support.in_process import cli
from support.make import write_jsonl

CONFIG = """\
name: {name}
benchmark: {{path: {benchmark}}}
judge: {{engine: scripted, model: scripted}}
ranking: {{bootstrap: 50}}
scorer: {{learn_from: {learn_from}, folds: 2}}
"""
QUERIES = [f"q{number}" for number in range(6)]
CANDIDATES = [f"c{number}" for number in range(6)]


def write_benchmark(folder: Path, *, labels: bool) -> None:
    """Write six queries, six candidates and votes, and optionally labels."""
    chance = random.Random(0)
    write_jsonl(folder / "queries.jsonl", [{"id": q, "text": f"Why {q}?"} for q in QUERIES])
    for name in CANDIDATES:
        rows = [{"query_id": q, "text": f"{name} on {q}"} for q in QUERIES]
        write_jsonl(folder / "responses" / f"{name}.jsonl", rows)
    items = ["Is it right?", "Is it clear?"]
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": items} for q in QUERIES])
    votes = [
        {"query_id": q, "candidate_a": a, "candidate_b": b, "winner": chance.choice("ab")}
        for q in QUERIES
        for a, b in pairwise(CANDIDATES)
    ]
    write_jsonl(folder / "votes.jsonl", votes)
    if labels:
        given = [
            {"query_id": q, "candidate": name, "value": chance.randint(1, 10)}
            for q in QUERIES
            for name in CANDIDATES
        ]
        write_jsonl(folder / "labels.jsonl", given)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Graded runs: with labels and votes, and with votes alone."""
    folder = tmp_path_factory.mktemp("scorers")
    for name, labels in (("both", True), ("voted", False)):
        write_benchmark(folder / name, labels=labels)
        for learn_from in ("labels", "votes"):
            text = CONFIG.format(name=name, benchmark=name, learn_from=learn_from)
            (folder / f"{name}-{learn_from}.yaml").write_text(text)
        cli(folder, "run", "--only", "grade", f"{name}-votes.yaml", "--quiet")
    return folder


def test_scorers_are_compared_on_labels(folder: Path) -> None:
    """Held-out candidates are excluded, so 24 of 36 labels are used; the run is unchanged."""
    before = {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*")}
    shown = cli(folder, "audit", "both-labels.yaml", "--scorers", "mean, isotonic").stdout
    assert {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*")} == before
    assert "Scorers on 24 labels, 6 queries" in shown
    lines = shown.splitlines()
    for kind in ("mean", "isotonic", "select"):
        assert sum(line.startswith(f"{kind} ") for line in lines) == 1
    for heading in ("Pearson", "Spearman", "RMSE", "chosen"):
        assert heading in shown
    assert sum(line.startswith("Use ") for line in lines) == 1
    assert "2-fold cross-validation" in shown


def test_scorers_are_compared_on_votes(folder: Path) -> None:
    """The JSON document has the agreement of each scorer for votes."""
    found = json.loads(
        cli(folder, "audit", "voted-votes.yaml", "--scorers", "all", "--json").stdout
    )["scorers"]
    assert found["learn_from"] == "votes"
    assert [row["kind"] for row in found["rows"]] == ["mean", "pooled_logistic", "select"]
    assert 0.0 <= found["rows"][0]["with_ties"]["value"] <= 1.0
    assert found["take"] in ("mean", "pooled_logistic")
    assert (found["gold"], found["folds"]) == (30, 2)


def test_missing_labels_point_to_votes(folder: Path) -> None:
    """Without labels, the error names the setting that uses the votes."""
    stderr = cli(folder, "audit", "voted-labels.yaml", "--scorers", "all", code=2).stderr
    assert "no labels" in stderr
    assert "`scorer.learn_from: votes`" in stderr


def test_unknown_kind_names_the_nearest(folder: Path) -> None:
    """The error suggests the nearest kind."""
    stderr = cli(folder, "audit", "both-labels.yaml", "--scorers", "mean,isotonc", code=2).stderr
    assert "Did you mean 'isotonic'?" in stderr


def test_run_without_judgments_names_the_run(folder: Path) -> None:
    """The error names the run to finish, not missing labels."""
    stderr = cli(
        folder, "audit", "both-labels.yaml", "--scorers", "all", "--name", "never", code=5
    ).stderr
    assert "`rocketeval run --name never both-labels.yaml`" in stderr
