"""Detection of proposals that repeat an existing question."""

from __future__ import annotations

import pytest

from rocketeval.evolve.perspective import AnswerFormat, KnownQuestions, Perspective, PerspectiveKind

THERE = Perspective("Does the response mention the main points of the text?")


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("does the response mention the main points of the text", True),
        ("Does the response include the main points of the text?", False),
        ("Are the main points of the text mentioned in the response?", False),
    ],
)
def test_duplicates_and_near_duplicates_are_found(text: str, exact: bool) -> None:
    """Case, order, endings and common synonyms do not make a new question."""
    duplicate = KnownQuestions([THERE]).duplicate_of(Perspective(text))
    assert duplicate is not None
    assert (duplicate.of, duplicate.exact) == (THERE, exact)


@pytest.mark.parametrize(
    "text",
    [
        "Does the response mention the weak points of the text?",
        "Does the response mention no main points of the text?",
        "Is the response kind?",
    ],
)
def test_different_question_is_not_a_duplicate(text: str) -> None:
    """One different word is enough."""
    assert KnownQuestions([THERE]).duplicate_of(Perspective(text)) is None


def test_duplicates_ignore_format_but_not_kind() -> None:
    """Duplicates are removed before a proposal gets its answer formats."""
    asked = KnownQuestions([THERE])
    assert asked.duplicate_of(Perspective(THERE.text, form=AnswerFormat.GRADED)) is not None
    assert asked.duplicate_of(Perspective(THERE.text, PerspectiveKind.QUERY)) is None


def test_rewording_may_resemble_its_parent() -> None:
    """In either format; exactly the same words are still a duplicate."""
    graded = Perspective(THERE.text, form=AnswerFormat.GRADED)
    asked = KnownQuestions([THERE, graded])
    near = "Does the response include the main points of the text?"
    for parent in (THERE, graded):
        assert asked.duplicate_of(Perspective(near, parents=(parent.id,))) is None
        assert asked.duplicate_of(Perspective(THERE.text, parents=(parent.id,))) is not None
    assert asked.duplicate_of(Perspective(near, parents=("another",))) is not None


def test_scripts_without_spaces_are_compared_exactly() -> None:
    """A whole sentence would count as one word."""
    asked = KnownQuestions([Perspective("回答是否正确地说明了主要内容?")])
    assert asked.duplicate_of(Perspective("回答是否简洁地说明了主要内容?")) is None
    assert asked.duplicate_of(Perspective("回答是否正确地说明了主要内容")) is not None
