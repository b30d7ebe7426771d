"""The audit of a run: simpler scores, length and family."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rocketeval
from rocketeval.audit import stage as module
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.grading.methods import KINDS
from rocketeval.grid import ScoreGrid
from rocketeval.pipeline import Outcome, Run
from rocketeval.scoring.read_answers import answers_yes_or_no
from support.make import make_config, write_jsonl
from support.metered import MeteredEngine

HARD = "hard yes/no"
GRADES = {"direct", "reference", "cot", "analysis", "generic", "criterion", "rubric", "perplexity"}


def long_is_good(prefix: str, suffix: str) -> float:
    """Return a higher probability for a longer response."""
    return min(0.95, 0.05 + prefix.count("more") / 10)


def write_lengths(folder: Path, queries: int = 12, candidates: tuple[str, ...] = ()) -> Path:
    """Write queries with responses of different lengths, and labels that ignore length."""
    names = candidates or ("qwen2-7b", "gpt-4o", "claude-3")
    ids = [f"q{number}" for number in range(queries)]
    write_jsonl(folder / "queries.jsonl", [{"id": q, "text": f"Why {q}?"} for q in ids])
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": ["Is it?"]} for q in ids])
    rng = np.random.default_rng(0)
    for place, name in enumerate(names):
        texts = [
            {"query_id": q, "text": "more " * ((place + row) % len(names) * 2 + 1)}
            for row, q in enumerate(ids)
        ]
        write_jsonl(folder / "responses" / f"{name}.jsonl", texts)
    labels = [
        {"query_id": q, "candidate": name, "value": float(value)}
        for q in ids
        for name, value in zip(names, rng.permutation(len(names)) + 2, strict=True)
    ]
    write_jsonl(folder / "labels.jsonl", labels)
    return folder


def audited(folder: Path, model: str = "qwen2.5", **changes: Any) -> Outcome:
    config = make_config(folder, judge={"engine": "scripted", "model": model}, **changes)
    return rocketeval.run(config, judge=ScriptedEngine(long_is_good, model=model))


def test_yes_no_run_is_compared_with_hard_scores(tmp_path: Path) -> None:
    """Except if `hard` is the run's own scorer."""
    outcome = rocketeval.run(make_config(tmp_path))
    assert HARD in outcome.audit.agreement
    assert "mean of answers" not in outcome.audit.agreement
    hard = rocketeval.run(make_config(tmp_path, name="hard", scorer={"kind": "hard"}))
    assert HARD not in hard.audit.agreement
    assert "mean of answers" in hard.audit.agreement


@pytest.mark.parametrize("kind", ["direct", "cot", "perplexity"])
async def test_grades_have_no_hard_scores(tmp_path: Path, kind: str) -> None:
    """A grade is neither yes nor no."""
    config = make_config(tmp_path, method={"kind": kind})
    run = Run(config, judge=MeteredEngine(labels=KINDS[kind].labels))
    outcome = await run.all()
    assert outcome.audit.agreement["judge"].used == 3
    assert HARD not in outcome.audit.agreement


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_either_answers_yes_or_no_or_grades(tmp_path: Path, kind: str) -> None:
    """A new method must be classified here."""
    config = make_config(tmp_path, method={"kind": kind})
    assert answers_yes_or_no(config) == (kind not in GRADES)


def test_length_and_family_are_measured_in_every_run(tmp_path: Path) -> None:
    """Scores are lengths, labels are not; one candidate has the judge's name."""
    write_lengths(tmp_path / "benchmark")
    outcome = audited(tmp_path)
    bias = outcome.audit.bias
    assert bias is not None
    assert bias.length.scores is not None
    assert bias.length.scores.value == pytest.approx(1.0)
    assert (bias.queries, bias.queries_skipped, bias.length.gold_queries) == (12, 0, 12)
    assert bias.own_family is not None
    assert bias.own_family.family == ("qwen2-7b",)
    assert bias.own_family.queries == 12
    assert any(sentence.startswith("Length bias") for sentence in outcome.audit.advice)
    kept = json.loads((outcome.path / "audit.json").read_text())
    assert kept["bias"]["length"]["scores"]["value"] == pytest.approx(1.0)
    page = outcome.report.read_text()
    assert "Length bias and self-preference" in page
    assert "Own family, guessed by name: qwen2-7b." in page


def test_length_needs_no_reference_data(tmp_path: Path) -> None:
    """Without labels and votes there is only the correlation, and no family."""
    write_lengths(tmp_path / "benchmark")
    (tmp_path / "benchmark" / "labels.jsonl").unlink()
    outcome = audited(tmp_path, model="mistral-7b")
    bias = outcome.audit.bias
    assert bias is not None
    assert (bias.own_family, bias.length.gold) == (None, None)
    assert any(
        sentence.startswith("Longer responses get higher") for sentence in outcome.audit.advice
    )
    assert "score vs. length, Spearman" in outcome.report.read_text()


def test_large_run_is_sampled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries are sampled by the number of responses; those with reference data are included."""
    monkeypatch.setattr(module, "MOST_LENGTHS", 22)
    write_lengths(tmp_path / "benchmark")
    labels = tmp_path / "benchmark" / "labels.jsonl"
    whole = labels.read_text().splitlines(keepends=True)
    labels.unlink()
    bare = audited(tmp_path, name="bare").audit.bias
    assert bare is not None
    assert (bare.queries, bare.queries_skipped, bare.length.queries) == (7, 5, 7)
    labels.write_text("".join(whole))
    known = audited(tmp_path, name="known").audit.bias
    assert known is not None
    assert (known.queries, known.queries_skipped) == (12, 0)


def test_queries_are_drawn_by_the_seed() -> None:
    """The same seed draws the same queries; small and empty runs are not sampled."""
    ids = tuple(f"q{row}" for row in range(3000))
    grid = ScoreGrid(ids, tuple("abcdefghij"), np.zeros((3000, 10)))
    drawn = module._some_queries(grid, 1)
    assert len(drawn) == module.MOST_LENGTHS // 10
    assert drawn == module._some_queries(grid, 1)
    assert drawn != module._some_queries(grid, 2)
    assert module._some_queries(ScoreGrid(ids[:5], ("a",), np.zeros((5, 1))), 1) == set(ids[:5])
    assert module._some_queries(ScoreGrid((), (), np.zeros((0, 0))), 1) == set()


def test_unchanged_audit_keeps_the_report_and_a_changed_one_removes_it(tmp_path: Path) -> None:
    """The report is removed only if the figures changed."""
    config = make_config(tmp_path)
    outcome = rocketeval.run(config)
    Run(config).audit()
    assert outcome.report.exists()
    assert (outcome.path / "explain.json").exists()
    (outcome.path / "audit.json").write_text("{}")
    Run(config).audit()
    assert not outcome.report.exists()
    assert (outcome.path / "explain.json").exists()
