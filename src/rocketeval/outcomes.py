"""Who wins, of two scores or in a vote: 1 for the first, -1 for the second, 0 for a tie."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import ConfigError
from rocketeval.records import Vote

Floats = NDArray[np.float64]

_ROUNDING = 1e-9
# 7.3 - 7.2 is 0.0999...96 in binary: without slack it would tie where 1.1 - 1.0 would not.

_SIGN = {"a": 1, "tie": 0, "b": -1}


def compare(first: Floats, second: Floats, tie_margin: float) -> NDArray[np.int8]:
    """1 where the first score beats the second, -1 where it loses, 0 where they tie or lack one."""
    threshold = win_threshold(tie_margin)
    difference = first - second
    return (difference >= threshold).astype(np.int8) - (difference <= -threshold).astype(np.int8)


def win_threshold(tie_margin: float) -> float:
    """The smallest difference that wins."""
    if not (math.isfinite(tie_margin) and tie_margin >= 0.0):
        raise ConfigError(
            f"the tie margin is {tie_margin}",
            hint="Use 0 or a small positive number on the scale of the scores, such as 0.1.",
        )
    return max(tie_margin - _ROUNDING, math.ulp(0.0))


def vote_outcomes(votes: Iterable[Vote]) -> NDArray[np.int8]:
    """What each vote says about its first candidate.

    >>> vote_outcomes([Vote("q", "x", "y", "b"), Vote("q", "x", "y", "tie")]).tolist()
    [-1, 0]
    """
    return np.array([_SIGN[vote.winner] for vote in votes], dtype=np.int8)
