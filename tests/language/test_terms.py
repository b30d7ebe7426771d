"""People read plain English: no banned term, and no misspelled word."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from language.terms import ROOT, TERMS, Term, checked_files, main, prose, uses_in

SPELLED = ["--builtin", "clear,rare,en-GB_to_en-US", "--ignore-words", "spelling.txt"]
SPELLED += ["--ignore-regex", r"gpt4labelled|labelled\.(?:yaml|parquet)|runs/labelled|`judgement`"]
# Names of files and of earlier versions.


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.example)
@pytest.mark.parametrize("suffix", [".md", ".py", ".ts"])
def test_each_banned_term_is_found(term: Term, suffix: str, tmp_path: Path) -> None:
    """The check fails on a file that uses the term."""
    page = tmp_path / f"page{suffix}"
    page.write_text(f'"""Say {term.example}."""\n')
    assert any(use.instead == term.instead for use in uses_in(page))
    assert main([str(page)]) == 1


def test_names_in_code_are_not_checked(tmp_path: Path) -> None:
    """Variables may have any name, and a file without banned terms passes."""
    page = tmp_path / "page.py"
    page.write_text("told = beside = 3\n")
    assert main([str(page)]) == 0


def test_no_banned_term_is_used() -> None:
    """Documents, help, messages, docstrings and comments use the project's words."""
    files = checked_files()
    assert len(files) > 300
    assert [str(use) for path in files for use in uses_in(path)] == []


def spelling(folder: Path) -> str:
    """Return codespell's findings in a folder."""
    command = [sys.executable, "-m", "codespell_lib", *SPELLED, str(folder)]
    here = Path(__file__).parent
    return subprocess.run(command, cwd=here, capture_output=True, text=True, check=False).stdout


def test_prose_is_spelled_right(tmp_path: Path) -> None:
    """No common misspelling and no British spelling, except for the words in spelling.txt."""
    for path in checked_files():
        copy = tmp_path / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        text = "\n".join(text for _, text in prose(path))
        Path(f"{copy}.txt").write_text(text, encoding="utf-8", errors="replace")
    assert spelling(tmp_path) == ""


def test_misspelled_word_is_found(tmp_path: Path) -> None:
    """The spelling check finds a misspelling and a British spelling."""
    (tmp_path / "page.txt").write_text("A judgement of teh neighbours.\n")
    assert all(word in spelling(tmp_path) for word in ("judgement", "teh", "neighbours"))
