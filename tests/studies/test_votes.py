"""MT-Bench's scores learned from votes: the recorded table follows from the stored judgments."""

from __future__ import annotations

from pathlib import Path

import pytest
from mt_bench import votes

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "studies" / "mt_bench" / "recorded"


def recorded() -> str:
    """Return the recorded table."""
    return (RECORDED / "votes.txt").read_text(encoding="utf-8")


@pytest.mark.skipif(not votes.DATA.is_dir(), reason="MT-Bench is not next to this checkout")
def test_recorded_rows_follow_from_the_stored_judgments() -> None:
    """The rows that need no fit of a scorer are computed again, to the last digit."""
    study = votes.Study.read(RECORDED / "judgments" / "first_turn_float32.parquet")
    rows = votes.rows_without_a_fit(study)
    assert None not in rows.values()
    lines = {
        line[: votes.WIDTH].strip(): line[votes.WIDTH :].strip() for line in recorded().splitlines()
    }
    assert {name: lines[name] for name in rows} == {
        name: votes.percent(found) for name, found in rows.items()
    }
    assert recorded().startswith(f"{len(study.clusters)} queries, {len(study.votes)} votes\n")


@pytest.mark.skipif(not votes.DATA.is_dir(), reason="MT-Bench is not next to this checkout")
def test_recorded_rows_of_learned_scores_follow_too() -> None:
    """Scorers are fitted again, except for the rows "new", which take minutes."""
    study = votes.Study.read(RECORDED / "judgments" / "first_turn_float32.parquet")
    lines = recorded().splitlines()
    for arm in votes.ARMS:
        assert votes.learned_row(study, arm)[0] in lines


def test_docs_quote_the_recorded_table() -> None:
    """The table in the docs is the recorded one."""
    docs = (ROOT / "docs" / "evidence" / "reproduction.md").read_text(encoding="utf-8")
    assert f"```\n{recorded()}```" in docs
