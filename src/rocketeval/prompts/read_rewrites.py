"""Read what an author writes in place of items, strictly: a line for each, or a named mistake."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from rocketeval.prompts.parse import FENCE, NUMBERED, is_question
from rocketeval.prompts.unreadable import Unreadable, quoted

DROP = "DROP"
"""What an author writes for an item that is to go."""


def read_rewrites(text: str, numbers: Sequence[int]) -> tuple[str | None, ...]:
    """Return the new question for each item of `numbers`, None where it is to be dropped.

    Unreadable, a ChecklistError, says what is wrong with the text.

    >>> read_rewrites("2. Is it short?\\n5. DROP", [2, 5])
    ('Is it short?', None)
    """
    lines = [line for line in map(str.strip, text.strip().splitlines()) if line]
    lines = [line for line in lines if not FENCE.fullmatch(line)]
    read = [_line(line, number) for line, number in zip(lines, numbers, strict=False)]
    if len(lines) != len(numbers):
        raise Unreadable(
            "too few lines" if len(lines) < len(numbers) else "too many lines",
            f"there are {len(lines)} lines; one is wanted for each of {_listed(numbers)}.",
        )
    return tuple(read)


def _line(line: str, expected: int) -> str | None:
    numbered = NUMBERED.fullmatch(line)
    if numbered is None:
        raise Unreadable(
            "a line is not a numbered question",
            f"{quoted(line)} is neither a numbered question nor {DROP} behind a number.",
        )
    if int(numbered[1]) != expected:
        raise Unreadable(
            "numbers out of order",
            f"number {numbered[1]} stands where {expected} should: {quoted(line)}.",
        )
    question = numbered[2]
    if question.casefold() == DROP.casefold():
        return None
    if not is_question(question):
        raise Unreadable(
            "an item is not a question",
            f"what stands for item {expected} is neither a question nor {DROP}: "
            f"{quoted(question)}.",
        )
    if any(unicodedata.category(mark) == "Cc" for mark in question):
        raise Unreadable("a control character", f"there is a control character in item {expected}.")
    return question


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))
