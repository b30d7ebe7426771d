"""Lint of weights, penalties, levels, checks and material."""

from __future__ import annotations

from typing import Any

import pytest

from rocketeval.items import Checklist, parse_item
from rocketeval.lint.static import check_checklists
from rocketeval.records import Query

GOOD: Any = {"text": "Does the response name the capital of France?", "weight": 2}


def kinds(*items: Any, query: Query | None = None) -> set[str]:
    """Return the kinds found in a checklist of these items."""
    made = Checklist.from_items("q", [parse_item(item) for item in items])
    found = check_checklists([made], {"q": query or Query("q", "Why?")})
    return {finding.kind for finding in found.findings}


LEVELS = {
    "overlap": ["1-3 errors", "3-5 errors", "more than 5 errors"],
    "apart": ["more than 5 errors", "3-5 errors", "1-2 errors"],
    "alike": ["The plan is clear", "the plans are clear", "excellent"],
    "reversed": ["excellent in every way", "fair", "fails to answer"],
}
CASES: dict[str, tuple[list[Any], set[str]]] = {
    "fine": ([GOOD], set()),
    "penalty for a fault": (
        [GOOD, {"text": "Does the response fail to name the date?", "weight": -2}],
        set(),
    ),
    "penalty for a merit": (
        [GOOD, {"text": "Does the response clearly explain the steps?", "weight": -2}],
        {"penalty_is_good"},
    ),
    "fault without a penalty": (
        [GOOD, "Does the response fail to name the date?"],
        {"yes_is_worse"},
    ),
    "zero": ([GOOD, {"text": "Does the response name a river?", "weight": 0}], {"no_weight"}),
    "outweighed": (
        [{**GOOD, "weight": 500}, {"text": "Does the response name a river?"}],
        {"outweighed"},
    ),
    "overlapping ranges": (
        [{"text": "How many errors does it have?", "levels": LEVELS["overlap"]}],
        {"levels_overlap"},
    ),
    "separate ranges": ([{"text": "How many errors are there?", "levels": LEVELS["apart"]}], set()),
    "levels alike": (
        [{"text": "How clear is the response?", "levels": LEVELS["alike"]}],
        {"levels_overlap"},
    ),
    "levels reversed": (
        [{"text": "How good is the response?", "levels": LEVELS["reversed"]}],
        {"levels_reversed"},
    ),
    "check that always passes": (
        [{"text": "Long enough", "check": {"fn": "words", "args": {"min": 0}}}],
        {"weak_check"},
    ),
    "pattern that is always found": (
        [{"text": "Has digits", "check": {"fn": "regex", "args": {"pattern": r"\d*"}}}],
        {"weak_check"},
    ),
    "real check": (
        [{"text": "Short", "check": {"fn": "words", "args": {"max": 50}}}],
        set(),
    ),
    "missing reference": (
        [{"text": "Does the response agree with the reference answer?", "uses": ["reference"]}],
        {"never_shown"},
    ),
    "check without its reference": (
        [{"text": "Right number", "check": {"fn": "number"}}],
        {"never_shown"},
    ),
    "check that needs no reference": (
        [{"text": "Right number", "check": {"fn": "number", "args": {"value": 3}}}],
        set(),
    ),
    "reference not shown": (
        ["Does the response agree with the reference answer?"],
        {"reference"},
    ),
}


@pytest.mark.parametrize(("items", "expected"), CASES.values(), ids=CASES)
def test_findings(items: list[Any], expected: set[str]) -> None:
    """Each rule finds its mistake and nothing else."""
    assert kinds(*items) == expected


def test_shown_reference_may_be_mentioned() -> None:
    """An item that uses the reference may speak of it."""
    item = {"text": "Does the response agree with the reference answer?", "uses": ["reference"]}
    assert kinds(item, query=Query("q", "Why?", reference="Because.")) == set()
