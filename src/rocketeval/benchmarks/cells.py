"""Which responses were read, by candidate and query, in a few bytes each."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

__all__ = ["ResponseCells"]

SPARE = 64
"""Unused places that a candidate's array may always have."""


class ResponseCells:
    """A code from 1 per response that was read; queries are numbered.

    A candidate with responses to many queries has an array. A place far beyond its other ones is
    kept by itself, so that many candidates with few responses each need little memory, too.

    >>> read = ResponseCells("B")
    >>> read.add("a", 3), read.add("a", 3), read.add("b", 10**9), read.get("b", 10**9)
    (0, 1, 0, 1)
    >>> list(read.counts())
    [('a', 1), ('b', 1)]
    """

    def __init__(self, typecode: str) -> None:
        self._typecode = typecode
        self._codes: dict[str, array[int]] = {}
        self._counts: dict[str, int] = {}
        self._far: dict[tuple[str, int], int] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def __contains__(self, candidate: str) -> bool:
        return candidate in self._counts

    def counts(self) -> Iterator[tuple[str, int]]:
        """Yield each candidate and the number of its responses, in order of appearance."""
        return iter(self._counts.items())

    def get(self, candidate: str, place: int) -> int:
        """Return the code of a response; 0 if there is none."""
        codes = self._codes.get(candidate, ())
        found = codes[place] if place < len(codes) else 0
        return found or (self._far.get((candidate, place), 0) if self._far else 0)

    def add(self, candidate: str, place: int, code: int = 1) -> int:
        """Record a response unless there is one; return the earlier code, or 0."""
        before = self.get(candidate, place)
        if before:
            return before
        count = self._counts.get(candidate, 0)
        codes = self._codes.get(candidate)
        if codes is None:
            codes = self._codes[candidate] = array(self._typecode)
        if place < len(codes):
            codes[place] = code
        elif place <= 2 * count + SPARE:
            codes.extend([0] * (place - len(codes)))
            codes.append(code)
        else:
            self._far[candidate, place] = code
        self._counts[candidate] = count + 1
        return 0
