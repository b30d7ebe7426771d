"""`--json` and `--quiet` of every verb."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.test_cli import CONFIG
from rocketeval.cli.output import as_json, asks_for_json, error_as_json
from support.in_process import cli
from support.make import CANDIDATES, QUERIES, write_benchmark, write_jsonl

VERBS: dict[str, tuple[tuple[str, ...], str]] = {
    "run": ((), "ranking"),
    "plan": ((), "items"),
    "doctor": (("--quick",), "verdict"),
    "checklist": ((), "checklists"),
    "lint": ((), "findings"),
    "run --only load": ((), "queries"),
    "run --only checklist": ((), "checklists"),
    "run --only grade": ((), "judged"),
    "run --only score": ((), "scores"),
    "run --only rank": ((), "rows"),
    "audit": ((), "audit"),
    "explain": ((), "candidates"),
    "run --only report": ((), "report"),
    "audit --scorers mean": ((), "scorers"),
    "compare": (("left", "right"), "verdict"),
    "labels estimate": ((), "rows"),
    "labels next": (("--top", "1"), "forecasts"),
    "audit --criteria": ((), "criteria"),
}
"""Verbs with a result, their arguments, and a key of the JSON document."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the demo was run."""
    folder = tmp_path_factory.mktemp("json")
    write_benchmark(folder / "benchmark")
    rows = [
        {"query_id": query, "candidate": candidate, "value": 3 + number + place}
        for number, query in enumerate(QUERIES)
        for place, candidate in enumerate(CANDIDATES)
    ]
    write_jsonl(folder / "benchmark" / "labels.jsonl", rows)
    (folder / "rocketeval.yaml").write_text(CONFIG)
    cli(folder, "run", "--quiet")
    return folder


def document(text: str) -> dict[str, Any]:
    """Parse stdout as strict JSON, without NaN."""
    found: dict[str, Any] = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    assert all(key == key.lower() and " " not in key for key in found)
    return found


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_prints_one_document(verb: str, folder: Path) -> None:
    """--json prints one object to stdout; --quiet prints nothing, with the same exit code."""
    options, wanted = VERBS[verb]
    # The scripted judge guesses, which the doctor detects.
    code = 4 if verb == "doctor" else 0
    assert wanted in document(cli(folder, *verb.split(), *options, "--json", code=code).stdout)
    quiet = cli(folder, *verb.split(), *options, "--quiet", code=code)
    assert quiet.stdout + quiet.stderr == ""


def test_ensemble_as_json(folder: Path) -> None:
    """`ensemble --json` has both rankings."""
    cli(folder, "run", "--quiet", "--name", "other", "--judge", "other")
    shown = cli(folder, "ensemble", "runs/demo", "runs/other", "--out", "both", "--json")
    assert {"mean", "pooled"} <= document(shown.stdout).keys()


def test_run_as_json(folder: Path) -> None:
    """The document has the ranking, missing counts, report path and next command."""
    found = document(cli(folder, "run", "--json").stdout)
    assert found["ranking"]["rows"][0]["rating"]["low"] is None
    assert found["missing"]["answers_missing"] == 0
    assert found["next"]["command"].startswith("rocketeval ")
    assert Path(found["report"]).exists()
    assert document(cli(folder, "run", "--dry-run", "--json").stdout)["to_judge"] == 0


def test_methods_in_json(folder: Path) -> None:
    """Progress goes to stderr and names each method; stdout has the comparison."""
    done = cli(folder, "audit", "--methods", "checklist,direct", "--json", "--name", "methods")
    found = document(done.stdout)
    assert found["audit"] is None
    assert {"checklist", "direct"} <= {row["name"] for row in found["methods"]["rows"]}
    assert "grade direct (2 of 2): " in done.stderr


def test_errors_as_json(folder: Path, tmp_path: Path) -> None:
    """An error is a JSON document on stdout, with the same message on stderr."""
    done = cli(tmp_path, "run", "--json", code=2)
    error = document(done.stdout)["error"]
    assert (error["exit_code"], "rocketeval init" in error["hint"]) == (2, True)
    assert error["message"] in done.stderr
    wrong = document(cli(folder, "run", "--json", "--nonsense", code=2).stdout)["error"]
    assert "--nonsense" in wrong["message"]
    never = ("run", "--only", "rank", "--json", "--name", "none")
    missing = document(cli(folder, *never, code=5).stdout)["error"]
    assert missing["exit_code"] == 5


def test_nan_and_infinity_are_null() -> None:
    """NaN and infinity are null; paths and bytes are strings."""
    found = {"a": float("nan"), "b": float("inf"), 1: Path("x"), "c": b"\x01"}
    assert json.loads(as_json(found)) == {"a": None, "b": None, "1": "x", "c": "01"}


def test_invalid_utf8_in_an_error() -> None:
    """Invalid UTF-8 in a file name becomes a question mark."""
    assert json.loads(error_as_json("\udcff", "", 1))["error"] == {
        "message": "?",
        "hint": None,
        "exit_code": 1,
    }


def test_json_flag_counts_only_before_the_dashes() -> None:
    """After `--`, a candidate may be named --json."""
    assert asks_for_json(["run", "--json"])
    assert not asks_for_json(["compare", "--", "--json", "x"])
