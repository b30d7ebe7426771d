"""Small records and configs for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from rocketeval.config import RunConfig, parse_config
from rocketeval.engines.scripted import exact_answer
from rocketeval.hashing import content_hash
from rocketeval.records import Judgment, Usage
from rocketeval.store.codec import Finding, encode_finding

QUERIES = ("sky", "sea", "sun")
CANDIDATES = ("left", "right")


def key(name: str) -> bytes:
    """Return a judgment key made from a name."""
    return content_hash("test", name)


def judgment(name: str, *p_yes: float) -> Judgment:
    """Return a judgment whose key, query and candidate come from `name`."""
    answers = tuple(map(exact_answer, p_yes or (0.25, 0.75)))
    return Judgment(key(name), f"q-{name}", f"c-{name}", answers, Usage(requests=len(answers)))


def write_jsonl(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def write_benchmark(folder: Path, *, texts: Mapping[str, str] | None = None) -> Path:
    """Write three queries, two candidates, two items each and three votes; return the folder."""
    write_jsonl(folder / "queries.jsonl", [{"id": q, "text": f"Why the {q}?"} for q in QUERIES])
    for candidate in CANDIDATES:
        rows = [
            {"query_id": q, "text": (texts or {}).get(q, f"{candidate} explains the {q}")}
            for q in QUERIES
        ]
        write_jsonl(folder / "responses" / f"{candidate}.jsonl", rows)
    items = ["Is it right?", "Is it clear?"]
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": items} for q in QUERIES])
    write_jsonl(
        folder / "votes.jsonl",
        [
            {"query_id": q, "candidate_a": "left", "candidate_b": "right", "winner": "a"}
            for q in QUERIES
        ],
    )
    return folder


def write_grid(folder: Path, *, queries: int, candidates: int, items: int) -> Path:
    """Write a benchmark of this size in which all texts differ; return the folder."""
    names = [f"q{number}" for number in range(queries)]
    write_jsonl(folder / "queries.jsonl", [{"id": q, "text": f"Question {q}?"} for q in names])
    for number in range(candidates):
        rows = [{"query_id": q, "text": f"Answer {number} to {q}."} for q in names]
        write_jsonl(folder / "responses" / f"c{number}.jsonl", rows)
    asked = [f"Is aspect {number} right?" for number in range(items)]
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": asked} for q in names])
    return folder


def make_config(tmp_path: Path, name: str = "run", **changes: Any) -> RunConfig:
    """Return a config for the benchmark in tmp_path/benchmark with the scripted engine."""
    benchmark = tmp_path / "benchmark"
    if not benchmark.exists():
        write_benchmark(benchmark)
    return parse_config(
        {
            "name": name,
            "benchmark": {"path": str(benchmark)},
            "judge": {"engine": "scripted", "model": "scripted"},
            "output": str(tmp_path / "runs"),
            "cache": str(tmp_path / "cache"),
            "ranking": {"bootstrap": 50},
            **changes,
        }
    )


def as_json(finding: Finding) -> bytes:
    """Return the stored JSON of a finding, in which equal NaNs compare equal."""
    return orjson.dumps(encode_finding(finding), option=orjson.OPT_SERIALIZE_NUMPY)
