"""A finished run whose checklist has groups, including hostile ones, with a missing answer."""

from __future__ import annotations

import json
from pathlib import Path

import rocketeval
from rocketeval.config import RunConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.pipeline import Outcome
from support.make import make_config, write_jsonl

GROUPS = {
    "tone: warm": ["Is it warm?", "Is it kind?"],
    "tone: <b>glad_and_quite_long_for_a_column</b>": ["Is it glad?"],
    "=length": ["Is it short?", "Is it whole?"],
}
NAMES = ("left", "right", "=1+1", "\x1b[31mred")
QUERIES = tuple(f"q{n}" for n in range(8))
P_YES = {"warm": 0.9, "kind": 0.7, "glad": 0.2, "short": 0.6, "whole": 0.4}


def p_yes(prefix: str, suffix: str) -> float:
    """Return a probability by item; `left` gets a tenth more."""
    found = next(p for word, p in P_YES.items() if word in suffix)
    return found + (0.05 if "left explains" in prefix else 0.0)


def grouped_config(folder: Path, **changes: object) -> RunConfig:
    """Write the benchmark and a file of grouped checklists; q0 has different items."""
    benchmark = folder / "benchmark"
    write_jsonl(benchmark / "queries.jsonl", [{"id": q, "text": f"Why {q}?"} for q in QUERIES])
    rows = [
        {"query_id": q, "candidate": name, "text": f"{name} explains {q}"}
        for q in QUERIES
        for name in NAMES
        if (q, name) != ("q1", "right")
    ]
    rows.append({"query_id": "q1", "candidate": "right", "text": "FAIL"})
    write_jsonl(benchmark / "responses.jsonl", rows)
    sheet = {
        "for_all": {"groups": GROUPS},
        "queries": {"q0": {"groups": {"tone: warm": ["Is it warm?"]}}},
    }
    (folder / "sheet.yaml").write_text(json.dumps(sheet))
    author = {"kind": "file", "options": {"file": str(folder / "sheet.yaml")}}
    return make_config(folder, author=author, **changes)


def grouped_run(folder: Path) -> tuple[RunConfig, Outcome]:
    """Return the finished run; right's response to q1 is never judged."""
    config = grouped_config(folder)
    return config, rocketeval.run(config, judge=ScriptedEngine(p_yes, fail_on="FAIL"))
