"""Ids in a checklist file that no query has: counted, named, with what may have been meant."""

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


def test_the_nearest_query_without_a_checklist_is_meant(tmp_path: Path) -> None:
    """A query that has its own checklist was not meant."""
    own = author(tmp_path / "own.yaml", "query-1", "query-22", "something else")
    assert own.unknown(["query-1", "query-2"]) == {"query-22": "query-2", "something else": None}
    assert own.unknown(["query-1", "query-22", "something else"]) == {}


def test_nothing_is_guessed_where_no_query_lacks_a_checklist(tmp_path: Path) -> None:
    """With a checklist for all, a similar id is no sign of a slip."""
    entry = {"items": ["Is it right?"]}
    path = tmp_path / "own.yaml"
    path.write_text(json.dumps({"for_all": entry, "queries": {"query-22": entry}}))
    own = FileAuthor.create(AuthorConfig(options={"file": str(path)}), {})
    assert own.unknown(["query-2"]) == {"query-22": None}


def test_nothing_is_guessed_among_very_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = author(tmp_path / "own.yaml", "query-22")
    monkeypatch.setattr(edited, "MOST_COMPARED", 2)
    assert own.unknown(["query-2", "other"]) == {"query-22": "query-2"}
    assert own.unknown(["query-2", "other", "more"]) == {"query-22": None}


def test_guesses_are_bounded_names_are_not(tmp_path: Path) -> None:
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


def test_of_many_ids_the_first_are_kept(tmp_path: Path) -> None:
    """All are counted; a manifest does not grow with a file that fits nothing."""
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


def test_ids_that_a_limit_cuts_off_are_no_mistake(tmp_path: Path) -> None:
    """The file of the whole benchmark fits a part of it."""
    write_benchmark(tmp_path / "benchmark")
    entry = {"items": ["Is it right?"]}
    (tmp_path / "own.yaml").write_text(json.dumps({"queries": dict.fromkeys(QUERIES, entry)}))
    config = CONFIG.replace("{path: benchmark}", "{path: benchmark, limit: 1}")
    (tmp_path / "rocketeval.yaml").write_text(config)
    done = cli(tmp_path, "run", "--only", "checklist", "--json")
    assert "no query" not in done.stderr
    assert "unknown" not in json.loads(done.stdout)


def test_a_file_that_fits_says_nothing(tmp_path: Path) -> None:
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "own.yaml").write_text(json.dumps({"for_all": {"items": ["Is it right?"]}}))
    (tmp_path / "rocketeval.yaml").write_text(CONFIG)
    assert "no query" not in cli(tmp_path, "run", "--only", "checklist").stderr
