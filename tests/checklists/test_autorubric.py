"""Rubrics of AutoRubric in a JSON file; the criteria were written by autorubric 1.6.1."""

from __future__ import annotations

import json
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
    ],
)
def test_what_cannot_be_an_item_is_refused(
    tmp_path: Path, change: dict[str, Any], part: str
) -> None:
    """Uneven or unordered options would change their meaning."""
    (tmp_path / "rubric.json").write_text(json.dumps([{**CRITERIA[2], **change}]))
    with pytest.raises(ConfigError, match=part):
        read_checklist_file(tmp_path / "rubric.json")
