"""Tests of plain rows in the file that `benchmark.collected` names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rocketeval.benchmarks.collected import CollectedLabel, CollectedLabels
from rocketeval.benchmarks.jsonl import JsonlBenchmark
from rocketeval.benchmarks.load import load
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError

LABEL = {"query_id": "q", "candidate": "x", "value": 7}
VOTE = {"query_id": "q", "candidate_a": "x", "candidate_b": "y", "winner": "tie"}


def _file(folder: Path, *rows: object) -> CollectedLabels:
    path = folder / "mine.jsonl"
    path.write_text(
        "".join(f"{row if isinstance(row, str) else json.dumps(row)}\n" for row in rows)
    )
    return CollectedLabels(path)


def test_rows_of_labels_and_votes_files_are_read(tmp_path: Path) -> None:
    """Further fields do not matter; labels by nobody in particular are all kept."""
    file = _file(tmp_path, LABEL, "", {**LABEL, "order": 3}, {**LABEL, "labeler": "Ada"}, VOTE)
    assert [(one.value, one.labeler) for one in file.labels()] == [
        (7.0, "human"),
        (7.0, "human"),
        (7.0, "Ada"),
    ]
    assert [(one.winner, one.voter) for one in file.votes()] == [("tie", "human")]


def test_a_null_value_is_not_labeled_yet(tmp_path: Path) -> None:
    """It is counted, and the page can add to the same file."""
    file = _file(tmp_path, {**LABEL, "value": None}, {**VOTE, "winner": None}, LABEL)
    file.add(CollectedLabel(by="Ada", query_id="q", candidate="y", value=2.0))
    found = file.read()
    assert (len(found.records), found.unlabeled) == (2, 2)


@pytest.mark.parametrize(
    "row",
    [
        {"query_id": "q", "candidate": "x"},
        {"kind": "star", "query_id": "q"},
        "[1, 2]",
        "query_id,candidate,value",
        {**LABEL, "value": "good"},
        {**VOTE, "winner": "left"},
        {"candidate": "x", "value": 3},
    ],
)
def test_an_unknown_row_is_refused_with_its_line(tmp_path: Path, row: Any) -> None:
    """A row that cannot be used is not skipped silently."""
    with pytest.raises(BenchmarkError, match=r"mine\.jsonl:2"):
        _file(tmp_path, LABEL, row).records()


def test_labels_of_a_run_come_from_both_files(tmp_path: Path) -> None:
    """Null labels are named in the notes, of the benchmark's file and of the collected one."""
    rows: dict[str, list[dict[str, Any]]] = {
        "queries": [{"id": "q", "text": "?"}],
        "responses": [{"query_id": "q", "candidate": name, "text": "x"} for name in "xy"],
        "labels": [LABEL, {**LABEL, "value": None}],
    }
    folder = tmp_path / "benchmark"
    folder.mkdir()
    for name, values in rows.items():
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, values)))
    file = _file(tmp_path, {**LABEL, "candidate": "y", "value": 3}, {**LABEL, "value": None})
    config = BenchmarkConfig(path=folder, collected=file.path)
    found = load(JsonlBenchmark(folder), config)
    list(found.responses())
    assert [(one.candidate, one.value) for one in found.labels()] == [("x", 7.0), ("y", 3.0)]
    notes = " ".join(found.notes())
    assert "labels.jsonl that are not labeled yet: 1" in notes
    assert "mine.jsonl that are not labeled yet: 1" in notes
    assert "does not exist" not in notes
    absent = load(JsonlBenchmark(folder), BenchmarkConfig(path=folder, collected=Path("x.jsonl")))
    assert any("x.jsonl, which does not exist" in note for note in absent.notes())
