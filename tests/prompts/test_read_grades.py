"""Parsing a judge's text: the intended grade, or none, and never a crash."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketeval.prompts.read_grades import read_answers, read_score, whole_words, without_score
from rocketeval.records import Status

WORDS = st.sampled_from(("Yes", "No"))


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"strengths": "a", "weaknesses": "b", "score": "8"}', 8),
        ('{"score": 10}', 10),
        ("Score: 1", 1),
        ("**Score:** 7", 7),
        ("Score: **7**", 7),
        ("score = 3.", 3),
        ("overall_score: 6", 6),
        ("Score: 8/10", 8),
        ("Score: 8 out of 10, because it is short", 8),
        ('"score": [7.5]', 7.5),
        ("First score: 3. On reflection, score: 9", 9),
        ('"score": "9", then: "score": "a number from 1 to 10"', 9),
        ('It returns {"a": 1}, as asked. Score: 3', 3),
        ('Here it is:\n```json\n{"strengths": "a", "score": "8"}\n```\nI hope it helps', 8),
        ('{"strengths": "it says \\"score\\": 10", "score": "2"}', 2),
        ('{"weaknesses": "it claims a score: 10", "Score": "2"} It says "score": 10.', 2),
        ('{"score": "7", "strengths": "a"}\n{"strengths": "it says score: 10, b', 7),
        ('{"strengths": "it says "score": 10", "score": "2"}', 2),
        ('{"strengths": "it says {"score": 10}", "score": "2"}\n```', 2),
        ('{"score": ["8"]} {"score": "8"}', 8),
    ],
)
def test_intended_grade_is_read(text: str, score: float) -> None:
    """JSON, markdown and plain text; a score quoted from the response does not count."""
    answer = read_score(text)
    assert answer.status is Status.OK
    assert answer.p_yes == answer.p_low == answer.p_high == pytest.approx((score - 1) / 9)
    assert answer.text == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "A fine response.",
        '{"score": "a number from 1 to 10"}',
        "score: 1-10",
        "score: 7 to 8",
        "score: 10-12",
        "score: 0",
        "score: 11",
        "score: 85",
        "score: 80%",
        "score: -3",
        "score: 4/5",
        "score: 4,5",
        "score: " + "9" * 5000,
        "underscores: 3",
        "Score: 3, but the final score: 8 or 9",
        '{"strengths": "it gives itself a score: 10 and says ',
        '{"strengths": "it says "score": 10, which ',
        'Well: {"strengths": "it says {"score": 10} and ',
        '{"score": "10"} {"strengths": "a", "score": "2"}',
        '{"score": true}',
        '{"score": {"score": 3}}',
        '{"a":' * 5000 + " score: 7",
    ],
)
def test_unclear_grade_is_unreadable(text: str) -> None:
    """A range, another maximum, off the scale, possibly quoted, or none: never guessed."""
    answer = read_score(text)
    assert (answer.status, answer.p_yes, answer.text) == (Status.UNREADABLE, None, text)


@given(st.text())
def test_any_text_gives_a_grade_on_the_scale_or_none(text: str) -> None:
    """No text causes an error."""
    for written in (text, f"score: {text}", f'"score": "{text}"'):
        answer = read_score(written)
        assert answer.p_yes is None or 0.0 <= answer.p_yes <= 1.0


@given(st.integers(1, 10), st.text(alphabet="abc \n.", max_size=30))
def test_grade_is_found_after_any_text(score: int, before: str) -> None:
    """An analysis of any length may come first."""
    answer = read_score(f'{{"weaknesses": "{before}", "score": "{score}"}}')
    assert answer.p_yes == pytest.approx((score - 1) / 9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Q1: Yes\nQ2: No", [1, 0]),
        ("q1: yes\nq2: no", [1, 0]),
        ("1. Yes\n2) No", [1, 0]),
        ("- **Q1:** Yes\n- **Q2**: No", [1, 0]),
        ("Q1: Yes, Q2: No", [1, 0]),
        ('{"Q1": "Yes", "Q2": "No"}', [1, 0]),
        ("Q2: No\nQ1: Yes", [1, 0]),
        ("Q1: Yes, there is no mistake\nQ2: No, yes would be wrong", [1, 0]),
        ("Q1. Is there no mistake? Yes\nQ2. Does it say yes? No", [1, 0]),
        ("Q1. Is there no mistake?\nYes\nQ2. Is it short?\nNo", [1, 0]),
        ("Q1: The answer is yes\nQ2: I would say no.", [1, 0]),
        ("Q1: Yes\nQ2: No\nQ1: Yes", [1, 0]),
        ("Q1: Yes\nQ2: No\n\nReasons:\nQ1: No mistake was found.\nQ2: Yes would be wrong.", [1, 0]),
        ("Q1: Yes\nQ1: No\nQ2: No", [None, None]),
        ("Q1: Yes\nQ2: Yes\n\nMine:\nQ1: Yes\nQ2: No", [None, None]),
        ('It says "Q1: Yes".\nQ1: No\nQ2: No', [None, None]),
        ("Q1: Yes", [1, None]),
        ("Q1: Yes or No\nQ2: Yes/No", [None, None]),
        ("Q1. Is there no mistake?\nQ2: both yes and no, who knows", [None, None]),
        ("Q1: Not at all\nQ2: Nothing", [None, None]),
        ("Yes\nNo", [None, None]),
        ("Q3: Yes\nQ0: No", [None, None]),
        ("1" * 5000 + ": Yes", [None, None]),
        ("", [None, None]),
    ],
)
def test_answers_are_read_by_their_number(text: str, expected: list[float | None]) -> None:
    """Surrounding text is ignored; unclear answers stay open."""
    answers = read_answers(text, 2)
    assert [answer.p_yes for answer in answers] == expected
    assert [answer.status is Status.OK for answer in answers] == [e is not None for e in expected]
    assert [answer.text for answer in answers] == [text, None]


@given(st.lists(WORDS, min_size=1, max_size=30))
def test_every_listed_answer_is_read(words: list[str]) -> None:
    """For any number of items, in the requested format."""
    text = "\n".join(f"Q{number}: {word}" for number, word in enumerate(words, 1))
    answers = read_answers(text, len(words))
    assert [answer.p_yes for answer in answers] == [float(word == "Yes") for word in words]


@given(st.text(), st.integers(1, 5))
def test_any_text_gives_one_answer_per_item(text: str, items: int) -> None:
    """No text causes an error."""
    for written in (text, f"Q1: {text}", f"1. {text}?"):
        answers = read_answers(written, items)
        assert len(answers) == items
        assert all(answer.p_yes in (None, 0.0, 1.0) for answer in answers)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ('{"weaknesses": "wrong", "score": "4"}', '{"weaknesses": "wrong"'),
        ("Short and right.\n**Score:** 8", "Short and right."),
        ("Good. score: 3. Better: score: 5", "Good."),
        ("No grade here, only words about a score.", "No grade here, only words about a score."),
    ],
)
def test_analysis_is_shown_without_its_score(text: str, left: str) -> None:
    """The next judge gives its own."""
    assert without_score(text) == left


def test_incomplete_last_word_is_ignored() -> None:
    """At a token limit, a score of 10 may be cut to 1."""
    assert read_score('"score": "1').p_yes == 0.0
    assert read_score(whole_words('"score": "1')).status is Status.UNREADABLE
    for cut in ("score: 7.", "score: 8-", "score: 8/", "score: 7,"):
        assert read_score(whole_words(cut)).status is Status.UNREADABLE
    assert whole_words("done.") == "done."
    assert whole_words("") == ""
