"""Names and counts in messages: what a user may have meant, long lists cut short, plurals."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence


def did_you_mean(name: str, known: Sequence[str]) -> str:
    """A hint with the known names closest to `name`, or with a few of them all.

    >>> did_you_mean("solit", ["solid", "brief"])
    "Did you mean 'solid'?"
    >>> did_you_mean("xyz", ["solid", "brief"])
    "There are: 'solid', 'brief'."
    """
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return f"Did you mean {' or '.join(map(repr, close))}?"
    return f"There are: {join_words(map(repr, known), most=10)}."


def join_words(names: Iterable[str], *, most: int) -> str:
    """The first `most` names, and how many more there are.

    >>> join_words("abcde", most=3)
    'a, b, c and 2 more'
    """
    every = list(names)
    shown = ", ".join(every[:most])
    return shown if len(every) <= most else f"{shown} and {len(every) - most:,} more"


def count_of(number: int, one: str, many: str) -> str:
    """A number with the word that fits it.

    >>> count_of(1, "query", "queries"), count_of(2000, "query", "queries")
    ('1 query', '2,000 queries')
    """
    return f"{number:,} {one if number == 1 else many}"
