"""MT-Bench's ways to score: the recorded table follows from the stored judgments."""

from __future__ import annotations

from pathlib import Path

import pytest
from mt_bench import arms

ROOT = Path(__file__).parents[2]


def recorded() -> str:
    """Return the recorded table."""
    return (arms.RECORDED / "arms.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(not arms.DATA.is_dir(), reason="MT-Bench is not next to this checkout")
def test_recorded_table_follows_from_the_stored_judgments() -> None:
    """Every line is computed again, to the last digit."""
    assert "\n".join(arms.lines_of(arms.tables())) + "\n" == recorded()


def test_docs_quote_the_recorded_table() -> None:
    """The table in the docs is the recorded one."""
    docs = (ROOT / "docs" / "evidence" / "reproduction.md").read_text(encoding="utf-8")
    assert f"```\n{recorded()}```" in docs
