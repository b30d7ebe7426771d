"""The taxonomy of criteria."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketeval.criteria import (
    GRADES,
    OWN,
    CriterionConfig,
    by_group,
    criteria,
    criterion_from,
    groups,
)
from rocketeval.errors import ConfigError


def test_every_criterion_has_a_definition_and_five_grades() -> None:
    """Grades are distinct, and names are valid in a config."""
    assert len(criteria()) >= 20
    for name, criterion in criteria().items():
        assert criterion.name == name == name.lower()
        assert name.replace("_", "").isalpha()
        assert len(set(criterion.grades)) == len(criterion.grades) == GRADES
        assert all(grade.strip() == grade and grade for grade in criterion.grades)
        assert criterion.definition.startswith(("Whether", "How"))
        assert criterion.definition.endswith(".")


def test_there_are_four_groups() -> None:
    """Each group has members."""
    assert groups() == ("content", "engagement", "integrity", "relevance")
    assert {criterion.group for criterion in criteria().values()} == set(groups())


def test_rubric_lists_the_grades_from_one_to_five() -> None:
    """The rubric has a title line and five numbered grades."""
    lines = criteria()["logical_correctness"].rubric.splitlines()
    assert lines[0].startswith("Logical correctness: Whether")
    assert [line.partition(":")[0] for line in lines[1:]] == ["1", "2", "3", "4", "5"]


def test_users_criterion_is_accepted() -> None:
    """An unknown name is an error that names the nearest one."""
    own = CriterionConfig(name="wit", definition="Is it funny?", grades=("a", "b", "c", "d", "e"))
    assert criterion_from(own).group == OWN
    assert criterion_from("fluency") is criteria()["fluency"]
    with pytest.raises(ConfigError, match="'fluenci'") as refused:
        criterion_from("fluenci")
    assert "fluency" in refused.value.hint


def test_figures_are_averaged_by_group() -> None:
    """Groups are in the order of the taxonomy; unknown criteria count as the user's own."""
    figures = {"wit": 1.0, "humour": 3.0, "relevance": 5.0, "fluency": 4.0, "conciseness": 2.0}
    assert by_group(figures) == {"content": 3.0, "relevance": 5.0, OWN: 2.0}
    assert list(by_group(figures)) == ["content", "relevance", OWN]
    assert by_group({}) == {}


@given(st.dictionaries(st.sampled_from([*criteria(), "wit", "x"]), st.floats(1, 5)))
def test_group_means_cover_all_figures(figures: dict[str, float]) -> None:
    """Every group with members has a mean within their range."""
    found = by_group(figures)
    known = criteria()
    for group in (*groups(), OWN):
        own = [
            value
            for name, value in figures.items()
            if (known[name].group if name in known else OWN) == group
        ]
        assert (group in found) == bool(own)
        if own:
            assert min(own) - 1e-9 <= found[group] <= max(own) + 1e-9
