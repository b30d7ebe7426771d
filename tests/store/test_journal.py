"""Append-only JSONL: every complete line is read, whatever a kill left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.store.journal import Journal


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("torn", [b"", b'{"n": 7', b'{"n": 7}'])
def test_torn_line_affects_no_other(tmp_path: Path, shared: bool, torn: bytes) -> None:
    """Lines before and after it are read; a line without its newline may be complete."""
    journal = Journal(tmp_path / "new" / "rows.jsonl", shared=shared)
    assert list(journal.rows()) == []
    journal.append({"n": 1})
    with journal.path.open("ab") as stream:
        stream.write(torn)
    journal.append({"n": 2})
    whole = [7] if torn.endswith(b"}") else []
    assert [row["n"] for row in journal.rows()] == [1, *whole, 2]


def test_only_shared_journals_start_lines_with_a_newline(tmp_path: Path) -> None:
    """Another process may die between a check of the file and the write."""
    for shared, content in ((False, b'{"n":1}\n{"n":2}\n'), (True, b'\n{"n":1}\n\n{"n":2}\n')):
        journal = Journal(tmp_path / f"{shared}.jsonl", shared=shared)
        journal.append({"n": 1})
        journal.append({"n": 2})
        assert journal.path.read_bytes() == content
