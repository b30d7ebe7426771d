"""Strict parsing of an optimizer's text: yes/no questions, or a named mistake."""

from __future__ import annotations

import pytest

from rocketeval.prompts.parse import Unreadable
from rocketeval.prompts.read_perspectives import (
    ABOUT_QUERIES,
    ABOUT_RESPONSES,
    CUT,
    LONGEST_ANALYSIS,
    LONGEST_QUESTION,
    ProposedQuestions,
    read_proposed,
    read_questions,
    read_replies,
)

WHOLE = """\
# Analysis
It never asks about tone,
and people mind it.

# About responses
1. Is the response kind?
2. Does the response greet back?

# About queries
1. Does the query begin with a greeting?
"""


def read(text: str) -> ProposedQuestions:
    """Parse a text with the usual limits."""
    return read_proposed(text, most_responses=3, most_queries=2)


def test_three_parts_are_read() -> None:
    """The analysis becomes one line; each list keeps its order."""
    assert read(WHOLE) == ProposedQuestions(
        "It never asks about tone, and people mind it.",
        ("Is the response kind?", "Does the response greet back?"),
        ("Does the query begin with a greeting?",),
    )


def test_lines_round_trip() -> None:
    """Journaled lines give the same result."""
    assert read("\n".join(read(WHOLE).lines())) == read(WHOLE)


@pytest.mark.parametrize(
    "text",
    [
        WHOLE.replace("# A", "## A"),
        WHOLE.replace("# Analysis", "**Analysis:**"),
        WHOLE.replace("# About responses", "### about responses:"),
        f"```\n{WHOLE}```",
    ],
)
def test_heading_styles_are_accepted(text: str) -> None:
    """Variants of Markdown are not mistakes."""
    assert read(text) == read(WHOLE)


@pytest.mark.parametrize("none", ["", "none", "(none)", "None."])
def test_query_part_is_optional(none: str) -> None:
    """So is its heading."""
    head = WHOLE.partition("# About queries")[0]
    assert read(f"{head}# About queries\n{none}").about_queries == ()
    assert read(head).about_queries == ()


def test_long_analysis_is_truncated_with_a_mark() -> None:
    """It is for people; a long one is not refused."""
    long = WHOLE.replace("It never", "It never " + "ever " * 1000)
    analysis = read(long).analysis
    assert len(analysis) == LONGEST_ANALYSIS
    assert analysis.endswith(CUT)


@pytest.mark.parametrize(
    ("text", "mistake"),
    [
        ("Sure!\n" + WHOLE, "text before the first part"),
        (WHOLE.replace("It never asks about tone,\nand people mind it.", ""), "no analysis"),
        (
            WHOLE.replace("It never asks about tone,\nand people mind it.", "# About\nqueries"),
            "no analysis",
        ),
        (WHOLE.replace("# About responses", "Questions:"), "a part is missing"),
        (WHOLE + "# Analysis\nAgain.", "a part stands twice"),
        (WHOLE.replace("2. Does", "3. Does"), "numbers out of order"),
        (
            WHOLE.replace("1. Is the response kind?\n2. Does the response greet back?", "none"),
            "too few",
        ),
        (WHOLE + "2. Is it?\n3. Is it so?\n", "too many"),
        (WHOLE.replace("kind?", "kind."), "not a question"),
        (WHOLE.replace("Is the response kind?", "How kind is the response?"), "not a yes/no"),
        (WHOLE.replace("kind?", "kind? Is it warm?"), "asks twice"),
        (WHOLE.replace("kind?", "k" * LONGEST_QUESTION + "?"), "too long"),
        (WHOLE.replace("kind?", "kind <<<end of response>>>?"), "control character"),
        (WHOLE.replace("kind?", "kind\x07?"), "control character"),
        (WHOLE.replace("kind?", "ki\u200bnd?"), "control character"),
        (WHOLE.replace("kind?", "\u202ekind?"), "control character"),
        (WHOLE.replace("the response kind", "Response A kinder"), "compares responses"),
        (WHOLE.replace("the response kind", "it kinder than the other response"), "compares"),
        (WHOLE.replace("Does the query begin", "Does the response begin"), "speaks of a response"),
    ],
)
def test_anything_else_is_a_named_mistake(text: str, mistake: str) -> None:
    """Nothing is guessed: each mistake has a category, which the optimizer sees."""
    with pytest.raises(Unreadable) as caught:
        read(text)
    assert mistake in caught.value.mistake


def test_mistake_names_its_part() -> None:
    """An optimizer that wrote two lists must know which one is meant."""
    with pytest.raises(Unreadable, match="About queries: item 1 is not a question"):
        read(WHOLE.replace("greeting?", "greeting."))


def test_list_without_analysis_has_the_same_limits() -> None:
    """What is asked for without an analysis is held to the same."""
    assert read_questions("1. Is it kind?", 1, 2) == ("Is it kind?",)
    with pytest.raises(Unreadable, match="names one of two responses"):
        read_questions("1. Is it better than Response B?", 1, 2)


def test_replies_are_read_by_number() -> None:
    """Each is a question or DROP; those about queries must not mention the response."""
    assert read_replies("1. DROP\n2. Is it kind?", 2, ABOUT_RESPONSES) == (None, "Is it kind?")
    with pytest.raises(Unreadable, match="there are 1 lines"):
        read_replies("1. DROP", 2, ABOUT_RESPONSES)
    with pytest.raises(Unreadable, match="speaks of a response"):
        read_replies("1. Is the response kind?", 1, ABOUT_QUERIES)
