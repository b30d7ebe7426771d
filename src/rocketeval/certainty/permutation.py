"""The chance of a mean difference as large as the one seen, if neither side were better.

If two candidates are equally good on queries like these, each query's difference is as likely to
have the other sign. So the signs are flipped, all ways when there are few, at random otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ENUMERATED = 14
"""Up to this many differences other than zero, every combination of signs is counted."""
FLIPS = 9_999
"""Random combinations otherwise."""

_BLOCK_CELLS = 4_000_000
_ROUNDING = 1e-9


def sign_flip_p(differences: Floats, seed: int = 0) -> float:
    """The two-sided p-value of the mean difference; 1 when all differences are zero.

    >>> sign_flip_p(np.array([1.0, 2.0, 3.0, 1.0, 2.0, 1.0]))
    0.03125
    """
    moving = differences[differences != 0.0]
    if moving.size == 0:
        return 1.0
    observed = abs(moving.sum()) - _ROUNDING * np.abs(moving).sum()
    if moving.size <= ENUMERATED:
        extreme = np.abs(_all_signs(moving.size) @ moving) >= observed
        return float(extreme.mean())
    extreme_flips = sum(
        int((np.abs(signs @ moving) >= observed).sum()) for signs in _some_signs(moving.size, seed)
    )
    return (extreme_flips + 1) / (FLIPS + 1)


def _all_signs(count: int) -> Floats:
    """Every combination of signs with the first one fixed: the others mirror these."""
    places = np.arange(2 ** (count - 1))[:, None] >> np.arange(count - 1)
    others = 1.0 - 2.0 * (places & 1)
    return np.column_stack([np.ones(len(others)), others])


def _some_signs(count: int, seed: int) -> Iterator[Floats]:
    rng = np.random.default_rng(seed)
    block = max(1, _BLOCK_CELLS // count)
    for start in range(0, FLIPS, block):
        rows = min(block, FLIPS - start)
        flipped = rng.integers(0, 2, size=(rows, count), dtype=np.int8)
        yield np.where(flipped, -1.0, 1.0)
