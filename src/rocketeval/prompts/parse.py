"""Read what an author wrote, strictly: anything unexpected is a named failure, never a guess."""

from __future__ import annotations

import re

from rocketeval.prompts.unreadable import Unreadable, quoted

NUMBERED = re.compile(r"(\d{1,9})[.)]\s+(.*\S)")
"""A line of a list, for the whole of it: its number and its text."""
FENCE = re.compile(r"```\w*")
"""A line around a list that is passed over."""
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
"""As most languages, Chinese and Japanese, and Arabic write it."""
_OPEN = re.compile(r"(?:what|how|why|which|whose|whom?)\b", re.IGNORECASE)
"""How an English question begins that nobody can answer by yes or no."""


def parse_checklist(text: str, *, min_items: int, max_items: int) -> tuple[str, ...]:
    """Return the items of a numbered list; ChecklistError says what is wrong with it.

    >>> parse_checklist("1. Is it short?\\n2. Is it right?", min_items=1, max_items=5)
    ('Is it short?', 'Is it right?')
    """
    items: list[str] = []
    for number, line in enumerate(map(str.strip, text.strip().splitlines()), 1):
        if line and not FENCE.fullmatch(line):
            items.append(_item(line, number, len(items) + 1))
    _check_count(items, min_items, max_items)
    _check_distinct(items)
    return tuple(items)


def is_question(text: str) -> bool:
    """Whether a text ends as a question does.

    >>> is_question("Is it short?"), is_question("It is short.")
    (True, False)
    """
    return text.endswith(_QUESTION_MARKS)


def is_open(question: str) -> bool:
    """Whether an English question begins as one that nobody can answer by yes or no.

    >>> is_open("How good is it?"), is_open("Is it good?")
    (True, False)
    """
    return _OPEN.match(question) is not None


def _item(line: str, number: int, expected: int) -> str:
    numbered = NUMBERED.fullmatch(line)
    if numbered is None:
        raise Unreadable(
            "a line is not a numbered question",
            f"line {number}, {quoted(line)}, is not a numbered question.",
        )
    if int(numbered[1]) != expected:
        raise Unreadable(
            "numbers out of order",
            f"number {numbered[1]} stands where {expected} should: line {number}, {quoted(line)}.",
        )
    question = numbered[2]
    if not is_question(question):
        raise Unreadable(
            "an item is not a question", f"item {expected} is not a question: {quoted(question)}."
        )
    if is_open(question):
        raise Unreadable(
            "an item is not a yes/no question",
            f"item {expected} cannot be answered by Yes or No: {quoted(question)}.",
        )
    return question


def _check_count(items: list[str], least: int, most: int) -> None:
    if not least <= len(items) <= most:
        raise Unreadable(
            "too few items" if len(items) < least else "too many items",
            f"there are {len(items)} items; {least} to {most} are wanted.",
        )


def _check_distinct(items: list[str]) -> None:
    seen: dict[str, int] = {}
    for number, item in enumerate(items, 1):
        folded = item.casefold()
        if folded in seen:
            raise Unreadable(
                "two items are the same",
                f"items {seen[folded]} and {number} are the same: {quoted(item)}.",
            )
        seen[folded] = number
