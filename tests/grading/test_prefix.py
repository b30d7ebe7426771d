"""The prefix bound: exact for every order of a simulated engine, and fast."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence

import numpy as np
import pytest

from rocketeval.grading.plan import PrefixBound, trie_tokens


def simulate(order: Sequence[Sequence[int]], block: int) -> int:
    """Return the tokens computed by an engine that keeps every whole block."""
    cache: set[tuple[int, ...]] = set()
    computed = 0
    for prompt in order:
        ends = range(block, len(prompt) + 1, block)
        found = 0
        for end in ends:
            if end > len(prompt) - 1 or tuple(prompt[:end]) not in cache:
                break
            found = end
        computed += len(prompt) - found
        cache.update(tuple(prompt[:end]) for end in ends)
    return computed


def random_prompts(rng: random.Random, most: int) -> list[list[int]]:
    """Return prompts over a tiny vocabulary, which share, contain and repeat each other."""
    prompts: list[list[int]] = []
    for _ in range(rng.randint(1, most)):
        base = rng.choice(prompts) if prompts and rng.random() < 0.6 else []
        kept = base[: rng.randint(0, len(base))]
        prompts.append(kept + [rng.randint(0, 2) for _ in range(rng.randint(0, 6))])
    return [prompt for prompt in prompts if prompt] or [[1]]


@pytest.mark.parametrize("block", [1, 2, 3, 4])
def test_no_order_of_a_perfect_engine_computes_less(block: int) -> None:
    """The best order of up to five prompts on a simulated engine reaches the bound."""
    rng = random.Random(block)
    for _ in range(300):
        prompts = random_prompts(rng, 5)
        best = min(simulate(order, block) for order in itertools.permutations(prompts))
        assert trie_tokens(prompts, block).computed == best, prompts


@pytest.mark.parametrize("seed", range(20))
def test_bound_is_the_size_of_the_trie(seed: int) -> None:
    """The bound is the number of distinct prefixes, plus one per repeated prompt."""
    prompts = random_prompts(random.Random(seed), 60)
    beginnings = {tuple(p[:end]) for p in prompts for end in range(1, len(p) + 1)}
    repeats = len(prompts) - len({tuple(prompt) for prompt in prompts})
    bound = trie_tokens(prompts)
    assert bound.computed == len(beginnings) + repeats
    assert bound.tokens == sum(map(len, prompts))
    assert bound.prompts == len(prompts)


@pytest.mark.parametrize(
    ("prompts", "block", "computed"),
    [
        ([[7, 8, 9]], 1, 3),
        ([[7, 8, 9]] * 4, 1, 3 + 3),
        ([[7, 8], [7, 8, 9]], 1, 3),
        ([[1, 2, 3, 4]] * 2, 2, 4 + 2),
        ([[1, 2, 3, 4, 5]] * 2, 2, 5 + 1),
        ([[1, 2, 3, 9], [1, 2, 3, 8]], 2, 4 + 2),
        ([[1, 2, 3]] * 3, 8, 9),
        ([], 1, 0),
    ],
)
def test_small_cases(prompts: list[list[int]], block: int, computed: int) -> None:
    """One prompt, repeats, prefixes, a recomputed last block, blocks too long to share."""
    assert trie_tokens(prompts, block).computed == computed


def test_common_prefix() -> None:
    """The common prefix is that of all prompts, not of neighbors."""
    assert trie_tokens([[1, 2, 3], [1, 2, 4], [1, 5]]).common == 1
    assert trie_tokens([]) == PrefixBound(0, 0, 0, 0)


def test_bytes_are_tokens() -> None:
    """Bytes count like a list of the same numbers; large ids keep their order."""
    texts = [b"one two", b"one three"]
    assert trie_tokens(texts) == trie_tokens([list(text) for text in texts])
    large = [[70_000, 1], [255, 1], [70_000, 2]]
    assert trie_tokens(large).computed == 5


def test_twenty_thousand_prompts_take_seconds() -> None:
    """20,000 prompts of 700 tokens with shared prefixes: a second or two on one core."""
    rng = np.random.default_rng(0)
    texts = rng.integers(0, 50_000, (200, 689)).tolist()
    endings = rng.integers(0, 50_000, (100, 9)).tolist()
    prompts = (
        [response, *text, item, *ending]
        for response, text in enumerate(texts)
        for item, ending in enumerate(endings)
    )
    started = time.process_time()
    bound = trie_tokens(prompts)
    assert time.process_time() - started < 15
    assert bound.tokens == 14_000_000
    assert bound.computed == 200 * (690 + 100 * 10)
