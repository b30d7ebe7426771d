"""Strict parsing of an optimizer's proposals: complete lists of yes/no questions, or a mistake.

The optimizer sees every mistake and tries again, so each message says what to do instead.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rocketeval.prompts.parse import (
    FENCE,
    Unreadable,
    has_unseen_marks,
    is_open,
    parse_checklist,
    quoted,
    read_rewrites,
)
from rocketeval.prompts.render import neutralize

LONGEST_QUESTION = 300
"""Maximum characters of one question."""
LONGEST_ANALYSIS = 2000
"""Maximum characters of an analysis to keep."""
CUT = " (...)"
ANALYSIS, ABOUT_RESPONSES, ABOUT_QUERIES = "Analysis", "About responses", "About queries"
"""Headings in an optimizer's answer about mistakes."""
_HEADING = re.compile(r"(?:#{1,6}\s*|\*\*)(.+?)\s*:?\s*(?:\*\*)?\s*:?")
"""A Markdown heading."""
_NOTHING = re.compile(r"\(?none\)?\.?", re.IGNORECASE)
_MARKS = re.compile(r"[?\uff1f\u061f]")
_SIDES = re.compile(
    r"\b(?:[Rr]esponse|[Aa]nswer|[Aa]ssistant)s? (?:A|B|1|2)\b"
    r"|\b(?:[Ff]irst|[Ss]econd|[Oo]ther|[Bb]oth|[Tt]wo) [Rr]esponses?\b"
)
"""Mentions of one of two responses, or of both: a question must fit any single response."""
_ANY_RESPONSE = re.compile(r"\b(?:the|this|each|either) responses?\b", re.IGNORECASE)
"""Mentions of a response, which a question about the query must not contain."""


@dataclass(frozen=True, slots=True)
class ProposedQuestions:
    """An optimizer's analysis of mistakes, and the questions it proposes."""

    analysis: str
    """Why the cases were judged wrongly, on one line."""
    about_responses: tuple[str, ...]
    about_queries: tuple[str, ...]

    def lines(self) -> tuple[str, ...]:
        """Return lines that `read_proposed` can read back.

        >>> ProposedQuestions("It is blind to tone.", ("Is it kind?",), ()).lines()
        ('# Analysis', 'It is blind to tone.', '# About responses', '1. Is it kind?')
        """
        queries = ("# " + ABOUT_QUERIES, *_numbered(self.about_queries))
        return (
            "# " + ANALYSIS,
            self.analysis,
            "# " + ABOUT_RESPONSES,
            *_numbered(self.about_responses),
            *(queries if self.about_queries else ()),
        )


def read_proposed(text: str, *, most_responses: int, most_queries: int) -> ProposedQuestions:
    """Parse an optimizer's answer about mistakes; raise Unreadable with the mistake.

    >>> text = "# Analysis\\nTone.\\n# About responses\\n1. Is it kind?\\n# About queries\\nnone"
    >>> read_proposed(text, most_responses=3, most_queries=3).about_responses
    ('Is it kind?',)
    """
    parts = _parts(text)
    analysis = " ".join(" ".join(parts.get(ANALYSIS, ())).split())
    # Joined lines that form a heading could not be read back from a journal.
    if not analysis or _heading(analysis) is not None:
        raise Unreadable(
            "no analysis", f"there is nothing under `# {ANALYSIS}`: say why, in a few sentences."
        )
    if ABOUT_RESPONSES not in parts:
        raise Unreadable("a part is missing", f"there is no `# {ABOUT_RESPONSES}`.")
    return ProposedQuestions(
        _shown(analysis),
        _questions(parts[ABOUT_RESPONSES], 1, most_responses, ABOUT_RESPONSES),
        _questions(parts.get(ABOUT_QUERIES, ()), 0, most_queries, ABOUT_QUERIES),
    )


def read_questions(text: str, least: int, most: int) -> tuple[str, ...]:
    """Return a numbered list of questions about a response; raise Unreadable with the mistake.

    >>> read_questions("1. Is it kind?\\n2. Is it short?", 1, 4)
    ('Is it kind?', 'Is it short?')
    """
    return _questions(text.splitlines(), least, most, ABOUT_RESPONSES)


def read_replies(text: str, count: int, about: str) -> tuple[str | None, ...]:
    """Return a question, or None for DROP, under each number from 1 to `count`.

    `about` is the matching heading: about responses, or about queries.

    >>> read_replies("1. Is it kind?\\n2. DROP", 2, ABOUT_RESPONSES)
    ('Is it kind?', None)
    """
    replies = read_rewrites(text, range(1, count + 1))
    for number, question in enumerate(replies, 1):
        if question is not None:
            _check(question, number, about)
    return replies


def _parts(text: str) -> dict[str, list[str]]:
    """Return the lines under each heading."""
    parts: dict[str, list[str]] = {}
    name = None
    for line in map(str.strip, text.strip().splitlines()):
        heading = _heading(line)
        if heading in parts:
            raise Unreadable("a part stands twice", f"`# {heading}` stands there twice.")
        if heading is not None:
            name = heading
            parts[name] = []
        elif name is not None:
            parts[name].append(line)
        elif line and not FENCE.fullmatch(line):
            raise Unreadable(
                "text before the first part",
                f"{quoted(line)} stands before `# {ANALYSIS}`; begin with that heading.",
            )
    return parts


def _heading(line: str) -> str | None:
    """Return the part that a heading line starts; None for other lines."""
    found = _HEADING.fullmatch(line)
    names = {name.casefold(): name for name in (ANALYSIS, ABOUT_RESPONSES, ABOUT_QUERIES)}
    return names.get(found[1].casefold()) if found else None


def _questions(lines: Sequence[str], least: int, most: int, about: str) -> tuple[str, ...]:
    kept = [line for line in lines if not _NOTHING.fullmatch(line.strip())]
    try:
        questions = parse_checklist("\n".join(kept), min_items=least, max_items=most)
    except Unreadable as error:
        raise Unreadable(error.mistake, f"{about}: {error.message}") from None
    for number, question in enumerate(questions, 1):
        _check(question, number, about)
    return questions


def _check(question: str, number: int, about: str) -> None:
    """Raise Unreadable unless the question can be sent to a judge unchanged."""
    where = f"{about}: item {number}"
    if len(question) > LONGEST_QUESTION:
        raise Unreadable(
            "an item is too long",
            f"{where} has {len(question)} characters; {LONGEST_QUESTION} are allowed.",
        )
    if is_open(question):
        raise Unreadable(
            "an item is not a yes/no question",
            f"{where} cannot be answered by Yes or No: {quoted(question)}.",
        )
    if len(_MARKS.findall(question)) > 1:
        raise Unreadable(
            "an item asks twice", f"{where} has more than one question mark: {quoted(question)}."
        )
    if neutralize(question).count or has_unseen_marks(question):
        raise Unreadable(
            "a control character",
            f"{where} holds a marker, or a control character or another that nobody sees.",
        )
    if about == ABOUT_RESPONSES and _SIDES.search(question):
        raise Unreadable(
            "an item compares responses",
            f"{where} names one of two responses, or both: {quoted(question)}. Ask about "
            "`the response`, so that it fits any response alone.",
        )
    if about == ABOUT_QUERIES and _ANY_RESPONSE.search(question):
        raise Unreadable(
            "an item about the query speaks of a response",
            f"{where} speaks of a response, which its reader does not see: {quoted(question)}.",
        )


def _shown(analysis: str) -> str:
    if len(analysis) <= LONGEST_ANALYSIS:
        return analysis
    return analysis[: LONGEST_ANALYSIS - len(CUT)] + CUT


def _numbered(questions: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{number}. {question}" for number, question in enumerate(questions, 1))
