"""Who beats whom, from scores alone, without a list of pairs.

A candidate beats another on a query when its score is higher by the tie margin or more. A smaller
difference is a tie, worth half a win to each. At margin 0 only equal scores tie.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rocketeval.outcomes import compare, win_threshold

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MATRIX_CANDIDATES = 200
"""Above this a win matrix is neither readable nor cheap."""

_BLOCK_CELLS = 100_000
# Queries are taken in blocks: the work space stays small, and in the processor's cache.


def wins_and_losses(scores: Floats, tie_margin: float) -> tuple[Ints, Ints]:
    """How many others each candidate beats, and loses to, on each query (0 where missing)."""
    threshold = win_threshold(tie_margin)
    wins, losses = np.zeros(scores.shape, np.int64), np.zeros(scores.shape, np.int64)
    block = max(1, _BLOCK_CELLS // max(scores.shape[1], 1))
    for start in range(0, len(scores), block):
        rows = slice(start, start + block)
        wins[rows], losses[rows] = _wins_and_losses(scores[rows], threshold)
    return wins, losses


def win_totals(scores: Floats, tie_margin: float) -> Floats:
    """Each candidate's wins per query against the others present, ties half; 0 where missing.

    >>> win_totals(np.array([[5.0, 7.0, 7.05, np.nan]]), tie_margin=0.1).tolist()
    [[0.0, 1.5, 1.5, 0.0]]
    """
    wins, losses = wins_and_losses(scores, tie_margin)
    present = ~np.isnan(scores)
    opponents = present.sum(axis=1, keepdims=True) - 1
    totals: Floats = np.where(present, (opponents + wins - losses) / 2.0, 0.0)
    return totals


def pair_counts(scores: Floats) -> Floats:
    """On how many queries each two candidates meet; a candidate never meets itself."""
    present = (~np.isnan(scores)).astype(np.float64)
    counts: Floats = present.T @ present
    np.fill_diagonal(counts, 0.0)
    return counts


def win_matrix(scores: Floats, tie_margin: float) -> Floats | None:
    """Row's share of wins over column, ties half; None above `MATRIX_CANDIDATES` candidates.

    NaN where two never meet, and on the diagonal.
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
    """In sorted order a candidate beats a prefix of the others: a bisection finds its length.

    How many prefixes do not reach a candidate then says how many it loses to.
    """
    queries, candidates = scores.shape
    order = np.argsort(scores, axis=1)
    ascending = np.take_along_axis(scores, order, axis=1)
    missing = np.isnan(ascending)

    beaten = _beaten_prefix(ascending, threshold)
    # A missing score's prefix is put past the end, where it reaches nobody in the count below.
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
    """For each place of each sorted row, the length of the prefix it beats.

    A bisection on the difference itself, because `searchsorted` on `score - threshold` rounds
    differently from `compare`.
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
