"""Strict parsing of an author's text: anything unexpected is a named mistake, never a guess."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from rocketeval.errors import ChecklistError
from rocketeval.items import CheckCall, ItemKind, ParsedItem, parse_item
from rocketeval.prompts.render import (
    NO_REFERENCE,
    Template,
    definition_of,
    neutral_line,
    neutralize,
    render_history,
)
from rocketeval.records import Checklist, Query

LONGEST_QUOTE = 60
"""Maximum characters to quote from the author's text in a reason."""


class Unreadable(ChecklistError):
    """An author's text that cannot be used; the author is asked again, so users never see this."""

    def __init__(self, mistake: str, message: str) -> None:
        super().__init__(message)
        self.mistake = mistake
        """The category of the mistake."""


def quoted(text: str) -> str:
    """Return the beginning of a text in quotes, for a reason.

    >>> quoted("Sorry."), len(quoted("x" * 1000))
    ("'Sorry.'", 62)
    """
    return repr(text[:LONGEST_QUOTE])


NUMBERED = re.compile(r"(\d{1,9})[.)]\s+(.*\S)")
"""A whole line of a list: its number and its text."""
FENCE = re.compile(r"```\w*")
"""A code fence around a list, which is ignored."""
_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
"""Question marks of most languages, of Chinese and Japanese, and of Arabic."""
_OPEN = re.compile(r"(?:what|how|why|which|whose|whom?)\b", re.IGNORECASE)
"""The start of an English question that cannot be answered with yes or no."""


def parse_checklist(text: str, *, min_items: int, max_items: int) -> tuple[str, ...]:
    """Return the items of a numbered list; raise ChecklistError with the mistake.

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


HEAVIEST = 10.0
"""Largest weight of an item, or of a penalty, that an author may give."""


def parse_rubric(
    text: str,
    *,
    allowed: Collection[str],
    min_items: int,
    max_items: int,
    bind: Callable[[CheckCall], CheckCall],
) -> tuple[ParsedItem, ...]:
    """Return the items of a JSON list of objects; raise ChecklistError with the mistake.

    `allowed` names the optional fields, and `penalty` if weights may be negative. `bind` raises
    ValueError for a check that does not exist or has wrong arguments.
    """
    fenced = _FENCED.fullmatch(text.strip())
    try:
        rows = orjson.loads(fenced[1] if fenced else text)
    except orjson.JSONDecodeError as error:
        raise Unreadable("not JSON", f"it is not JSON ({error}): {quoted(text.strip())}.") from None
    if not isinstance(rows, list):
        raise Unreadable("not a JSON list", "it is not a JSON list of objects.")
    items = [_rubric_item(row, number, allowed, bind) for number, row in enumerate(rows, 1)]
    _check_count([item.text for item in items], min_items, max_items)
    _check_distinct([item.text for item in items])
    return tuple(items)


def _rubric_item(
    row: object, number: int, allowed: Collection[str], bind: Callable[[CheckCall], CheckCall]
) -> ParsedItem:
    if not isinstance(row, dict):
        raise Unreadable("an item is not an object", f"item {number} is not a JSON object.")
    extra = [name for name in row if name != "text" and name not in allowed]
    if extra:
        raise Unreadable(
            "a field that was not asked for", f"item {number} has the field {extra[0]!r}."
        )
    try:
        item = parse_item(row)
        if item.detail.check is not None:
            bind(item.detail.check)
    except ValueError as error:
        raise Unreadable("a wrong value in an item", f"item {number}: {error}") from None
    weight = item.detail.weight
    if not 0.0 < abs(weight) <= HEAVIEST or (weight < 0 and "penalty" not in allowed):
        raise Unreadable(
            "a weight out of range",
            f"item {number} has weight {weight:g}; it must be above 0 and at most {HEAVIEST:g}"
            + (", or its negative." if "penalty" in allowed else "."),
        )
    if item.detail.kind is ItemKind.YES_NO:
        _refuse_open(item.text, number)
    if has_unseen_marks(item.text):
        raise Unreadable("a control character", f"there is a control character in item {number}.")
    return item


def _refuse_open(question: str, number: int) -> None:
    """Raise Unreadable unless a text is a yes/no question."""
    if not is_question(question):
        raise Unreadable(
            "an item is not a question", f"item {number} is not a question: {quoted(question)}."
        )
    if is_open(question):
        raise Unreadable(
            "an item is not a yes/no question",
            f"item {number} cannot be answered by Yes or No: {quoted(question)}.",
        )


def is_question(text: str) -> bool:
    """Return whether a text ends with a question mark.

    >>> is_question("Is it short?"), is_question("It is short.")
    (True, False)
    """
    return text.endswith(_QUESTION_MARKS)


def is_open(question: str) -> bool:
    """Return whether an English question starts like one without a yes/no answer.

    >>> is_open("How good is it?"), is_open("Is it good?")
    (True, False)
    """
    return _OPEN.match(question) is not None


def _numbered_text(line: str, expected: int, where: str, problem: str) -> str:
    """Return the text after a line's number; `where` and `problem` are shown to the author."""
    numbered = NUMBERED.fullmatch(line)
    if numbered is None:
        raise Unreadable("a line is not a numbered question", problem)
    if int(numbered[1]) != expected:
        raise Unreadable(
            "numbers out of order", f"number {numbered[1]} stands where {expected} should: {where}."
        )
    return numbered[2]


def _item(line: str, number: int, expected: int) -> str:
    where = f"line {number}, {quoted(line)}"
    question = _numbered_text(line, expected, where, f"{where}, is not a numbered question.")
    _refuse_open(question, expected)
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


_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories of control characters, invisible format characters, surrogates, and line
separators."""


def has_unseen_marks(text: str) -> bool:
    """Return whether a text contains line breaks or invisible characters.

    >>> has_unseen_marks("Is it kind?"), has_unseen_marks("Is it \\u202ekind?")
    (False, True)
    """
    return any(unicodedata.category(mark) in _UNSEEN for mark in text)


_FENCED = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)
_FIELDS = ("question", "yes_is_better", "fits", "repeats")


@dataclass(frozen=True, slots=True)
class QuestionVerdict:
    """An author's verdict on one question."""

    yes_is_better: bool
    """Whether yes is the better answer."""
    fits: bool
    """Whether it asks about its dimension, as defined."""
    repeats: int | None
    """Number of an earlier question that asks the same; None if it is new."""


def read_verdicts(text: str, count: int) -> tuple[QuestionVerdict, ...]:
    """Return the verdicts on `count` questions; raise ChecklistError with the mistake.

    >>> text = '[{"question": 1, "yes_is_better": true, "fits": false, "repeats": null}]'
    >>> read_verdicts(text, 1)
    (QuestionVerdict(yes_is_better=True, fits=False, repeats=None),)
    """
    fenced = _FENCED.fullmatch(text.strip())
    try:
        rows = orjson.loads(fenced[1] if fenced else text)
    except orjson.JSONDecodeError as error:
        raise Unreadable("not JSON", f"it is not JSON ({error}): {quoted(text.strip())}.") from None
    if not isinstance(rows, list):
        raise Unreadable("not a JSON list", "it is not a JSON list of objects.")
    if len(rows) != count:
        raise Unreadable(
            "too few verdicts" if len(rows) < count else "too many verdicts",
            f"there are {len(rows)} verdicts; {count} questions were given.",
        )
    return tuple(_verdict(row, number) for number, row in enumerate(rows, 1))


def _verdict(row: Any, number: int) -> QuestionVerdict:
    if not isinstance(row, dict) or set(row) != set(_FIELDS):
        raise Unreadable(
            "a verdict with other fields",
            f"verdict {number} is not an object with exactly {', '.join(_FIELDS)}: "
            f"{quoted(str(row))}.",
        )
    if row["question"] is True or row["question"] != number:
        raise Unreadable(
            "verdicts out of order",
            f"the verdict on question {quoted(str(row['question']))} stands where {number} should.",
        )
    for name in ("yes_is_better", "fits"):
        if not isinstance(row[name], bool):
            raise _wrong_value(f"{name} of question {number} is neither true nor false", row[name])
    earlier = row["repeats"]
    if earlier is not None and not (type(earlier) is int and 1 <= earlier < number):
        raise _wrong_value(
            f"repeats of question {number} is neither null nor the number of an earlier question",
            earlier,
        )
    return QuestionVerdict(row["yes_is_better"], row["fits"], earlier)


def _wrong_value(problem: str, value: Any) -> Unreadable:
    return Unreadable("a wrong value in a verdict", f"{problem}: {quoted(str(value))}.")


DROP = "DROP"
"""What an author writes to drop an item."""


def read_rewrites(text: str, numbers: Sequence[int]) -> tuple[str | None, ...]:
    """Return the new question for each item of `numbers`; None to drop it.

    Raises Unreadable, a ChecklistError, with the mistake.

    >>> read_rewrites("2. Is it short?\\n5. DROP", [2, 5])
    ('Is it short?', None)
    """
    lines = [line for line in map(str.strip, text.strip().splitlines()) if line]
    lines = [line for line in lines if not FENCE.fullmatch(line)]
    read = [_line(line, number) for line, number in zip(lines, numbers, strict=False)]
    if len(lines) != len(numbers):
        raise Unreadable(
            "too few lines" if len(lines) < len(numbers) else "too many lines",
            f"there are {len(lines)} lines; one is wanted for each of "
            f"{', '.join(map(str, numbers))}.",
        )
    return tuple(read)


def _line(line: str, expected: int) -> str | None:
    problem = f"{quoted(line)} is neither a numbered question nor {DROP} behind a number."
    question = _numbered_text(line, expected, quoted(line), problem)
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


NEEDS = ("history", "query", "reference", "about", "checklist", "flagged", "numbers")
"""Placeholders of the template."""
EVERY_QUERY = "(none: the checklist is used for many queries, and every question must fit them all)"
NO_SUBJECT = "(what decides the quality of a response)"


def render_rewrite_request(
    template: Template,
    query: Query | None,
    checklist: Checklist,
    wrong: Mapping[int, Sequence[str]],
) -> str:
    """Return the prompt; `wrong` lists the problems by item number from 1.

    Without a query, the checklist is shared by all queries.
    """
    history, _ = render_history(query.history if query else ())
    reference = query.reference if query else None
    return template.fill(
        {
            "history": history,
            "query": neutralize(query.text).text if query else EVERY_QUERY,
            "reference": NO_REFERENCE if reference is None else neutralize(reference).text,
            "about": NO_SUBJECT if checklist.about is None else definition_of(checklist.about).text,
            "checklist": "\n".join(
                _numbered(checklist, number) for number in range(1, len(checklist.items) + 1)
            ),
            "flagged": "\n".join(
                "\n".join(
                    [
                        _numbered(checklist, number),
                        *(f"   - {neutral_line(why)}" for why in whys),
                    ]
                )
                for number, whys in wrong.items()
            ),
            "numbers": ", ".join(map(str, wrong)),
        }
    )


def _numbered(checklist: Checklist, number: int) -> str:
    return f"{number}. {neutral_line(checklist.items[number - 1])}"
