"""Checklists with weights, levels and checks survive export and editing."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest

from rocketeval.checklists.checklist_file import read_checklist_file
from rocketeval.checklists.export import write_checklists
from rocketeval.checklists.rubric import RubricOptions, bind_checklist
from rocketeval.errors import ChecklistError, ConfigError
from rocketeval.items import Checklist, parse_item
from rocketeval.records import Query

ITEMS: list[Any] = [
    "Is it short?",
    {"text": "Is it rude?", "weight": -2.5, "tags": ["tone"]},
    {"text": "How clear?", "levels": ["=bad", "ok", "good"], "na": True, "uses": ["context"]},
    {"text": "Has 3 words", "check": {"fn": "words", "args": {"min": 3}}},
]


@pytest.mark.parametrize("ending", ["yaml", "csv"])
@pytest.mark.parametrize("grouped", [False, True])
def test_round_trip(tmp_path: Path, ending: str, grouped: bool) -> None:
    """Exported and read again, every detail is the same."""
    items = [parse_item(item) for item in ITEMS]
    if grouped:
        items = [
            parse_item({**_object(item), "group": f"g{n // 2}"}) for n, item in enumerate(ITEMS)
        ]
    made = Checklist.from_items("q", items, "file")
    other = Checklist.from_items("r", items[::-1], "file")
    path = tmp_path / f"lists.{ending}"
    queries = {name: Query(name, "Why?") for name in ("q", "r")}
    write_checklists({"q": made, "r": other}, queries, path)
    found = read_checklist_file(path)
    assert found.queries["q"].checklist("q") == made
    assert sorted(found.queries["r"].checklist("r").items) == sorted(other.items)


@pytest.mark.parametrize("ending", ["yaml", "csv"])
@pytest.mark.parametrize("weight", [1 / 3, -2 / 7, 0.1 + 0.2, 2.0, 2.5, 123456.5])
def test_weights_keep_every_digit(tmp_path: Path, ending: str, weight: float) -> None:
    """Exported and read again, a checklist has the same weights, and thus the same scores."""
    items = [parse_item({"text": "Is it short?", "weight": weight}), parse_item("Is it kind?")]
    made = Checklist.from_items("q", items, "file")
    path = tmp_path / f"lists.{ending}"
    write_checklists({"q": made}, {"q": Query("q", "Why?"), "r": Query("r", "How?")}, path)
    found = read_checklist_file(path).queries["q"].checklist("q")
    assert found.detail(0).weight == weight
    assert found.scoring_hash == made.scoring_hash


def test_short_weights_stay_short(tmp_path: Path) -> None:
    """A whole weight has no point in a CSV file."""
    items = [parse_item({"text": f"Is it {n}?", "weight": n}) for n in (2, -3, 0.25)]
    path = tmp_path / "lists.csv"
    write_checklists({"q": Checklist.from_items("q", items)}, {}, path)
    with path.open(newline="") as lines:
        assert [row["weight"] for row in csv.DictReader(lines)] == ["2", "'-3", "0.25"]


def _object(item: Any) -> dict[str, Any]:
    return item if isinstance(item, dict) else {"text": item}


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("for_all: {items: [{text: x, weight: heavy}]}", "weight must be a number"),
        ("for_all: {items: [{text: x, check: {fn: 'os:system'}}]}", "Python function"),
        ("for_all: {items: [{weight: 2}]}", "'text' is missing"),
        (
            "for_all: {items: [{text: x, check: {fn: json_schema, args: {schema: {properties: "
            "{1: {}}}}}}]}",
            "the key 1 must be a text",
        ),
    ],
)
def test_mistakes_in_a_file_are_named(tmp_path: Path, content: str, part: str) -> None:
    """A wrong item of a file is refused with its field."""
    (tmp_path / "lists.yaml").write_text(content)
    with pytest.raises(ConfigError, match=part):
        read_checklist_file(tmp_path / "lists.yaml")


@pytest.mark.parametrize("ending", ["json", "csv"])
def test_deep_files_are_a_message(tmp_path: Path, ending: str) -> None:
    """A file that is nested too deeply is refused, not a traceback."""
    deep = '{"a":' * 100_000 + "1" + "}" * 100_000
    quoted = deep.replace('"', '""')
    text = deep if ending == "json" else f'query_id,item,details\nq,Is it?,"{quoted}"\n'
    path = tmp_path / f"rubric.{ending}"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"nested too deeply|not valid CSV"):
        read_checklist_file(path)


def test_a_wrong_item_is_the_only_mistake(tmp_path: Path) -> None:
    """The only item of a list is wrong: the list is not called empty as well."""
    path = tmp_path / "rubric.yaml"
    path.write_text("for_all: {items: [{text: Fine, weight: high}]}")
    with pytest.raises(ConfigError, match="weight must be a number") as found:
        read_checklist_file(path)
    assert len(found.value.message.splitlines()) == 2
    path.write_text("for_all: {items: []}")
    with pytest.raises(ConfigError, match="no items"):
        read_checklist_file(path)


def test_question_in_braces_needs_no_quotes(tmp_path: Path) -> None:
    """A question mark at the end of a text is part of the text."""
    path = tmp_path / "rubric.yaml"
    path.write_text("for_all: {items: [{text: Is it right?, weight: 2}]}")
    found = read_checklist_file(path).for_all
    assert found
    assert "Is it right?" in str(found.items)


def test_binding_shows_only_what_exists() -> None:
    """`shows` adds material that the query has, and context in any case; checks use none."""
    made = Checklist.from_items("q", [parse_item(item) for item in (ITEMS[0], ITEMS[3])])
    options = RubricOptions(shows=("reference", "context", "system"))
    bound = bind_checklist(made, Query("q", "Why?", system="Be kind."), options)
    assert [detail.uses for detail in bound.every_detail] == [("system", "context"), ()]
    assert bind_checklist(Checklist("q", ("a",)), Query("q", "x"), RubricOptions()).details is None


def test_unknown_check_names_the_item() -> None:
    """Neither library nor config has it."""
    made = Checklist.from_items("q", [parse_item({"text": "x", "check": {"fn": "is_polite"}})])
    with pytest.raises(ChecklistError, match="item 1: there is no check 'is_polite'"):
        bind_checklist(made, Query("q", "x"), RubricOptions())
