"""Formatting of failures, counts and paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.cli.text import failed, near
from rocketeval.records import Failure
from rocketeval.text import count_of


def test_failure_has_no_control_characters() -> None:
    """Escape codes and line breaks in names and server texts are replaced."""
    shown = failed(Failure(b"", "q\n1", "evil\x1b[2J", "item 1: no\rway", ()))
    assert shown == "failed: evil\ufffd[2J on q\ufffd1: item 1: no\ufffdway"


def test_count_uses_singular_and_plural() -> None:
    """One query, 2,000 queries."""
    assert count_of(1, "query", "queries") == "1 query"
    assert count_of(2000, "query", "queries") == "2,000 queries"


def test_path_is_normalized(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`..` is resolved, except through a link, where the result would be another file."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere" / "deep")
    monkeypatch.chdir(tmp_path)
    assert near(tmp_path / "configs" / ".." / "runs" / "demo") == "runs/demo"
    assert near(Path("configs/../runs")) == "runs"
    assert near(Path("linked/../runs")) == "linked/../runs"
    assert near(Path("/somewhere/else")) == "/somewhere/else"
