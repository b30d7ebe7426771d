"""Whole runs reproduce the frozen results: every number, rank, name and verdict a user sees."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reference.frozen import FROZEN, canonical, differences, is_exact, load, message_of, reworded
from reference.runs import RUNS, seen_in


@pytest.mark.parametrize("name", RUNS)
def test_run_reproduces_frozen_result(name: str, tmp_path: Path) -> None:
    """All output, documents and files of the run equal the frozen ones."""
    seen = seen_in(name, tmp_path)
    frozen = load(name)
    if name == "old":
        assert_nothing_was_asked(seen)
    if canonical(seen) != canonical(frozen):
        found = list(differences(frozen, seen, exact=is_exact()))
        if found:
            pytest.fail(message_of(found), pytrace=False)


def assert_nothing_was_asked(seen: Mapping[str, Any]) -> None:
    """Check that an old cache holds all judgments and checklists."""
    for name in ("again", "again-author", "again-judged"):
        stages = seen[f"$ run {name}.yaml --json"]["stdout"]["stages"]
        grade = stages["grade"]
        assert (grade["judged"], grade["from_cache"]) == (0, grade["tasks"]), name
        assert grade["tasks"] > 0
        assert grade["usage"]["requests"] == 0
        assert stages["checklist"]["usage"]["requests"] == 0
    assert seen["$ run again-author.yaml --json"]["stdout"]["stages"]["checklist"]["reused"] == 10
    spent = seen["$ evolve again-evolve.yaml --json"]["stdout"]["spent"]
    assert spent["judge"]["questions"] == 0
    # The optimizer sees mistakes drawn at random; the old request showed the most confident ones.
    # One request is new, and one fails; both count.
    assert spent["optimizer"]["requests"] == 2


def test_frozen_files_contain_no_temporary_folder() -> None:
    """No frozen text contains the folder in which it was made."""
    for path in FROZEN.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            # Texts in arrays take four bytes per character.
            assert b"/tmp/" not in content.replace(b"\0", b""), path


def test_difference_is_reported_with_its_path() -> None:
    """The message has both values and their path; a number of another type is a difference."""
    frozen = {"a": [{"p": 0.25}, {"p": 1.0}], "b": ["x", "y"], "c": None}
    found = {"a": [{"p": 0.25}, {"p": 1}], "b": ["x"], "d": "new"}
    shown = message_of(list(differences(frozen, found)))
    assert "5 differences" in shown
    assert "['a'][1]['p']\n    frozen: 1.0\n    now:    1" in shown
    assert "['b']: 2 entries, now 1; the first that differs:" in shown
    assert "['b'][1]\n    frozen: \"y\"\n    now:    (nothing)" in shown
    assert "['d']\n    frozen: (nothing)\n    now:    \"new\"" in shown
    assert not list(differences(frozen, frozen))


def test_last_bit_counts_only_with_the_same_libraries() -> None:
    """With other libraries a billionth is allowed; texts and counts must be equal."""
    assert list(differences(0.1 + 0.2, 0.3))
    assert not list(differences(0.1 + 0.2, 0.3, exact=False))
    for frozen, found in ((0.3, 0.30001), (3, 4), ("0.3", "0.30000000000000004"), (1, 1.0)):
        assert list(differences(frozen, found, exact=False))


def test_declared_wording_replaces_the_frozen_one() -> None:
    """Old wording is replaced everywhere, also in the names of commands and files."""
    old = {"$ rank a.yaml": ["Rank of candidates", 1], "b": {"rank": None}}
    new = {"$ rank a.yaml": ["Place of candidates", 1], "b": {"rank": None}}
    assert reworded(old, (("Rank of", "Place of"),)) == new
