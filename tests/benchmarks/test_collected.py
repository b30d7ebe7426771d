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
        {"kind": "label", "by": ["a"], **LABEL},
        {"kind": "label", "by": "a", **LABEL, "query_id": ["q"]},
        {"kind": "label", "by": "a", **LABEL, "value": True},
        {"kind": "label", "by": "a", **LABEL, "value": 1e300},
        {"kind": "label", "by": "a", **LABEL, "id": ["a"]},
        {"kind": "undo", "id": ["a"]},
        {"kind": ["label"]},
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


def test_only_a_torn_last_line_is_skipped_silently(tmp_path: Path) -> None:
    """A broken line before it may have been a label: it is counted and named."""
    file = _file(tmp_path, LABEL, '{"kind":"label","by":"Ada","value":7,}', LABEL)
    with file.path.open("a") as stream:
        stream.write('{"kind":"label","by":"A')
    found = file.read()
    assert (len(found.records), found.places) == (2, ("mine.jsonl:1", "mine.jsonl:3"))
    (note,) = found.notes
    assert "not valid JSON: 1 (mine.jsonl:2)" in note


def test_a_misspelled_field_of_a_plain_row_is_named(tmp_path: Path) -> None:
    """`labeller` would make everybody "human"; the names of tables are read."""
    file = _file(tmp_path, {**LABEL, "labeller": "Zoe"}, {**LABEL, "rater": "Ada"})
    assert [one.labeler for one in file.labels()] == ["human", "Ada"]
    (note,) = file.read().notes
    assert "rows of mine.jsonl with a field 'labeller', which is not used: 1." in note


def test_a_folder_in_place_of_the_file_is_named(tmp_path: Path) -> None:
    """It is a message, not an error of the system."""
    with pytest.raises(BenchmarkError, match="Cannot read"):
        CollectedLabels(tmp_path).read()


def test_messages_about_collected_labels_name_their_line(tmp_path: Path) -> None:
    """Not the line of the responses that were read before."""
    folder = tmp_path / "benchmark"
    folder.mkdir()
    (folder / "queries.jsonl").write_text('{"id": "q", "text": "?"}')
    rows = [{"query_id": "q", "candidate": name, "text": "x"} for name in "xy"]
    (folder / "responses.jsonl").write_text("\n".join(map(json.dumps, rows)))
    file = _file(tmp_path, {**LABEL, "value": 70}, VOTE)
    config = BenchmarkConfig(path=folder, collected=file.path)
    found = load(JsonlBenchmark(folder), config)
    assert len([*found.responses(), *found.labels(), *found.votes()]) == 4
    assert any("(mine.jsonl:1: 70 for 'x' on 'q')" in note for note in found.notes())
    _file(tmp_path, LABEL, {**LABEL, "query_id": "q7"})
    wrong = load(JsonlBenchmark(folder), config)
    list(wrong.responses())
    with pytest.raises(BenchmarkError, match=r"mine\.jsonl:2: the labels name a query 'q7'"):
        list(wrong.labels())
