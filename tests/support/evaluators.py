"""A benchmark with votes and labels, and evaluators fitted to random answers."""

from __future__ import annotations

import asyncio
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from rocketeval.config import EvolveConfig, RunConfig
from rocketeval.engines.base import create_engine
from rocketeval.evolve.artifact import save_evaluator
from rocketeval.evolve.ask import question_set_config
from rocketeval.evolve.cases import Case, CaseTable
from rocketeval.evolve.evaluator import Evaluator, fit_evaluator
from rocketeval.evolve.forest import SPACES, ForestSettings
from rocketeval.evolve.perspective import (
    AnswerFormat,
    Asking,
    Perspective,
    PerspectiveKind,
    PerspectiveOrigin,
    question_set_of,
)
from rocketeval.grading.loop import fingerprint
from rocketeval.records import JudgeFingerprint
from support.make import make_config, write_jsonl

CANDIDATES = ("ada", "bob", "cid")
QUERIES = tuple(f"q{number}" for number in range(6))
ABOUT_RESPONSES = (
    Perspective("Is it right?", origin=PerspectiveOrigin.RULE),
    Perspective("Is it clear?", origin=PerspectiveOrigin.FAILURES, form=AnswerFormat.GRADED),
    Perspective("Is it short?", origin=PerspectiveOrigin.DEPTH, form=AnswerFormat.GRADED),
)
ABOUT_QUERIES = (
    Perspective("Is it a sum?", PerspectiveKind.QUERY),
    Perspective("Is it a poem?", PerspectiveKind.QUERY),
)


def write_opinions(folder: Path) -> Path:
    """Write six queries, three candidates, votes and labels, no checklist; return the folder."""
    write_jsonl(folder / "queries.jsonl", [{"id": q, "text": f"Why {q}?"} for q in QUERIES])
    for name in CANDIDATES:
        rows = [{"query_id": q, "text": f"{name} says this on {q}"} for q in QUERIES]
        write_jsonl(folder / "responses" / f"{name}.jsonl", rows)
    votes = [
        {"query_id": q, "candidate_a": "bob", "candidate_b": "ada", "winner": "ab"[row % 2]}
        for row, q in enumerate(QUERIES)
    ]
    write_jsonl(folder / "votes.jsonl", votes)
    labels = [
        {"query_id": q, "candidate": c, "value": 1 + (row + column) % 5}
        for row, q in enumerate(QUERIES)
        for column, c in enumerate(CANDIDATES)
    ]
    write_jsonl(folder / "labels.jsonl", labels)
    return folder


def opinion_config(tmp_path: Path, name: str = "run", **changes: Any) -> RunConfig:
    """Return a config for that benchmark, with the scripted judge."""
    if not (tmp_path / "benchmark").exists():
        write_opinions(tmp_path / "benchmark")
    return make_config(tmp_path, name, **changes)


def judges_of(config: RunConfig, asking: Asking) -> dict[str, JudgeFingerprint]:
    """Return the judge's identity for each sheet, with the config's judge."""

    async def find() -> dict[str, JudgeFingerprint]:
        found = {}
        for perspective in (*ABOUT_RESPONSES, *ABOUT_QUERIES):
            sheet = question_set_of(perspective, asking)
            engine = create_engine(question_set_config(config, sheet).judge)
            found[sheet.name] = fingerprint(await engine.identify(), sheet.method())
            await engine.aclose()
        return found

    return asyncio.run(find())


@cache
def fitted(task: str, asking: Asking, *, experts: int = 2, routing: int = 32) -> Evaluator:
    """Return an evaluator fitted to random answers; the query type selects the deciding one."""
    chance, cases = np.random.default_rng(0), 240
    pairs = task == "pairs"
    answers = chance.uniform(-1.0 if pairs else 0.0, 1.0, (cases, len(ABOUT_RESPONSES)))
    traits = np.repeat(chance.uniform(size=(cases // 3, len(ABOUT_QUERIES))), 3, axis=0)
    decides = np.where(traits[:, 0] > 0.5, answers[:, 0], answers[:, 1])
    gold = np.sign(np.round(decides, 1)) if pairs else 1.0 + np.round(8.0 * decides)
    names = ("x", "y") if pairs else ("x",)
    rows = tuple(
        Case(f"t{row // 3}", names, float(value)) for row, value in enumerate(gold.tolist())
    )
    settings = EvolveConfig(
        asking=asking, gold="votes" if pairs else "labels", most_about_queries=routing
    )
    table = CaseTable(rows, ABOUT_RESPONSES, answers, ABOUT_QUERIES, traits)
    # One setting and few trees, because accuracy does not matter here.
    with patch.dict(SPACES, {"short": (ForestSettings(20, 5, 2, 5),)}):
        return fit_evaluator(table, settings, experts=experts)


def save_fitted(
    path: Path,
    config: RunConfig,
    task: str = "pairs",
    asking: Asking = "each",
    *,
    experts: int = 2,
    routing: int = 32,
    **notes: Any,
) -> Path:
    """Write a fitted evaluator with the config's judge; return its path.

    It learned from no query of any benchmark, unless the notes say so.
    """
    evaluator = fitted(task, asking, experts=experts, routing=routing)
    noted = {"learned_from": [], **notes}
    save_evaluator(evaluator.documented(judges_of(config, asking), noted), path)
    return path
