"""Strict parsing of an author's list: every deviation is a named failure."""

from __future__ import annotations

import pytest

from rocketeval.errors import ChecklistError
from rocketeval.prompts.parse import parse_checklist

TWELVE = "\n".join(f"{number}. Is point {number} made?" for number in range(1, 13))


def parse(text: str, least: int = 1, most: int = 20) -> tuple[str, ...]:
    """The items of `text`."""
    return parse_checklist(text, min_items=least, max_items=most)


@pytest.mark.parametrize(
    "text",
    [
        "1. Is it short?\n2. Is it right?",
        "1) Is it short?\n2) Is it right?",
        "\n\n1. Is it short?\n\n2. Is it right?\n\n",
        "  1.  Is it short?  \r\n\t2. Is it right?\r\n",
        "```\n1. Is it short?\n2. Is it right?\n```",
        "```text\n1. Is it short?\n2. Is it right?\n```",
    ],
)
def test_numbered_list_is_parsed(text: str) -> None:
    """Either number style, blank lines, spaces, line endings and a code fence."""
    assert parse(text) == ("Is it short?", "Is it right?")


def test_items_keep_their_order() -> None:
    """Item 10 comes after item 9."""
    assert parse(TWELVE) == tuple(f"Is point {number} made?" for number in range(1, 13))


@pytest.mark.parametrize(
    "question",
    [
        "天空是蓝色的吗\uff1f",
        "هل السماء زرقاء؟",
        "Is 1. an item?",
        "When asked why, does it say how?",
    ],
)
def test_questions_in_other_scripts_are_questions(question: str) -> None:
    """Other question marks are accepted; numbers inside an item are text."""
    assert parse(f"1. {question}") == (question,)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "there are 0 items; 2 to 3 are wanted"),
        ("1. Is it?", "there are 1 items; 2 to 3 are wanted"),
        (TWELVE, "there are 12 items; 2 to 3 are wanted"),
        ("Here is the list:\n1. Is it?", "line 1, 'Here is the list:', is not a numbered question"),
        ("1. Is it?\n2. Is it so?\nDone!", "line 3, 'Done!', is not a numbered question"),
        ("- Is it?\n- Is it so?", "'- Is it?', is not a numbered question"),
        ("**1.** Is it?", "is not a numbered question"),
        ("1.Is it?", "'1.Is it?', is not a numbered question"),
        ("1.", "'1.', is not a numbered question"),
        ("<think>Hm.</think>\n1. Is it?", "is not a numbered question"),
        ("I cannot help with that.", "is not a numbered question"),
        ("1. Is it?\n3. Is it so?", "number 3 stands where 2 should: line 2, '3. Is it so?'"),
        ("0. Is it?\n1. Is it so?", "number 0 stands where 1 should"),
        ("1. Is it?\n1. Is it so?", "number 1 stands where 2 should"),
        ("1. Is it?\n2. It is so.", "item 2 is not a question: 'It is so.'"),
        ("1. Is it? Yes or no\n2. Is it so?", "item 1 is not a question"),
        ("1. Is it?\n2. What is it?", "item 2 cannot be answered by Yes or No: 'What is it?'"),
        ("1. HOW is it?\n2. Is it?", "item 1 cannot be answered by Yes or No"),
        ("1. Is it?\n2. IS IT?", "items 1 and 2 are the same: 'IS IT?'"),
        ("9" * 5000 + ". Is it?", "is not a numbered question"),
    ],
)
def test_each_failure_is_named(text: str, problem: str) -> None:
    """Nothing is repaired or guessed: the message names the line, the number or the item."""
    with pytest.raises(ChecklistError) as refused:
        parse(text, 2, 3)
    assert problem in refused.value.message


def test_a_long_line_is_cut_in_the_message() -> None:
    """The reason goes to the author and into reports, so it stays short."""
    with pytest.raises(ChecklistError) as refused:
        parse("x" * 10_000)
    assert len(refused.value.message) < 120
