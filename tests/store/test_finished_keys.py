"""Finished keys in sorted arrays behave like a set, to the last byte."""

from __future__ import annotations

import random

import pytest

from rocketeval.errors import StoreError
from rocketeval.store.finished_keys import FinishedKeys


def drawn(number: int, seed: int) -> list[bytes]:
    """Return keys with few distinct bytes, so that many share a start or end with zeros."""
    rng = random.Random(seed)
    return [bytes(rng.choices((0, 1, 127, 255), k=16)) for _ in range(number)]


@pytest.mark.parametrize("seed", range(5))
def test_same_as_a_set(seed: int) -> None:
    """Adding, removing, finding, counting and listing give what a Python set gives."""
    rng, keys, plain = random.Random(seed), FinishedKeys(newest=13), set[bytes]()
    pool = [*drawn(300, seed), bytes(16), bytes(15) + b"\1", b"\1" + bytes(15), b"\xff" * 16]
    for _ in range(2000):
        key = rng.choice(pool)
        if rng.random() < 0.7:
            keys.add(key)
            plain.add(key)
        else:
            keys.discard(key)
            plain.discard(key)
        assert len(keys) == len(plain)
    assert {key for key in pool if key in keys} == {key for key in pool if key in plain}
    assert set(keys) == plain
    assert keys == plain
    assert keys - set(pool[:100]) == plain - set(pool[:100])


def test_keys_that_differ_in_one_bit_are_not_confused() -> None:
    """No part of a key is left out of the comparison."""
    key = bytes(range(100, 116))
    keys = FinishedKeys([key], newest=1)
    assert key in keys
    for bit in range(128):
        other = (int.from_bytes(key) ^ (1 << bit)).to_bytes(16)
        assert other not in keys
    assert b"" not in keys
    assert key[:15] not in keys


def test_key_of_another_length_is_damage() -> None:
    """A key that was truncated ends with a sentence."""
    with pytest.raises(StoreError, match="15 bytes"):
        FinishedKeys([bytes(15)])
