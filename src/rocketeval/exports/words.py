"""Counts in words."""

from __future__ import annotations


def counted(number: int, one: str, many: str) -> str:
    """Return `number` with the word that fits it.

    >>> counted(1, "query", "queries"), counted(2000, "query", "queries")
    ('1 query', '2,000 queries')
    """
    return f"{number:,} {one if number == 1 else many}"
