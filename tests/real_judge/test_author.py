"""Authors against a real model: what it writes is strictly read, what fails is named, and kept.

The model is far too small to be an author: whether a list of its can be read is left open. What
must hold either way is that every query or step has a list or a reason, and that the next run pays
for what is missing alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from support.dimension_author import ONE_PART
from support.forked import run_forked
from support.make import QUERIES, write_benchmark

from .server import ServedJudge

ATTEMPTS = 2
ASKED = QUERIES[:1]
RUN = f"demo-first-{len(ASKED)}"


def prepare(folder: Path, judge: ServedJudge, **author: Any) -> None:
    """Write a benchmark, and the config of an author that writes little."""
    if not (folder / "benchmark").exists():
        write_benchmark(folder / "benchmark")
    (folder / "own.yaml").write_text(ONE_PART)
    engine = {"model": judge.name, "base_url": judge.base_url, "extra_body": {"max_tokens": 16}}
    config = {
        "name": "demo",
        "benchmark": {"path": "benchmark"},
        "judge": {"engine": "scripted", "model": "m"},
        "author": {"engine": engine, "attempts": ATTEMPTS} | author,
        "cache": None,
    }
    (folder / "rocketeval.yaml").write_text(yaml.safe_dump(config))


def checklist(folder: Path) -> tuple[int, dict[str, Any], str]:
    """Let the author write; return the exit code, the JSON and what was said beside it."""
    done = run_forked(folder, ("run", "--only", "checklist", "--json", "--limit", str(len(ASKED))))
    assert done.returncode in (0, 2, 3), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def kept(folder: Path) -> list[dict[str, Any]]:
    """What the journal keeps."""
    journal = folder / "runs" / RUN / "authored.jsonl"
    lines = journal.read_text().split("\n") if journal.exists() else []
    return [json.loads(line) for line in lines if line]


def test_every_query_has_a_list_or_a_reason(judge_url: ServedJudge, tmp_path: Path) -> None:
    """And a list that was written is not asked for again."""
    prepare(tmp_path, judge_url, kind="instance", min_items=1)
    code, told, said = checklist(tmp_path)
    written = kept(tmp_path)
    assert all(row["effort"]["attempts"] <= ATTEMPTS for row in written)
    assert all(row["effort"]["usage"]["completion_tokens"] > 0 for row in written)
    if code == 2:
        assert not written
        assert "No query has a checklist" in told["error"]["message"]
        assert f"'{ASKED[0]}': the author's list was refused 2 times" in told["error"]["message"]
    else:
        assert len(written) == told["checklists"]
        assert set(told["failures"]) == set(ASKED) - {row["query_id"] for row in written}
        assert all(f"no checklist for {query}" in said for query in told["failures"])
        assert (code == 3) == bool(told["failures"])
        path = tmp_path / "runs" / RUN / "inputs" / "checklist_provenance.json"
        rows = json.loads(path.read_text())["queries"]
        assert [row["query_id"] for row in rows] == list(ASKED)
        assert checklist(tmp_path)[1]["reused"] == len(written)


def test_every_step_is_done_or_named(judge_url: ServedJudge, tmp_path: Path) -> None:
    """Strictly, a failed step leaves no checklist; skipped, the run says so and stays with it."""
    options = {"file": "own.yaml", "steps": ["diversify", "filter"]}
    once = {"kind": "dimension", "min_items": 1, "attempts": 1}
    prepare(tmp_path, judge_url, **once, options=options)
    strict, told, _ = checklist(tmp_path)
    done = len(kept(tmp_path))
    if strict == 2:
        assert "of the checklist failed" in told["error"]["message"]
        assert "warmth" in told["error"]["message"]
        assert not (tmp_path / "runs" / RUN / "inputs" / "checklists.jsonl").exists()
    options |= {"on_failure": "skip"}
    prepare(tmp_path, judge_url, **once, options=options)
    code, told, said = checklist(tmp_path)
    if code == 2:
        assert "The filter left no question" in told["error"]["message"]
        return
    assert told["composition"]["reused_steps"] >= done
    assert told["checklists"] == len(ASKED)
    failed = told["composition"]["failed_steps"]
    assert all(f"without {step}" in said for step in failed)
    assert (code == 3) == bool(failed)
    again = checklist(tmp_path)[1]
    assert again["usage"]["requests"] == 0
    assert again["composition"]["failed_steps"] == failed
