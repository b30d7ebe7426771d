"""What the text of a perspective may be, wherever it is read from."""

from __future__ import annotations

from rocketeval.prompts.unseen_marks import has_unseen_marks

LONGEST_TEXT = 500
"""Characters of one perspective."""


def one_line(text: str) -> str:
    """Return a text on one line, with single blanks.

    >>> one_line(" Is it\\n  kind? ")
    'Is it kind?'
    """
    return " ".join(text.split())


def check_question(text: str) -> str:
    """Return the text of a perspective, on one line; ValueError says what is wrong with it."""
    if not text.strip():
        raise ValueError("this is empty: write a yes/no question.")
    if len(text) > LONGEST_TEXT:
        raise ValueError(
            f"this has {len(text)} characters; {LONGEST_TEXT} are allowed. Ask one short question."
        )
    if has_unseen_marks(text):
        raise ValueError(
            "this holds a control character, or another that nobody sees, such as a blank without "
            "width: delete it."
        )
    return text
