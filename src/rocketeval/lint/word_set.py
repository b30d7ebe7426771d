"""Sets of words, written as people write words."""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text.

    >>> sorted(word_set("yes no"))
    ['no', 'yes']
    """
    return frozenset(text.split())
