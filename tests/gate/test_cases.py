"""Files of test cases: every mistake in one is an error that names the file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rocketeval.errors import BenchmarkError
from rocketeval.gate.cases import odd_fields, read_cases
from rocketeval.records import Query, Turn


def test_the_same_cases_in_each_format(tmp_path: Path) -> None:
    """A case is the same in JSONL, JSON and YAML."""
    row = '{"id": "a", "query": "Hi", "checklist": ["Is it polite?"], "min_score": 0.7}'
    for name, text in (("c.jsonl", row + "\n"), ("c.json", f"[{row}]"), ("c.yaml", f"- {row}\n")):
        path = tmp_path / name
        path.write_text(text)
        (case,) = read_cases(path)
        assert (case.id, case.query, case.min_score) == ("a", "Hi", 0.7)
        assert case.checklist.items == ("Is it polite?",)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("twice.yaml", b"- {query: a, query: b, checklist: [c]}"),
        ("date.yaml", b"- {query: a, checklist: [c], id: 2026-99-99}"),
        ("deep.yaml", b"[" * 300),
        ("deep.json", b"[" * 3000),
        ("open.yaml", b"- {query: a"),
        ("open.jsonl", b'{"query": '),
        ("latin.yaml", b"- {query: caf\xe9, checklist: [c]}"),
        ("text.yaml", b"only text"),
        ("number.yaml", b"- {query: a, checklist: [c], min_score: []}"),
        ("context.yaml", b"- {query: a, checklist: [c], context: 5}"),
        ("huge.yaml", b"- {query: a, checklist: [c], min_score: 1" + b"0" * 400 + b"}"),
        ("empty.jsonl", b"\n"),
        ("utf16.jsonl", '{"query": "a", "checklist": ["c"]}'.encode("utf-16")),
        ("half.yaml", b'- {query: "\\ud800", checklist: [c]}'),
        ("loop.yaml", b"- &a {query: a, checklist: [c], reference: *a}"),
        ("none.yaml", b"- {checklist: [c]}"),
        ("folder.yaml/missing.jsonl", None),
    ],
)
def test_mistakes_name_the_file(tmp_path: Path, name: str, content: bytes | None) -> None:
    """No content of a file is a traceback."""
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BenchmarkError, match=name):
        read_cases(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("query", 42),
        ("reference", 42),
        ("reference", ["a"]),
        ("system", {"a": 1}),
        ("history", "Hi"),
        ("history", {"role": "user"}),
        ("history", ["Hi"]),
        ("history", [{"role": "user"}]),
        ("history", [{"role": "user", "content": 42}]),
        ("history", [{"role": None, "content": "Hi"}]),
        ("context", "a passage"),
        ("context", [1]),
        ("id", ""),
        ("id", "  "),
        ("min_score", 80),
        ("min_score", -0.1),
        ("min_score", True),
        ("min_score", "0.7"),
    ],
)
@pytest.mark.parametrize("ending", ["jsonl", "json", "yaml"])
def test_wrong_types_name_the_field(tmp_path: Path, ending: str, field: str, value: Any) -> None:
    """A field of another type is a message with the file, the case, the field and what to do."""
    good = {"query": "Hi", "checklist": ["c"]}
    rows = list(map(json.dumps, (good, {**good, field: value})))
    path = tmp_path / f"c.{ending}"
    path.write_text("\n".join(rows) if ending == "jsonl" else f"[{', '.join(rows)}]")
    with pytest.raises(BenchmarkError) as error:
        read_cases(path)
    assert error.value.message.startswith(f"{path}, case 2: ")
    assert error.value.message.count("case 2") == 1
    assert field in error.value.message
    assert error.value.hint


@pytest.mark.parametrize(
    ("field", "value"),
    [("min_score", "yes"), ("min_score", ".nan"), ("reference", "{1: 2}"), ("history", "{1: 2}")],
)
def test_values_of_yaml_name_the_field(tmp_path: Path, field: str, value: str) -> None:
    """Words and keys that only YAML has are messages, too."""
    path = tmp_path / "c.yaml"
    path.write_text(f"- {{query: a, checklist: [c], {field}: {value}}}")
    with pytest.raises(BenchmarkError, match=rf"c\.yaml, case 1: .*{field}"):
        read_cases(path)


@pytest.mark.parametrize("ending", ["jsonl", "json", "yaml"])
def test_every_field_is_read(tmp_path: Path, ending: str) -> None:
    """Fields of the right type are kept; null means that a field is missing."""
    full = {
        "question": "Hi",
        "checklist": ["c"],
        "reference": "r",
        "system": "s",
        "history": [{"role": "user", "content": "Hello"}],
        "context": ["p"],
        "min_score": 1,
        "more": 3,
    }
    empty = {"query": "Hi", "checklist": ["c"], "reference": None, "system": None}
    rows = list(map(json.dumps, (full, {**empty, "history": None, "context": None})))
    path = tmp_path / f"c.{ending}"
    path.write_text("\n".join(rows) if ending == "jsonl" else f"[{', '.join(rows)}]")
    first, second = read_cases(path)
    assert first.record == Query("case-1", "Hi", (Turn("user", "Hello"),), "r", system="s",
                                 context=("p",))  # fmt: skip
    assert (first.min_score, first.fields) == (1.0, {"more": 3})
    assert second.record == Query("case-2", "Hi")


def test_null_ids_are_missing_ids(tmp_path: Path) -> None:
    """Cases with the id null are numbered, as those without an id."""
    path = tmp_path / "c.jsonl"
    row = json.dumps({"id": None, "query": "Hi", "checklist": ["c"]})
    path.write_text(f"{row}\n{row}\n")
    assert [case.id for case in read_cases(path)] == ["case-1", "case-2"]


def test_fields_are_not_lost(tmp_path: Path) -> None:
    """Another name of the query is a field if `query` is given; misspelled fields are named."""
    row = {"query": "Hi", "input": "kept", "more": 1, "checklist": ["c"]}
    path = tmp_path / "c.yaml"
    path.write_text(
        json.dumps([{**row, "min_scor": 0.5, "Referense": "r"}, row, {**row, "min_scor": 1}])
    )
    cases = read_cases(path)
    assert cases[1].fields == {"input": "kept", "more": 1}
    assert list(odd_fields(cases)) == [
        "cases with a field 'min_scor', which RocketEval does not use: 2. "
        "Did you mean 'min_score'?",
        "cases with a field 'Referense', which RocketEval does not use: 1. "
        "Did you mean 'reference'?",
    ]


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"])
def test_unusual_line_ends_are_part_of_a_text(tmp_path: Path, mark: str) -> None:
    """Only a line feed ends a row of JSON lines."""
    path = tmp_path / "c.jsonl"
    row = json.dumps({"query": f"a{mark}b", "checklist": ["c"]}, ensure_ascii=False)
    path.write_bytes(f"{row}\r\n\r\n{row}\n".encode())
    assert [case.query for case in read_cases(path)] == [f"a{mark}b"] * 2


@pytest.mark.parametrize("ending", ["jsonl", "json", "yaml"])
def test_a_byte_order_mark_is_ignored(tmp_path: Path, ending: str) -> None:
    """Windows tools write one before the first row."""
    row = '{"query": "Hi", "checklist": ["c"]}'
    path = tmp_path / f"c.{ending}"
    path.write_text(row if ending == "jsonl" else f"[{row}]", encoding="utf-8-sig")
    assert [case.query for case in read_cases(path)] == ["Hi"]
