"""`rocketeval criteria` lists the taxonomy."""

from __future__ import annotations

from pathlib import Path

from rocketeval.criteria import criteria, groups
from support.in_process import cli


def test_every_criterion_is_listed_in_its_group(tmp_path: Path) -> None:
    """Four groups, each with its members and what they mean."""
    shown = cli(tmp_path, "criteria").stdout
    places = [shown.index(f"{group} ") for group in groups()]
    assert places == sorted(places)
    for criterion in criteria().values():
        assert criterion.definition in shown


def test_one_group_can_be_asked_for(tmp_path: Path) -> None:
    """With what the grades mean, if wanted; an unknown group names those there are."""
    shown = cli(tmp_path, "criteria", "--group", "engagement").stdout
    assert "empathy" in shown
    assert "fluency" not in shown
    assert "Dull throughout." not in shown
    graded = cli(tmp_path, "criteria", "--group", "engagement", "--grades").stdout
    assert "1: Dull throughout." in graded
    assert "'integrity'" in cli(tmp_path, "criteria", "--group", "x", code=2).stderr
