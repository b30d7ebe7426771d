"""What is printed cannot rewrite the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.cli.text import failed, near
from rocketeval.records import Failure
from rocketeval.text import count_of


def test_a_failure_names_its_place_without_control_characters() -> None:
    """Escape codes and line breaks in a name or a server's text are shown, not obeyed."""
    shown = failed(Failure(b"", "q\n1", "evil\x1b[2J", "item 1: no\rway", ()))
    assert shown == "failed: evil\ufffd[2J on q\ufffd1: item 1: no\ufffdway"


def test_the_word_fits_the_number() -> None:
    """One query, two queries."""
    assert count_of(1, "query", "queries") == "1 query"
    assert count_of(2000, "query", "queries") == "2,000 queries"


def test_a_path_is_told_without_detours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless the detour leads through a link, where the short form would be another file."""
    (tmp_path / "configs").mkdir()
    (tmp_path / "elsewhere" / "deep").mkdir(parents=True)
    (tmp_path / "linked").symlink_to(tmp_path / "elsewhere" / "deep")
    monkeypatch.chdir(tmp_path)
    assert near(tmp_path / "configs" / ".." / "runs" / "demo") == "runs/demo"
    assert near(Path("configs/../runs")) == "runs"
    assert near(Path("linked/../runs")) == "linked/../runs"
    assert near(Path("/somewhere/else")) == "/somewhere/else"
