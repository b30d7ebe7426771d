"""Checklists by other authors: the rule that makes questions of statements, and the test."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from mt_bench import authors

from rocketeval.records import Vote


def test_every_numbered_statement_is_a_question() -> None:
    """Introductions and remarks after a blank line are left out, and so is markup."""
    rubric = "The rubric:\n\n1. **Tone**: It is\n   kind.\n2) It is short.\n\nNote: 3 is no item."
    start = "Is this statement true of the response? "
    assert authors.questions_of(rubric) == [
        f'{start}"Tone: It is kind."',
        f'{start}"It is short."',
    ]


def test_the_flip_test_is_calibrated() -> None:
    """Without a difference, one in twenty tests is below 0.05; questions are the units."""
    votes = [Vote(f"{question}-2", "a", "b", "a", "x") for question in range(40) for _ in range(5)]
    rng = np.random.default_rng(4)
    units = rng.standard_normal((300, 40))
    found = [authors.flip_test(np.repeat(own, 5), votes, flips=400) for own in units]
    assert np.mean(np.array(found) < 0.05) == pytest.approx(0.05, abs=0.035)
    shifted = authors.flip_test(np.repeat(units[0] + 1.0, 5), votes)
    assert shifted < 0.001


@pytest.mark.skipif(
    not authors.RUBRICS.is_dir(), reason="the rubrics are not next to this checkout"
)
@pytest.mark.parametrize("author", authors.AUTHORS)
def test_every_author_has_questions(
    author: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nearly every question of MT-Bench has a rubric with three statements and more."""
    monkeypatch.setattr(authors, "PREPARED", tmp_path)
    found = json.loads(authors.checklist_file(author).read_text(encoding="utf-8"))
    assert len(found) >= 78
    assert all(query.endswith("-2") and len(items) >= 3 for query, items in found.items())
