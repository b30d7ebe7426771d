"""Bradley-Terry strengths: one number a candidate, whose differences give the odds of a win.

`P(i beats j) = 1 / (1 + exp(strength_j - strength_i))`. The likelihood needs only each candidate's
win total and how often each two meet.

Half a virtual game, a tie against an opponent of mean strength, is added to every candidate. It
keeps a candidate that wins (or loses) everything finite, and places candidates that never met at
the mean. Against hundreds of real comparisons it moves a strength by a few thousandths.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import RocketEvalError

Floats = NDArray[np.float64]

VIRTUAL_TIES = 0.5
"""Weight of the virtual game added to every candidate."""
ELO_PER_STRENGTH = 400.0 / math.log(10.0)
"""A rating 400 higher wins ten times as often as it loses."""

_TOLERANCE = 1e-10
_MAX_STEPS = 100


def fit(
    win_totals: Floats,
    pair_counts: Floats,
    *,
    virtual_ties: float = VIRTUAL_TIES,
    start: Floats | None = None,
) -> Floats:
    """The most likely strengths, summing to zero; a good `start` saves steps."""
    strengths: Floats = np.zeros(len(win_totals)) if start is None else start
    for _ in range(_MAX_STEPS):
        slope = _gradient(strengths, win_totals, pair_counts, virtual_ties)
        curvature = information(strengths, pair_counts, virtual_ties)
        step: Floats = np.linalg.solve(curvature, slope).astype(np.float64)
        strengths = strengths + step * _safe_length(step)
        if np.abs(step).max(initial=0.0) < _TOLERANCE:
            return centred(strengths)
    raise RocketEvalError(
        f"the ratings of {len(win_totals)} candidates did not settle in {_MAX_STEPS} steps",
        hint="Please report this with the scores that caused it; the mean scores are unaffected.",
    )


def centred(strengths: Floats) -> Floats:
    """Strengths shifted to sum to zero along the last axis."""
    shifted: Floats = strengths - strengths.mean(axis=-1, keepdims=True)
    return shifted


def win_probabilities(strengths: Floats) -> Floats:
    """P(row beats column); 0 on the diagonal, where nobody plays."""
    chances: Floats = 1.0 / (1.0 + np.exp(strengths[None, :] - strengths[:, None]))
    np.fill_diagonal(chances, 0.0)
    return chances


def information(
    strengths: Floats, pair_counts: Floats, virtual_ties: float = VIRTUAL_TIES
) -> Floats:
    """The negative second derivative of the log-likelihood, made invertible.

    Moving all strengths together changes no real game, so a constant holds their sum at zero.
    """
    chances = win_probabilities(strengths)
    curvature = pair_counts * chances * (1.0 - chances)
    virtual = _logistic(strengths)
    matrix: Floats = _sum_penalty(pair_counts) - curvature
    diagonal = curvature.sum(axis=1) + virtual_ties * virtual * (1.0 - virtual)
    matrix[np.diag_indices_from(matrix)] += diagonal
    return matrix


def _gradient(
    strengths: Floats, win_totals: Floats, pair_counts: Floats, virtual_ties: float
) -> Floats:
    expected = (pair_counts * win_probabilities(strengths)).sum(axis=1)
    virtual = virtual_ties * (0.5 - _logistic(strengths))
    pull = _sum_penalty(pair_counts) * strengths.sum()
    slope: Floats = win_totals - expected + virtual - pull
    return slope


def _sum_penalty(pair_counts: Floats) -> float:
    """Of the size of the other entries, so that it costs no precision."""
    return float(pair_counts.sum() + 1.0) / max(len(pair_counts), 1) ** 2


def _logistic(values: Floats) -> Floats:
    result: Floats = 1.0 / (1.0 + np.exp(-values))
    return result


def _safe_length(step: Floats) -> float:
    """A share of the step that cannot overshoot, near 1 for small steps.

    The curvature of a logistic changes by at most `exp(r)` when log-odds move by `r`; a full Newton
    step from far out ignores that and can run away.
    """
    reach = float(np.ptp(np.append(step, 0.0)))
    return math.log1p(reach) / reach if reach > 0.0 else 1.0
