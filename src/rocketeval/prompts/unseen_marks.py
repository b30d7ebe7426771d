"""Characters that nobody sees: a question that holds one is not the question that people read."""

from __future__ import annotations

import unicodedata

_UNSEEN = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode's names of control characters, of marks without width or that turn the direction of
writing, of half characters, and of what separates lines."""


def has_unseen_marks(text: str) -> bool:
    """Whether a text is more than one line of what people see.

    >>> has_unseen_marks("Is it kind?"), has_unseen_marks("Is it \\u202ekind?")
    (False, True)
    """
    return any(unicodedata.category(mark) in _UNSEEN for mark in text)
