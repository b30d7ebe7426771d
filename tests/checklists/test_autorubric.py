"""Rubrics of AutoRubric in a JSON file; the criteria were written by autorubric 1.6.1."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from rocketeval.checklists.checklist_file import read_checklist_file
from rocketeval.errors import ConfigError
from rocketeval.items import ItemKind

CRITERIA: list[dict[str, Any]] = [
    {"weight": 10.0, "requirement": "States the date", "name": "facts", "scale_type": "ordinal"},
    {"weight": -15.0, "requirement": "Contains errors", "scale_type": "ordinal"},
    {
        "weight": 3.0,
        "requirement": "How clear is it?",
        "name": "clarity",
        "options": [
            {"label": "Good", "value": 1.0, "na": False},
            {"label": "Bad", "value": 0.0, "na": False},
            {"label": "Ok", "value": 0.5, "na": False},
            {"label": "No text", "value": 0.0, "na": True},
        ],
        "scale_type": "ordinal",
    },
]


@pytest.mark.parametrize(
    "content", [CRITERIA, {"rubric": CRITERIA}, {"q": CRITERIA}], ids=["list", "object", "by query"]
)
def test_criteria_are_items(tmp_path: Path, content: object) -> None:
    """Weights, penalties, ordered options and names are kept, in every layout."""
    (tmp_path / "rubric.json").write_text(json.dumps(content))
    file = read_checklist_file(tmp_path / "rubric.json")
    entry = file.for_all or file.queries["q"]
    made = entry.checklist("q")
    assert made.items[0] == "Does the response meet this criterion? States the date"
    assert [detail.weight for detail in made.every_detail] == [10.0, -15.0, 3.0]
    graded = made.every_detail[2]
    assert (graded.kind, graded.levels, graded.na) == (ItemKind.SCALE, ("Bad", "Ok", "Good"), True)
    assert made.every_detail[0].tags == ("facts",)


def two_options(value: float) -> list[dict[str, Any]]:
    """Two levels, the second with the value 2."""
    return [{"label": "a", "value": value}, {"label": "b", "value": 2}]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        (
            {
                "options": [
                    {"label": "a", "value": 0},
                    {"label": "b", "value": 1},
                    {"label": "c", "value": 9},
                ]
            },
            "evenly",
        ),
        ({"options": [{"label": "a"}]}, "`label` and a `value`"),
        ({"scale_type": "nominal"}, "not ordered"),
        ({"wieght": 1}, "wieght"),
        ({"requirement": None}, "criterion 1: `requirement` must be a text"),
        ({"requirement": " "}, "criterion 1: `requirement` must be a text"),
        ({"options": two_options(math.nan)}, "not a finite number"),
        ({"options": two_options(2)}, "the same value"),
        ({"options": two_options(10**400)}, "a `value`, which is a number"),
    ],
)
def test_what_cannot_be_an_item_is_refused(
    tmp_path: Path, change: dict[str, Any], part: str
) -> None:
    """Uneven or unordered options would change their meaning."""
    (tmp_path / "rubric.json").write_text(json.dumps([{**CRITERIA[2], **change}]))
    with pytest.raises(ConfigError, match=part):
        read_checklist_file(tmp_path / "rubric.json")


def test_aggregation_is_noted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It has no meaning with one judge, and is not dropped silently."""
    (tmp_path / "rubric.json").write_text(json.dumps([{**CRITERIA[0], "aggregation": "min"}]))
    read_checklist_file(tmp_path / "rubric.json")
    assert "`aggregation` of 1 criterion is not used" in caplog.text


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.json", '{"q1": ["a?"], "q1": ["b?"]}'),
        ("a.json", '[{"text": "a?", "q1": 1, "q1": 2}]'),
        ("a.csv", 'query_id,item,details\nq,a?,"{""q1"": 1, ""q1"": 2}"\n'),
    ],
)
def test_a_key_that_occurs_twice_is_refused(tmp_path: Path, name: str, content: str) -> None:
    """As in YAML: the first value would be lost."""
    (tmp_path / name).write_text(content)
    with pytest.raises(ConfigError, match="the key 'q1' twice"):
        read_checklist_file(tmp_path / name)
