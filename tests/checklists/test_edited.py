"""Ids in a checklist file without a query: counted, named, with a suggestion."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rocketeval.checklists import simple as edited
from rocketeval.checklists.simple import FileAuthor
from rocketeval.checklists.stage import MOST_UNKNOWN
from rocketeval.config import AuthorConfig
from support.in_process import cli
from support.make import QUERIES, write_benchmark

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


def test_nearest_query_without_a_checklist_is_suggested(tmp_path: Path) -> None:
    """A query with its own checklist is never suggested."""
    own = author(tmp_path / "own.yaml", "query-1", "query-22", "something else")
    assert own.unknown(["query-1", "query-2"]) == {"query-22": "query-2", "something else": None}
    assert own.unknown(["query-1", "query-22", "something else"]) == {}


def test_no_suggestion_if_every_query_has_a_checklist(tmp_path: Path) -> None:
    """With a checklist for all queries, a similar id is no sign of a typo."""
    entry = {"items": ["Is it right?"]}
    path = tmp_path / "own.yaml"
    path.write_text(json.dumps({"for_all": entry, "queries": {"query-22": entry}}))
    own = FileAuthor.create(AuthorConfig(options={"file": str(path)}), {})
    assert own.unknown(["query-2"]) == {"query-22": None}


def test_no_suggestion_among_very_many_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = author(tmp_path / "own.yaml", "query-22")
    monkeypatch.setattr(edited, "MOST_COMPARED", 2)
    assert own.unknown(["query-2", "other"]) == {"query-22": "query-2"}
    assert own.unknown(["query-2", "other", "more"]) == {"query-22": None}


def test_number_of_suggestions_is_bounded(tmp_path: Path) -> None:
    """Many wrong ids are named without comparing each with all others."""
    wrong = [f"wrong-{n:05d}" for n in range(1000)]
    own = author(tmp_path / "own.yaml", *wrong)
    found = own.unknown([f"right-{n:05d}" for n in range(100)])
    assert len(found) == len(wrong)
    assert 0 < sum(near is not None for near in found.values()) <= edited.MOST_GUESSED
    found = own.unknown([f"right-{n:05d}" for n in range(edited.MOST_COMPARED + 1)])
    assert len(found) == len(wrong)
    assert set(found.values()) == {None}


def test_the_command_line_warns(tmp_path: Path) -> None:
    """On stderr, in JSON, and in the summary of a run."""
    write_benchmark(tmp_path / "benchmark")
    entry = {"items": ["Is it right?"]}
    others = [query for query in QUERIES if query != "sky"]
    names = ["skyy", "\x1b[2Jx", *others]
    (tmp_path / "own.yaml").write_text(json.dumps({"queries": dict.fromkeys(names, entry)}))
    (tmp_path / "rocketeval.yaml").write_text(CONFIG)
    done = cli(tmp_path, "run", "--only", "checklist", code=3)
    assert "2 ids in the checklists" in done.stderr
    assert "'skyy' (did you mean 'sky'?)" in done.stderr
    assert "\x1b" not in done.stderr
    told = json.loads(cli(tmp_path, "run", "--only", "checklist", "--json", code=3).stdout)
    assert told["unknown"] == {"skyy": "sky", "\x1b[2Jx": None}
    assert told["unknown_count"] == 2
    assert "'skyy' (did you mean 'sky'?)" in cli(tmp_path, "run", code=3).stdout


def test_only_first_unknown_ids_are_stored(tmp_path: Path) -> None:
    """All are counted, but the manifest stays small."""
    write_benchmark(tmp_path / "benchmark")
    entry = {"items": ["Is it right?"]}
    wrong = dict.fromkeys((f"wrong-{n:04d}" for n in range(3000)), entry)
    (tmp_path / "own.yaml").write_text(json.dumps({"for_all": entry, "queries": wrong}))
    (tmp_path / "rocketeval.yaml").write_text(CONFIG)
    done = cli(tmp_path, "run", "--only", "checklist", "--json")
    told = json.loads(done.stdout)
    assert (len(told["unknown"]), told["unknown_count"]) == (MOST_UNKNOWN, 3000)
    assert "3,000 ids in the checklists" in done.stderr
    assert "'wrong-0002' and 2,997 more" in done.stderr


def test_ids_beyond_a_limit_are_not_reported(tmp_path: Path) -> None:
    """A file for the whole benchmark fits a part of it."""
    write_benchmark(tmp_path / "benchmark")
    entry = {"items": ["Is it right?"]}
    (tmp_path / "own.yaml").write_text(json.dumps({"queries": dict.fromkeys(QUERIES, entry)}))
    config = CONFIG.replace("{path: benchmark}", "{path: benchmark, limit: 1}")
    (tmp_path / "rocketeval.yaml").write_text(config)
    done = cli(tmp_path, "run", "--only", "checklist", "--json")
    assert "no query" not in done.stderr
    assert "unknown" not in json.loads(done.stdout)


def test_matching_file_gives_no_warning(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "own.yaml").write_text(json.dumps({"for_all": {"items": ["Is it right?"]}}))
    (tmp_path / "rocketeval.yaml").write_text(CONFIG)
    assert "no query" not in cli(tmp_path, "run", "--only", "checklist").stderr
