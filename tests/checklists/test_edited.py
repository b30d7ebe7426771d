"""Ids in a checklist file that no query has: counted, named, with what may have been meant."""

from __future__ import annotations

import json
from pathlib import Path

from rocketeval.checklists import edited
from rocketeval.checklists.edited import FileAuthor
from rocketeval.config import AuthorConfig
from support.in_process import cli
from support.make import write_benchmark

CONFIG = """\
name: demo
benchmark: {path: benchmark}
judge: {engine: scripted, model: m}
author: {kind: file, options: {file: own.yaml}}
ranking: {bootstrap: 50}
"""


def author(path: Path, *ids: str) -> FileAuthor:
    """The author of a file with a checklist for each id."""
    entries = {name: {"items": ["Is it right?"]} for name in ids}
    path.write_text(json.dumps({"queries": entries}))
    return FileAuthor.create(AuthorConfig(options={"file": str(path)}), {})


def test_the_nearest_query_without_a_checklist_is_meant(tmp_path: Path) -> None:
    """A query that has its own checklist was not meant."""
    own = author(tmp_path / "own.yaml", "query-1", "query-22", "something else")
    assert own.unknown(["query-1", "query-2"]) == {"query-22": "query-2", "something else": None}
    assert own.unknown(["query-1", "query-22", "something else"]) == {}


def test_guesses_are_bounded_names_are_not(tmp_path: Path) -> None:
    """Ten thousand wrong ids are named without comparing each with ten thousand others."""
    wrong = [f"wrong-{n:05d}" for n in range(10_000)]
    found = author(tmp_path / "own.yaml", *wrong).unknown([f"right-{n:05d}" for n in range(10_000)])
    assert len(found) == len(wrong)
    assert sum(near is not None for near in found.values()) <= edited.MOST_GUESSED


def test_the_command_line_warns(tmp_path: Path) -> None:
    """On stderr, in JSON, and in the summary of a run; nothing is missing, so the code is 0."""
    write_benchmark(tmp_path / "benchmark")
    entry = {"items": ["Is it right?"]}
    sheet = {"for_all": entry, "queries": {"skyy": entry, "\x1b[2Jx": entry, "sea": entry}}
    (tmp_path / "own.yaml").write_text(json.dumps(sheet))
    (tmp_path / "rocketeval.yaml").write_text(CONFIG)
    done = cli(tmp_path, "checklist")
    line = (
        "2 ids in the checklist file are no queries and passed over: 'skyy' (did you mean 'sky'?)"
    )
    assert line in done.stderr
    assert "\x1b" not in done.stderr
    told = json.loads(cli(tmp_path, "checklist", "--json").stdout)
    assert told["unknown"] == {"skyy": "sky", "\x1b[2Jx": None}
    assert line in cli(tmp_path, "run").stdout


def test_a_file_that_fits_says_nothing(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "own.yaml").write_text(json.dumps({"for_all": {"items": ["Is it right?"]}}))
    (tmp_path / "rocketeval.yaml").write_text(CONFIG)
    assert "passed over" not in cli(tmp_path, "checklist").stderr
