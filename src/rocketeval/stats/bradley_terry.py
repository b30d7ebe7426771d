"""Bradley-Terry strengths: one number per candidate; differences give the odds of a win.

`P(i beats j) = 1 / (1 + exp(strength_j - strength_i))`. The likelihood depends only on win totals
and on how often each pair meets.

Every candidate gets half a virtual game, a tie against an opponent of mean strength. It keeps the
strength of a candidate that wins (or loses) everything finite, and places candidates without games
at the mean. With hundreds of real comparisons it moves a strength by a few thousandths.
"""

from __future__ import annotations

import math

import numpy as np

from rocketeval.arrays import Bools, Floats, Ints
from rocketeval.errors import RocketEvalError
from rocketeval.grid import compare, win_threshold

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
    """Return the maximum-likelihood strengths, centered at zero; a good `start` saves steps."""
    strengths: Floats = np.zeros(len(win_totals)) if start is None else start
    for _ in range(_MAX_STEPS):
        slope = _gradient(strengths, win_totals, pair_counts, virtual_ties)
        curvature = information(strengths, pair_counts, virtual_ties)
        step: Floats = np.linalg.solve(curvature, slope).astype(np.float64)
        strengths = strengths + step * _safe_length(step)
        if np.abs(step).max(initial=0.0) < _TOLERANCE:
            return centered(strengths)
    raise RocketEvalError(
        f"The ratings of {len(win_totals)} candidates did not converge in {_MAX_STEPS} steps.",
        hint="Please report this with the scores that caused it; the mean scores are unaffected.",
    )


def centered(strengths: Floats) -> Floats:
    """Shift strengths to sum to zero along the last axis."""
    shifted: Floats = strengths - strengths.mean(axis=-1, keepdims=True)
    return shifted


def win_probabilities(strengths: Floats) -> Floats:
    """Return P(row beats column), with 0 on the diagonal."""
    chances: Floats = 1.0 / (1.0 + np.exp(strengths[None, :] - strengths[:, None]))
    np.fill_diagonal(chances, 0.0)
    return chances


def information(
    strengths: Floats, pair_counts: Floats, virtual_ties: float = VIRTUAL_TIES
) -> Floats:
    """Return the negative Hessian of the log-likelihood, made invertible.

    The likelihood does not depend on the sum of strengths, so a penalty keeps it at zero.
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
    """Return a penalty of the size of the other entries, to preserve precision."""
    return float(pair_counts.sum() + 1.0) / max(len(pair_counts), 1) ** 2


def _logistic(values: Floats) -> Floats:
    result: Floats = 1.0 / (1.0 + np.exp(-values))
    return result


def _safe_length(step: Floats) -> float:
    """Return a damping factor that prevents overshooting, near 1 for small steps.

    The curvature of a logistic changes by at most `exp(r)` if log-odds move by `r`; a full Newton
    step from far away can diverge.
    """
    reach = float(np.ptp(np.append(step, 0.0)))
    return math.log1p(reach) / reach if reach > 0.0 else 1.0


MATRIX_CANDIDATES = 200
"""Above this many candidates, no win matrix is computed."""

_BLOCK_CELLS = 100_000
# Process queries in blocks that fit into the processor's cache.


def wins_and_losses(scores: Floats, tie_margin: float) -> tuple[Ints, Ints]:
    """Return how many others each candidate beats and loses to, per query (0 if missing)."""
    threshold = win_threshold(tie_margin)
    wins, losses = np.zeros(scores.shape, np.int64), np.zeros(scores.shape, np.int64)
    block = max(1, _BLOCK_CELLS // max(scores.shape[1], 1))
    for start in range(0, len(scores), block):
        rows = slice(start, start + block)
        wins[rows], losses[rows] = _wins_and_losses(scores[rows], threshold)
    return wins, losses


def win_totals(scores: Floats, tie_margin: float) -> Floats:
    """Return each candidate's wins per query against the others, ties half; 0 if missing.

    >>> win_totals(np.array([[5.0, 7.0, 7.05, np.nan]]), tie_margin=0.1).tolist()
    [[0.0, 1.5, 1.5, 0.0]]
    """
    wins, losses = wins_and_losses(scores, tie_margin)
    present = ~np.isnan(scores)
    opponents = present.sum(axis=1, keepdims=True) - 1
    totals: Floats = np.where(present, (opponents + wins - losses) / 2.0, 0.0)
    return totals


def pair_counts(scores: Floats) -> Floats:
    """Return the number of queries on which each two candidates meet, with 0 on the diagonal."""
    present = (~np.isnan(scores)).astype(np.float64)
    counts: Floats = present.T @ present
    np.fill_diagonal(counts, 0.0)
    return counts


def win_matrix(scores: Floats, tie_margin: float) -> Floats | None:
    """Return the row's share of wins over the column, ties half; None above `MATRIX_CANDIDATES`.

    NaN for pairs that never meet, and on the diagonal.
    """
    candidates = scores.shape[1]
    if candidates > MATRIX_CANDIDATES:
        return None
    shares = np.full((candidates, candidates), np.nan)
    met = pair_counts(scores)
    for row in range(candidates):
        balance = compare(scores[:, row : row + 1], scores, tie_margin).sum(axis=0, dtype=np.int64)
        np.divide(met[row] + balance, 2.0 * met[row], out=shares[row], where=met[row] > 0)
    return shares


def _wins_and_losses(scores: Floats, threshold: float) -> tuple[Ints, Ints]:
    """Count wins and losses: in sorted order, a candidate beats a prefix of the others.

    The number of prefixes that include a candidate is its number of losses.
    """
    queries, candidates = scores.shape
    order = np.argsort(scores, axis=1)
    ascending = np.take_along_axis(scores, order, axis=1)
    missing = np.isnan(ascending)

    beaten = _beaten_prefix(ascending, threshold)
    # The prefix of a missing score is placed past the end, where it does not count.
    reach = np.where(missing, candidates, beaten)
    bins = reach + (np.arange(queries) * (candidates + 1))[:, None]
    tally = np.bincount(bins.ravel(), minlength=queries * (candidates + 1))
    not_reaching = np.cumsum(tally.reshape(queries, candidates + 1), axis=1)[:, :candidates]
    lost = (candidates - missing.sum(axis=1))[:, None] - not_reaching

    wins, losses = np.empty_like(beaten), np.empty_like(beaten)
    np.put_along_axis(wins, order, np.where(missing, 0, beaten), axis=1)
    np.put_along_axis(losses, order, np.where(missing, 0, lost), axis=1)
    return wins, losses


def _beaten_prefix(ascending: Floats, threshold: float) -> Ints:
    """Return, for each place of each sorted row, the length of the prefix it beats.

    Bisects on the difference, because `searchsorted` on `score - threshold` rounds differently
    from `compare`.
    """
    queries, candidates = ascending.shape
    low = np.zeros((queries, candidates), dtype=np.int64)
    high = np.broadcast_to(np.arange(candidates), low.shape).copy()
    for _ in range(candidates.bit_length()):
        middle = (low + high) // 2
        wins = ascending - np.take_along_axis(ascending, middle, axis=1) >= threshold
        open_ = low < high
        low = np.where(open_ & wins, middle + 1, low)
        high = np.where(open_ & ~wins, middle, high)
    return low


def wins_constant_share(wins: Floats, present: Bools, clusters: Ints) -> Bools:
    """Return which columns win the same share of their comparisons in every cluster."""
    met = np.where(present, present.sum(axis=1, keepdims=True) - 1.0, 0.0)
    won, played = (np.zeros((int(clusters.max()) + 1, met.shape[1])) for _ in range(2))
    np.add.at(won, clusters, wins)
    np.add.at(played, clusters, met)
    # Wins are whole or half, so that both products are exact.
    constant: Bools = (won * met.sum(axis=0) == played * wins.sum(axis=0)).all(axis=0)
    return constant


def groups_with_a_score(present: Bools, groups: Ints) -> Ints:
    """Return in how many groups of rows each column has a score."""
    scored = np.zeros((int(groups.max()) + 1, present.shape[1]), bool)
    np.logical_or.at(scored, groups, present)
    counts: Ints = scored.sum(axis=0)
    return counts
