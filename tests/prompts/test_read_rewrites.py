"""Strict parsing of rewritten items, with named mistakes."""

from __future__ import annotations

import pytest

from rocketeval.errors import ChecklistError
from rocketeval.prompts.parse import read_rewrites


def test_questions_and_drops_in_order() -> None:
    """By the items' own numbers; code fences, blank lines and closing brackets are accepted."""
    text = "```text\n2) Is it short?\n\n5. drop\n7. Is `DROP` explained?\n```"
    assert read_rewrites(text, [2, 5, 7]) == ("Is it short?", None, "Is `DROP` explained?")
    assert read_rewrites("3. \u6b63\u3057\u3044\u3067\u3059\u304b\uff1f", [3]) == (
        "\u6b63\u3057\u3044\u3067\u3059\u304b\uff1f",
    )


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("", "there are 0 lines; one is wanted for each of 2, 5"),
        ("2. Is it short?", "there are 1 lines"),
        ("2. Is it short?\n5. DROP\n6. Is it?", "there are 3 lines"),
        ("Here is the list:\n2. Is it short?\n5. DROP", "'Here is the list:' is neither"),
        ("1. Is it short?\n5. DROP", "number 1 stands where 2 should"),
        ("5. DROP\n2. Is it short?", "number 5 stands where 2 should"),
        ("2. It is short.\n5. DROP", "item 2 is neither a question nor DROP: 'It is short.'"),
        ("2. DROP it\n5. DROP", "neither a question nor DROP"),
        ("2. Is it \x1b[2Jshort?\n5. DROP", "a control character in item 2"),
        ("2. Is it " + "very " * 200 + "short.\n5. DROP", "neither a question"),
    ],
)
def test_each_mistake_is_named(text: str, mistake: str) -> None:
    """Too few or too many lines, other numbers, statements, text around the list."""
    with pytest.raises(ChecklistError, match=r".") as raised:
        read_rewrites(text, [2, 5])
    assert mistake in raised.value.message
    assert len(raised.value.message) < 200
