"""Scores learned from labels on MT-Bench: the recorded table follows from the stored judgments."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from mt_bench import supervised, votes

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "studies" / "mt_bench" / "recorded"
CHOOSES = "select, by labels"
"""Takes as long as all other scorers together."""


def recorded() -> str:
    """Return the recorded table."""
    return (RECORDED / "supervised.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(not votes.DATA.is_dir(), reason="MT-Bench is not next to this checkout")
def test_recorded_table_follows_from_the_stored_judgments() -> None:
    """Every scorer is fitted again, except for the one that chooses among all others."""
    material = supervised.Material.read(supervised.STORED)
    kept = [(name, settings) for name, settings in supervised.METHODS if name != CHOOSES]
    lines = supervised.lines_of(material, kept)
    shown = [line for line in recorded().splitlines() if not line.startswith(CHOOSES)]
    assert supervised.show(material, lines).splitlines() == shown
    figures = (RECORDED / "supervised.json").read_text(encoding="utf-8")
    again = json.loads(json.dumps([asdict(line) for line in lines]))
    assert again == [row for row in json.loads(figures) if row["method"] != CHOOSES]


def test_docs_quote_the_recorded_table() -> None:
    """The table in the docs is the recorded one."""
    docs = (ROOT / "docs" / "evidence" / "reproduction.md").read_text(encoding="utf-8")
    assert f"```\n{recorded()}```" in docs
