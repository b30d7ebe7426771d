"""Which responses were read: exact, and small for any mixture of candidates and queries."""

from __future__ import annotations

import random
import tracemalloc

import pytest

from rocketeval.benchmarks.cells import ResponseCells


@pytest.mark.parametrize("typecode", ["B", "Q"])
def test_like_a_dict(typecode: str) -> None:
    """Codes and counts are those of a plain dict, in any order of places."""
    choose = random.Random(1)
    read, plain = ResponseCells(typecode), dict[tuple[str, int], int]()
    for _ in range(5000):
        candidate = choose.choice("abc")
        place = choose.choice([choose.randrange(50), choose.randrange(2000), 10**12])
        code = choose.randrange(1, 256)
        assert read.get(candidate, place) == plain.get((candidate, place), 0)
        assert read.add(candidate, place, code) == plain.get((candidate, place), 0)
        plain.setdefault((candidate, place), code)
    assert all(read.get(*cell) == code for cell, code in plain.items())
    assert dict(read.counts()) == {
        name: sum(candidate == name for candidate, _ in plain) for name in "abc"
    }


def test_memory_is_per_response() -> None:
    """10,000 candidates with one query each need kilobytes per candidate at most, not a matrix."""
    tracemalloc.start()
    read = ResponseCells("Q")
    for number in range(10_000):
        read.add(f"candidate {number}", number)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10_000 * 1000
    assert sum(1 for _ in read.counts()) == 10_000
