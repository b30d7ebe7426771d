"""The sign-flip test: exact for few queries, close to exact for many, never zero."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from rocketeval.stats.permutation import ENUMERATED, FLIPS, sign_flip_p


def brute_force(differences: np.ndarray) -> float:
    """Return the share of sign combinations with a mean at least as far from zero."""
    signs = np.array(list(product((1.0, -1.0), repeat=len(differences))))
    means = np.abs((signs * np.abs(differences)).mean(axis=1))
    return float((means >= abs(differences.mean()) - 1e-12).mean())


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("queries", [1, 2, 5, 9])
def test_few_queries_are_enumerated_exactly(queries: int, seed: int) -> None:
    """The p-value equals listing all sign combinations, with zeros and ties."""
    differences = np.random.default_rng(seed).integers(-2, 4, queries).astype(float)
    assert sign_flip_p(differences) == pytest.approx(brute_force(differences))


def test_many_queries_are_close_to_exact() -> None:
    """Random flips differ from the exact count by at most their Monte Carlo error."""
    differences = np.random.default_rng(1).normal(0.4, 1.0, ENUMERATED + 2)
    exact = brute_force(differences)
    error = np.sqrt(exact * (1 - exact) / FLIPS)
    assert sign_flip_p(differences) == pytest.approx(exact, abs=4 * error + 1 / FLIPS)


def test_p_value_is_never_zero() -> None:
    """A hundred equal wins have the smallest possible p-value."""
    assert sign_flip_p(np.ones(100)) == 1 / (FLIPS + 1)


def test_all_ties_give_p_one() -> None:
    """All ties give 1, and ties next to a difference change nothing."""
    assert sign_flip_p(np.zeros(5)) == 1.0
    assert sign_flip_p(np.array([0.0, 0.0, 1.0, 2.0])) == sign_flip_p(np.array([1.0, 2.0]))


def test_seed_determines_the_p_value() -> None:
    """The same seed gives the same p-value, another one a slightly different one."""
    differences = np.random.default_rng(2).normal(0.2, 1.0, 50)
    first, again, other = (sign_flip_p(differences, seed) for seed in (0, 0, 1))
    assert first == again != other
    assert first == pytest.approx(other, abs=0.02)
