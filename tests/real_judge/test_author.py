"""Authors with a real model: strict parsing, named failures, and reuse of what was written.

The model is far too small to be an author, so its lists may be unreadable. In either case every
query or step must have a list or a reason, and the next run must pay only for what is missing.
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
    """Run the author; return the exit code, the JSON and stderr."""
    done = run_forked(folder, ("run", "--only", "checklist", "--json", "--limit", str(len(ASKED))))
    assert done.returncode in (0, 2, 3), done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.returncode, json.loads(done.stdout), done.stderr


def kept(folder: Path) -> list[dict[str, Any]]:
    """Return the rows of the journal."""
    journal = folder / "runs" / RUN / "authored.jsonl"
    lines = journal.read_text().split("\n") if journal.exists() else []
    return [json.loads(line) for line in lines if line]


def test_every_query_has_a_list_or_a_reason(judge_url: ServedJudge, tmp_path: Path) -> None:
    """A written list is not asked for again."""
    prepare(tmp_path, judge_url, kind="instance", min_items=1)
    code, result, said = checklist(tmp_path)
    written = kept(tmp_path)
    assert all(row["effort"]["attempts"] <= ATTEMPTS for row in written)
    assert all(row["effort"]["usage"]["completion_tokens"] > 0 for row in written)
    if code == 2:
        assert not written
        assert "No query has a checklist" in result["error"]["message"]
        assert f"'{ASKED[0]}': the author's list was refused 2 times" in result["error"]["message"]
    else:
        assert len(written) == result["checklists"]
        assert set(result["failures"]) == set(ASKED) - {row["query_id"] for row in written}
        assert all(f"no checklist for {query}" in said for query in result["failures"])
        assert (code == 3) == bool(result["failures"])
        path = tmp_path / "runs" / RUN / "inputs" / "checklist_provenance.json"
        rows = json.loads(path.read_text())["queries"]
        assert [row["query_id"] for row in rows] == list(ASKED)
        assert checklist(tmp_path)[1]["reused"] == len(written)


def test_every_step_succeeds_or_is_named(judge_url: ServedJudge, tmp_path: Path) -> None:
    """A failed step leaves no checklist in strict mode; with skip, the run reports and keeps it."""
    options = {"file": "own.yaml", "steps": ["diversify", "filter"]}
    once = {"kind": "dimension", "min_items": 1, "attempts": 1}
    prepare(tmp_path, judge_url, **once, options=options)
    strict, result, _ = checklist(tmp_path)
    done = len(kept(tmp_path))
    if strict == 2:
        assert "of the checklist failed" in result["error"]["message"]
        assert "warmth" in result["error"]["message"]
        assert not (tmp_path / "runs" / RUN / "inputs" / "checklists.jsonl").exists()
    options |= {"on_failure": "skip"}
    prepare(tmp_path, judge_url, **once, options=options)
    code, result, said = checklist(tmp_path)
    if code == 2:
        assert "The filter left no question" in result["error"]["message"]
        return
    assert result["composition"]["reused_steps"] >= done
    assert result["checklists"] == len(ASKED)
    failed = result["composition"]["failed_steps"]
    assert all(f"without {step}" in said for step in failed)
    assert (code == 3) == bool(failed)
    again = checklist(tmp_path)[1]
    assert again["usage"]["requests"] == 0
    assert again["composition"]["failed_steps"] == failed
