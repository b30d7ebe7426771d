"""Strict parsing of verdicts on questions: one each, in order, nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rocketeval.errors import ChecklistError
from rocketeval.prompts.parse import QuestionVerdict, read_verdicts


def row(number: Any = 1, **changes: Any) -> dict[str, Any]:
    """A valid verdict with changes."""
    return {"question": number, "yes_is_better": True, "fits": True, "repeats": None, **changes}


def test_one_verdict_per_question() -> None:
    """With or without a code fence."""
    text = json.dumps([row(1), row(2, fits=False, repeats=1)])
    wanted = (QuestionVerdict(True, True, None), QuestionVerdict(True, False, 1))
    assert read_verdicts(text, 2) == wanted
    assert read_verdicts(f"```json\n{text}\n```\n", 2) == wanted


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([], "0 verdicts; 2 questions"),
        ([row(1), row(2), row(3)], "3 verdicts"),
        ({"1": row(1), "2": row(2)}, "not a JSON list"),
        ([row(2), row(1)], "'2' stands where 1 should"),
        ([row(True), row(2)], "stands where 1 should"),
        ([row(1), "keep"], "verdict 2 is not an object"),
        ([row(1), row(2, why="so")], "verdict 2 is not an object with exactly"),
        ([row(1), {"question": 2}], "verdict 2 is not an object with exactly"),
        ([row(1), row(2, fits="true")], "fits of question 2 is neither true nor false"),
        ([row(1), row(2, yes_is_better=1)], "yes_is_better of question 2"),
        ([row(1), row(2, repeats=2)], "repeats of question 2"),
        ([row(1), row(2, repeats=0)], "repeats of question 2"),
        ([row(1), row(2, repeats=True)], "repeats of question 2"),
        ([row(1), row(2, repeats=[1])], "repeats of question 2"),
        ([row(1, repeats=2), row(2)], "repeats of question 1"),
    ],
)
def test_anything_else_is_a_named_mistake(rows: Any, problem: str) -> None:
    """For two questions."""
    with pytest.raises(ChecklistError) as refused:
        read_verdicts(json.dumps(rows), 2)
    assert problem in refused.value.message


@pytest.mark.parametrize("text", ["", "keep all", "Here you go: []", "[" * 100_000, "[1,", "\x00"])
def test_invalid_json_is_quoted_briefly(text: str) -> None:
    """The reason goes to the author, so it must stay short."""
    with pytest.raises(ChecklistError, match="it is not JSON") as refused:
        read_verdicts(text, 1)
    assert len(refused.value.message) < 300
