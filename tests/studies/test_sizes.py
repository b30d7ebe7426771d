"""MT-Bench's smaller judges: the recorded tables follow from the stored judgments."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from mt_bench import sizes

from rocketeval.scoring.crossfit import table_of_lists

ROOT = Path(__file__).parents[2]


def recorded() -> str:
    """Return the recorded tables."""
    return (sizes.RECORDED / "sizes.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(not sizes.DATA.is_dir(), reason="MT-Bench is not next to this checkout")
def test_recorded_tables_follow_from_the_stored_judgments() -> None:
    """Every line is computed again, to the last digit."""
    assert "\n".join(sizes.study()[1]) + "\n" == recorded()


def test_docs_quote_the_recorded_tables() -> None:
    """The tables in the docs are the recorded ones."""
    docs = (ROOT / "docs" / "evidence" / "reproduction.md").read_text(encoding="utf-8")
    assert f"```\n{recorded()}```" in docs


def test_a_judge_is_least_sure_where_its_answers_are_near_one_half() -> None:
    """Doubt is the mean standard error of a response; unanswered items do not count."""
    answers = table_of_lists(
        ["sure", "sure", "unsure"], ["a", "b", "a"], [[0.99, 0.01], [1.0], [0.5, np.nan, 0.5]]
    )
    doubts = sizes.doubts(answers)
    assert doubts["unsure"] == pytest.approx(np.sqrt(0.5) / 2)
    assert doubts["sure"] < 0.05
