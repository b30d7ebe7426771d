"""Content hashes: the same content gives the same 16 bytes on every machine, for ever."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson


def content_hash(*parts: Any) -> bytes:
    """16 bytes that identify `parts` by content (canonical JSON, BLAKE2b).

    >>> content_hash("a", 1) == content_hash("a", 1)
    True
    >>> content_hash("a", "1") == content_hash("a", 1)
    False
    """
    canonical = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(canonical, digest_size=16).digest()


def combine(*hashes: bytes) -> bytes:
    """One hash from several of equal length, order kept."""
    return hashlib.blake2b(b"".join(hashes), digest_size=16).digest()


def combine_all(hashes: Iterable[bytes]) -> bytes:
    """`combine` of any number, which need not be in memory at once.

    >>> combine_all(iter([b"a", b"b"])) == combine(b"a", b"b")
    True
    """
    combined = hashlib.blake2b(digest_size=16)
    for one in hashes:
        combined.update(one)
    return combined.digest()


def combine_each(first: bytes, middles: bytes, last: bytes) -> bytes:
    """`combine(first, middle, last)` for each 16 bytes of `middles`, one after the other.

    >>> middles = bytes(range(32))
    >>> combine_each(b"a", middles, b"b")[16:] == combine(b"a", middles[16:], b"b")
    True
    """
    blake2b = hashlib.blake2b
    return b"".join(
        [
            blake2b(first + middles[place : place + 16] + last, digest_size=16).digest()
            for place in range(0, len(middles), 16)
        ]
    )
