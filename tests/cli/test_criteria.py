"""`rocketeval audit --criteria`, which needs no config."""

from __future__ import annotations

from pathlib import Path

from rocketeval.criteria import criteria, groups
from support.in_process import cli


def test_every_criterion_is_listed_in_its_group(tmp_path: Path) -> None:
    """The four groups are listed in order, with the definition of each criterion."""
    shown = cli(tmp_path, "audit", "--criteria").stdout
    places = [f"\n{shown}".index(f"\n{group}\n") for group in groups()]
    assert places == sorted(places)
    for criterion in criteria().values():
        assert criterion.definition in shown


def test_grades_are_explained_with_the_flag(tmp_path: Path) -> None:
    """--grades needs --criteria; JSON always has the grades."""
    assert "1: Dull throughout." not in cli(tmp_path, "audit", "--criteria").stdout
    assert "1: Dull throughout." in cli(tmp_path, "audit", "--criteria", "--grades").stdout
    assert "Dull throughout." in cli(tmp_path, "audit", "--criteria", "--json").stdout
    assert "--criteria" in cli(tmp_path, "audit", "--grades", code=2).stderr
