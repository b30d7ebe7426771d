"""Content hashes of 16 bytes, stable across machines and versions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import orjson


def content_hash(*parts: Any) -> bytes:
    """Return 16 bytes that identify `parts` by content (canonical JSON, BLAKE2b).

    >>> content_hash("a", 1) == content_hash("a", 1)
    True
    >>> content_hash("a", "1") == content_hash("a", 1)
    False
    """
    canonical = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(canonical, digest_size=16).digest()


def combine(*hashes: bytes) -> bytes:
    """Return one hash of several hashes of equal length, in order."""
    return hashlib.blake2b(b"".join(hashes), digest_size=16).digest()


def combine_all(hashes: Iterable[bytes]) -> bytes:
    """Like `combine`, for an iterable that need not fit in memory.

    >>> combine_all(iter([b"a", b"b"])) == combine(b"a", b"b")
    True
    """
    combined = hashlib.blake2b(digest_size=16)
    for one in hashes:
        combined.update(one)
    return combined.digest()


def combine_each(first: bytes, middles: bytes, last: bytes) -> bytes:
    """Return `combine(first, middle, last)` for each 16 bytes of `middles`, concatenated.

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
