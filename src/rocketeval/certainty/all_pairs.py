"""Every two candidates of a ranking compared at once: what `compare` says, in matrix products."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rocketeval.certainty.compare import Verdict, find_verdict
from rocketeval.certainty.pair_flips import flip_p_values, work
from rocketeval.certainty.pairs import Floats, Ints, Pairs, closed_up
from rocketeval.grid import ScoreGrid
from rocketeval.outcomes import compare as compare_scores
from rocketeval.ranking.bootstrap import least_queries, resample_queries, tail_probability
from rocketeval.records import Interval

MOST_CANDIDATES = 100
"""Of a longer ranking, its first are compared."""
MOST_WORK = 1.5e11
"""Multiplications that all pairs may take: some seconds."""

NOTHING_SHARED = "share no query"
"""In place of a verdict, where there is nothing to compare."""

_FEWER = 0.8


@dataclass(frozen=True, eq=False)
class AllPairs:
    """Comparisons of the first candidates, pair after pair: (0, 1), (0, 2), ..., (1, 2), ..."""

    first: int
    """How many candidates were compared."""
    effect: Floats
    """Mean of the former minus the latter; NaN where they share no query."""
    low: Floats
    high: Floats
    """Ends of the effect's interval; NaN where unknown."""
    p_value: Floats
    """NaN where they share no query."""
    wins: Ints
    ties: Ints
    losses: Ints
    verdict: tuple[Verdict | str, ...]
    """Of the former against the latter, or that they share no query."""


def compare_all(
    grid: ScoreGrid,
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> AllPairs:
    """Compare the first candidates of a grid, as many as can be compared in some seconds."""
    pairs, first = _affordable(Pairs.of(grid.scores[:, :MOST_CANDIDATES]))
    effect, low, high = _effects(pairs, bootstrap, seed, level)
    p_value = np.where(pairs.shared > 0, flip_p_values(pairs, seed), np.nan)
    outcomes = [_outcomes(pairs.scores, column, tie_margin) for column in range(first)]
    wins, losses = (np.concatenate([found[side] for found in outcomes]) for side in (0, 1))
    return AllPairs(
        first=first,
        effect=effect,
        low=low,
        high=high,
        p_value=p_value,
        wins=wins,
        ties=pairs.shared - wins - losses,
        losses=losses,
        verdict=_verdicts(effect, low, high, p_value, level),
    )


def _verdicts(
    effect: Floats, low: Floats, high: Floats, p_value: Floats, level: float
) -> tuple[Verdict | str, ...]:
    figures = zip(*(column.tolist() for column in (effect, low, high, p_value)), strict=True)
    return tuple(
        NOTHING_SHARED if p != p else find_verdict(Interval(*ends), p, None, level)
        for *ends, p in figures
    )


def _affordable(pairs: Pairs) -> tuple[Pairs, int]:
    """The pairs of as many of the first candidates as `MOST_WORK` allows, and how many these are.

    Gaps make pairs differ in how many queries they share, and each number has its own signs.
    """
    first: int = pairs.scores.shape[1]
    while first > 2 and work(pairs) > MOST_WORK:
        first = max(2, int(first * _FEWER))
        pairs = pairs.first(first)
    return pairs, first


def _effects(pairs: Pairs, times: int, seed: int, level: float) -> tuple[Floats, Floats, Floats]:
    """Each pair's mean difference, and the ends of its interval."""
    value, low, high = (np.full(len(pairs.former), np.nan) for _ in range(3))
    for queries, members in pairs.grouped(pairs.shared):
        if queries == 0:
            continue
        differences = pairs.differences(members)
        known = closed_up(differences, ~np.isnan(differences))
        value[members] = means = known.mean(axis=0)
        if queries < least_queries(level):
            continue
        drawn = [counts @ known for counts in resample_queries(queries, times, seed)]
        tail = tail_probability(queries, level)
        ends = np.quantile(np.concatenate(drawn) / queries, [tail, 1.0 - tail], axis=0)
        low[members], high[members] = np.minimum(ends[0], means), np.maximum(ends[1], means)
    return value, low, high


def _outcomes(scores: Floats, column: int, tie_margin: float) -> tuple[Ints, Ints]:
    """Queries that a candidate wins against each later one, and those it loses."""
    found = compare_scores(scores[:, column : column + 1], scores[:, column + 1 :], tie_margin)
    return (found > 0).sum(axis=0), (found < 0).sum(axis=0)
