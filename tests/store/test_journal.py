"""Append-only JSONL: every whole line is read back, whatever a kill left behind."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.store.journal import Journal


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("torn", [b"", b'{"n": 7', b'{"n": 7}'])
def test_a_torn_line_swallows_no_other(tmp_path: Path, shared: bool, torn: bytes) -> None:
    """What stands before and behind it is there; a line without its end may be whole."""
    journal = Journal(tmp_path / "new" / "rows.jsonl", shared=shared)
    assert list(journal.rows()) == []
    journal.append({"n": 1})
    with journal.path.open("ab") as stream:
        stream.write(torn)
    journal.append({"n": 2})
    whole = [7] if torn.endswith(b"}") else []
    assert [row["n"] for row in journal.rows()] == [1, *whole, 2]


def test_only_a_shared_journal_begins_lines_with_a_newline(tmp_path: Path) -> None:
    """Another process may die between a look at the file and the write: nothing is looked at."""
    for shared, content in ((False, b'{"n":1}\n{"n":2}\n'), (True, b'\n{"n":1}\n\n{"n":2}\n')):
        journal = Journal(tmp_path / f"{shared}.jsonl", shared=shared)
        journal.append({"n": 1})
        journal.append({"n": 2})
        assert journal.path.read_bytes() == content
