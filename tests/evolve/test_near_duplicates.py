"""Proposals that say again what is asked, by their words."""

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
def test_the_same_in_the_same_or_almost_the_same_words(text: str, exact: bool) -> None:
    """Case, order, endings and common synonyms make no other question."""
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
def test_another_question_is_no_twin(text: str) -> None:
    """One word of its own is enough."""
    assert KnownQuestions([THERE]).duplicate_of(Perspective(text)) is None


def test_form_makes_no_difference_and_kind_does() -> None:
    """Twins are looked for before a proposal is given its forms."""
    asked = KnownQuestions([THERE])
    assert asked.duplicate_of(Perspective(THERE.text, form=AnswerFormat.GRADED)) is not None
    assert asked.duplicate_of(Perspective(THERE.text, PerspectiveKind.QUERY)) is None


def test_a_rewording_may_come_near_its_parent_in_either_form() -> None:
    """That is what it is for; the very same words are still a repeat."""
    graded = Perspective(THERE.text, form=AnswerFormat.GRADED)
    asked = KnownQuestions([THERE, graded])
    near = "Does the response include the main points of the text?"
    for parent in (THERE, graded):
        assert asked.duplicate_of(Perspective(near, parents=(parent.id,))) is None
        assert asked.duplicate_of(Perspective(THERE.text, parents=(parent.id,))) is not None
    assert asked.duplicate_of(Perspective(near, parents=("another",))) is not None


def test_scripts_without_spaces_are_compared_exactly_alone() -> None:
    """A sentence that counts as one word would be taken for any that looks alike."""
    asked = KnownQuestions([Perspective("回答是否正确地说明了主要内容?")])
    assert asked.duplicate_of(Perspective("回答是否简洁地说明了主要内容?")) is None
    assert asked.duplicate_of(Perspective("回答是否正确地说明了主要内容")) is not None
