"""Files of test cases: every mistake in one is an error that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.errors import BenchmarkError
from rocketeval.gate.cases import read_cases


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
    ],
)
def test_mistakes_name_the_file(tmp_path: Path, name: str, content: bytes) -> None:
    """No content of a file is a traceback."""
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(BenchmarkError, match=name):
        read_cases(path)
