"""A finished run with hostile candidate names and some gaps."""

from __future__ import annotations

import json
from pathlib import Path

import rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.pipeline import Run
from support.make import make_config

NAMES = (
    "plain",
    "org/plain",
    "PLAIN",
    "=1+1",
    "-5",
    "../../escape",
    "a|b_{x}%$&#^~\\<b>\n[c]* --'' ,,\"`",
    "\x1b[31mred",
)
"""Candidate names."""
QUERIES = tuple(f"q{n:02d}" for n in range(40))
ITEMS = ("Is it right?", "=HYPERLINK(1)", "Is it, in short, clear?")


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def hostile_run(folder: Path) -> Run:
    """Return the finished run; one response fails, two candidates answer one query identically."""
    benchmark = folder / "benchmark"
    past = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    queries = [
        {"id": q, "text": f"Why {q}?", "category": "even" if n % 2 == 0 else None}
        for n, q in enumerate(QUERIES)
    ]
    _write(benchmark / "queries.jsonl", [{**queries[0], "history": past}, *queries[1:]])
    texts = {(q, name): f"{name} on {q}" for q in QUERIES for name in NAMES}
    texts["q00", "plain"] = texts["q00", "org/plain"] = "twins"
    texts["q01", "plain"] = "FAIL"
    _write(
        benchmark / "responses.jsonl",
        [{"query_id": q, "candidate": name, "text": text} for (q, name), text in texts.items()],
    )
    lists = [{"query_id": q, "items": list(ITEMS[: 2 + n % 2])} for n, q in enumerate(QUERIES)]
    _write(benchmark / "checklists.jsonl", lists)
    votes = [
        {"query_id": q, "candidate_a": "plain", "candidate_b": "-5", "winner": "a"} for q in QUERIES
    ]
    _write(benchmark / "votes.jsonl", votes)
    labels = [
        {"query_id": q, "candidate": name, "value": 1 + n % 9} for n, (q, name) in enumerate(texts)
    ]
    _write(benchmark / "labels.jsonl", labels)
    config = make_config(folder, judge={"engine": "scripted", "model": "a/b: judge"})
    rocketeval.run(config, judge=ScriptedEngine(model="a/b: judge", fail_on="FAIL"))
    return Run(config)
