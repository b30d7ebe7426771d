"""The p-values of many pairs at once: `sign_flip_p` of each, in matrix products.

Pairs with as many differences other than zero share their flips. Where two candidates differ on
every query, a flipped sum of differences is a difference of flipped sums of scores, so that a
hundred products serve five thousand pairs. Differences are rounded and scores are not: the sums
that come too close to the one seen are added up again from the differences themselves.
"""

from __future__ import annotations

import numpy as np

from rocketeval.certainty.pairs import BLOCK_CELLS, Floats, Ints, Pairs, closed_up
from rocketeval.certainty.permutation import ENUMERATED, FLIPS, ROUNDING, all_signs, random_flips

_DRAWING = 200
# Making a random sign takes about as long as so many multiplications.
_MOST_CLOSE = 0.01
_CLOSE = 1e-10


def flip_p_values(pairs: Pairs, seed: int) -> Floats:
    """The two-sided p-value of each pair's mean difference."""
    p_values = np.ones(len(pairs.former))
    for size, members in pairs.grouped(pairs.moving):
        if size == 0:
            continue
        differences = pairs.differences(members)
        moving = closed_up(differences, ~np.isnan(differences) & (differences != 0.0))
        observed = np.abs(moving.sum(axis=0)) - ROUNDING * np.abs(moving).sum(axis=0)
        if size <= ENUMERATED:
            p_values[members] = (np.abs(all_signs(size) @ moving) >= observed).mean(axis=0)
            continue
        whole = size == len(pairs.scores)
        count = _by_candidate if whole else _by_pair
        p_values[members] = (count(pairs, members, moving, observed, seed) + 1) / (FLIPS + 1)
    return p_values


def work(pairs: Pairs) -> float:
    """About how many multiplications the p-values take."""
    sizes, counts = np.unique(pairs.moving[pairs.moving > ENUMERATED], return_counts=True)
    blocks = np.ceil(counts * len(pairs.scores) / BLOCK_CELLS)
    products = np.where(sizes == len(pairs.scores), pairs.scores.shape[1] * blocks, counts)
    return float((FLIPS * sizes * (_DRAWING * blocks + 2.0 * products)).sum())


def _by_pair(pairs: Pairs, members: Ints, moving: Floats, observed: Floats, seed: int) -> Ints:
    """How many flips of each pair are as extreme as what was seen."""
    extreme = np.zeros(len(members), dtype=np.int64)
    totals = moving.sum(axis=0)
    for flips in random_flips(len(moving), seed):
        sums = totals - 2.0 * (flips.astype(np.float64) @ moving)
        extreme += (np.abs(sums) >= observed).sum(axis=0)
    return extreme


def _by_candidate(pairs: Pairs, members: Ints, moving: Floats, observed: Floats, seed: int) -> Ints:
    """The same, where nothing is missing and no difference is zero."""
    scores, former, latter = pairs.scores, pairs.former[members], pairs.latter[members]
    rounded = np.abs(scores[:, former] - scores[:, latter] - moving).sum(axis=0)
    slack = rounded + _CLOSE * np.abs(scores).sum()
    extreme = np.zeros(len(members), dtype=np.int64)
    totals = moving.sum(axis=0)
    for flips in random_flips(len(moving), seed):
        flipped = scores.sum(axis=0) - 2.0 * (flips.astype(np.float64) @ scores)
        sums = np.abs(flipped[:, former] - flipped[:, latter])
        close = np.abs(sums - observed) <= slack
        if close.mean() > _MOST_CLOSE:
            sums = np.abs(totals - 2.0 * (flips.astype(np.float64) @ moving))
        else:
            rows, places = np.nonzero(close)
            exact = np.einsum("ij,ij->i", flips[rows].astype(np.float64), moving.T[places])
            sums[rows, places] = np.abs(totals[places] - 2.0 * exact)
        extreme += (sums >= observed).sum(axis=0)
    return extreme
