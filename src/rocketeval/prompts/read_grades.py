"""Parsing of grades and answers from a judge's text; anything unclear is unreadable."""

from __future__ import annotations

import json
import re
from typing import Any

from rocketeval.records import Answer, Status

_NAMED = re.compile(r"(?<![^\W_])score[\"'*_]*+\s*+[:=][\"'*_\[(\s]*+(?=\d)", re.IGNORECASE)
_NUMBER = re.compile(
    r"(\d++(?:\.\d++)?+)(?:\s*+(?:/|out of)\s*+(\d++(?:\.\d++)?+))?+"
    r"(?!\s*+(?:-|\u2013|to\b|or\b|/)\s*+\d|[.,]\d|\s*+%)"
)
_MARK = re.compile(
    r"(?:^[^\w\n]*+|(?<![^\W_])(?=q))q?(\d{1,4})[\"'*]*+[^\S\n]*+[.:)]",
    re.IGNORECASE | re.MULTILINE,
)
_ENDS = re.compile(r"[\"'*_\])\s]*+\}[\s`]*+\Z")
_OBJECT = re.compile(r"\{\s*+[\"']")
_FIRST = re.compile(r"\W*+(yes|no)\b(?!\s*+(?:/|\||or\b))", re.IGNORECASE)
_WORD = re.compile(r"\b(yes|no)\b", re.IGNORECASE)
_BARE = re.compile(r"[^\w\n]*+(yes|no)[^\w\n]*+(?:\n|\Z)", re.IGNORECASE)
_HALF_WORD = re.compile(r"(?:\w+|\d[\d.,/%\u2013-]*)\Z")

_CUT = _HALF_WORD.pattern
SCORE_RULES = f"{_OBJECT.pattern} {_ENDS.pattern} {_NAMED.pattern} {_NUMBER.pattern} {_CUT}"
ANSWER_RULES = f"{_MARK.pattern} {_FIRST.pattern} {_WORD.pattern} {_BARE.pattern} {_CUT}"
"""Parsing rules, part of the judge's fingerprint because they decide what an answer is."""


def read_score(text: str, low: float = 1.0, high: float = 10.0) -> Answer:
    """Return the grade in a written judgment, scaled to 0 (worst) to 1 (best).

    If the text has the requested JSON object, its `score` counts; objects with different scores are
    unreadable. Otherwise the last `score` with a number counts, because a judge may weigh several
    before it decides. If an object is cut off or broken, the score must be the very last word,
    because earlier ones may be quoted from the response. A range is unreadable, and so is a number
    out of a maximum other than `high`.

    >>> read_score('{"strengths": "short", "weaknesses": "wrong", "score": "4"}').p_yes
    0.3333333333333333
    >>> read_score("I would rather not say.").status
    <Status.UNREADABLE: 'unreadable'>
    """
    scores, broken = _in_objects(text)
    if len(scores) > 1:
        return Answer(Status.UNREADABLE, text=text)
    source = scores.pop() if scores else text
    named = list(_NAMED.finditer(source))
    found = _NUMBER.match(source, named[-1].end()) if named else None
    if found is None or not low <= float(found[1]) <= high or float(found[2] or high) != high:
        return Answer(Status.UNREADABLE, text=text)
    if source is text and broken and not _ENDS.match(text, found.end()):
        return Answer(Status.UNREADABLE, text=text)
    place = (float(found[1]) - low) / (high - low)
    return Answer(Status.OK, place, place, place, text=text)


def _in_objects(text: str) -> tuple[set[str], bool]:
    """Return the scores of the JSON objects before the first broken one, and whether one is broken.

    Objects inside a broken one may be quoted, so they are ignored.
    """
    decoder = json.JSONDecoder(strict=False)
    scores: set[str] = set()
    at = text.find("{")
    while at >= 0:
        try:
            given, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            if _OBJECT.match(text, at):
                return scores, True
            end = at + 1
        else:
            scores |= {_as_text(given[name]) for name in given if name.strip().lower() == "score"}
        at = text.find("{", end)
    return scores, False


def _as_text(score: Any) -> str:
    """Return an object's score as plain text."""
    alone = score[0] if isinstance(score, list) and len(score) == 1 else score
    return f"score: {alone if isinstance(alone, str | int | float) else ''}"


def read_answers(text: str, items: int) -> tuple[Answer, ...]:
    """Return the answers after marks such as `Q1:`; an item without a clear one is unreadable.

    The first answer to an item counts. A judge may repeat the question before its answer, and give
    a reason after it. If it answers one item with both yes and no, everything is unreadable: one of
    the two lists may be copied from the response. The first item stores the whole text.

    >>> [answer.p_yes for answer in read_answers("Q1: Yes\\nQ2. Is there no mistake? No", 3)]
    [1.0, 0.0, None]
    """
    marks = list(_MARK.finditer(text))
    ends = (*(mark.start() for mark in marks[1:]), len(text))
    given: dict[int, float] = {}
    bare: dict[int, str] = {}
    # Without marks there is one extra end and nothing to read.
    for mark, end in zip(marks, ends, strict=False):
        item, part = int(mark[1]), text[mark.end() : end]
        word, alone = _yes_or_no(part), _BARE.match(part)
        if word is not None:
            given.setdefault(item, float(word == "yes"))
        if alone and bare.setdefault(item, alone[1].lower()) != alone[1].lower():
            given.clear()
            break
    return tuple(_answer(given.get(item + 1), text if item == 0 else None) for item in range(items))


def without_score(text: str) -> str:
    """Return a written judgment up to its first score.

    >>> without_score('{"weaknesses": "wrong", "score": "4"}')
    '{"weaknesses": "wrong"'
    """
    named = _NAMED.search(text)
    return text if named is None else text[: named.start()].rstrip("\"'*_").rstrip(" ,\n")


def whole_words(text: str) -> str:
    """Return a text cut at a token limit without its last word or number, which may be incomplete.

    >>> whole_words('"score": "1')
    '"score": "'
    """
    return _HALF_WORD.sub("", text)


def _yes_or_no(text: str) -> str | None:
    """Return yes or no if the text starts with it, or if it is the only such word after a `?`."""
    _, _, after = text.rpartition("?")
    first = _FIRST.match(text) or _FIRST.match(after)
    if first:
        return first[1].lower()
    words = {word.lower() for word in _WORD.findall(after)}
    return words.pop() if len(words) == 1 else None


def _answer(value: float | None, text: str | None) -> Answer:
    if value is None:
        return Answer(Status.UNREADABLE, text=text)
    return Answer(Status.OK, value, value, value, text=text)
