"""Scores learned from labels on MT-Bench: the recorded table follows from the stored judgments."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from mt_bench import supervised, votes

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "studies" / "mt_bench" / "recorded"


def recorded() -> str:
    """Return the recorded table."""
    return (RECORDED / "supervised.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(not votes.DATA.is_dir(), reason="MT-Bench is not next to this checkout")
def test_recorded_table_follows_from_the_stored_judgments() -> None:
    """Every line is computed again, to the last digit."""
    material = supervised.Material.read(supervised.STORED)
    lines = supervised.lines_of(material)
    assert supervised.show(material, lines) + "\n" == recorded()
    figures = (RECORDED / "supervised.json").read_text(encoding="utf-8")
    assert json.loads(json.dumps([asdict(line) for line in lines])) == json.loads(figures)


def test_docs_quote_the_recorded_table() -> None:
    """The table in the docs is the recorded one."""
    docs = (ROOT / "docs" / "evidence" / "reproduction.md").read_text(encoding="utf-8")
    assert f"```\n{recorded()}```" in docs
