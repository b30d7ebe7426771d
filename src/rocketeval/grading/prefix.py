"""How much of many prompts has to be computed when every shared beginning is computed once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

_TOKEN = np.dtype(">u4")
"""Big-endian, so that sorting bytes sorts tokens."""


@dataclass(frozen=True, slots=True)
class PrefixBound:
    """What any engine has to compute for a set of prompts, in whatever order they come."""

    prompts: int
    tokens: int
    """All tokens of all prompts: what is computed without any reuse."""
    computed: int
    """The least any engine with a perfect prefix cache computes."""
    common: int
    """Tokens that all prompts begin with."""


def trie_tokens(prompts: Iterable[Sequence[int]], block: int = 1) -> PrefixBound:
    """Return the least number of prompt tokens an engine with a perfect prefix cache computes.

    The cache keeps whole blocks of `block` tokens. Of a prompt that is all in the cache, the last
    token is computed again, and with it its block: the engine needs it to go on from.
    The bound is exact. Every token of every prompt is held in memory, four bytes each.

    >>> trie_tokens([[1, 2, 3], [1, 2, 4], [1, 2, 4]])
    PrefixBound(prompts=3, tokens=9, computed=5, common=2)
    """
    # In sorted order a prompt shares most with the one before it, and a prompt that is the
    # beginning of others comes before them: no order computes less.
    ordered = sorted(map(_as_bytes, prompts))
    tokens = computed = 0
    before = np.empty(0, _TOKEN)
    for packed in ordered:
        prompt = np.frombuffer(packed, _TOKEN)
        reusable = min(_shared(before, prompt), max(0, len(prompt) - 1))
        tokens += len(prompt)
        computed += len(prompt) - reusable // block * block
        before = prompt
    common = _shared(np.frombuffer(ordered[0], _TOKEN), before) if ordered else 0
    return PrefixBound(len(ordered), tokens, computed, common)


def _as_bytes(prompt: Sequence[int]) -> bytes:
    # np.array would take bytes for a text.
    given = np.frombuffer(prompt, np.uint8) if isinstance(prompt, bytes) else np.array(prompt)
    return given.astype(_TOKEN).tobytes()


def _shared(one: np.ndarray, two: np.ndarray) -> int:
    """Return how many tokens both begin with."""
    shorter = min(len(one), len(two))
    apart = one[:shorter] != two[:shorter]
    return int(apart.argmax()) if apart.any() else shorter
