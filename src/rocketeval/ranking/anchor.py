"""The zero of the rating scale: the mean of an island, or one candidate that is held fixed.

With an anchor every rating is a difference to that candidate: its own rating is given, not
measured, so it has no interval, and the other intervals say how far each is from it. Ranks, groups
and differences between candidates do not depend on the choice.

A candidate that shares no query with the anchor, not even through others, has no place on its
scale, so that an anchor refuses islands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import ConfigError
from rocketeval.names import did_you_mean, listed
from rocketeval.ranking.bradley_terry import ELO_PER_STRENGTH

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def find_anchor(
    anchor: str | None, candidates: Sequence[str], unranked: Sequence[str] = ()
) -> int | None:
    """The anchor's place among the candidates; ConfigError when it is not one of them."""
    if anchor is None:
        return None
    if anchor in unranked:
        raise ConfigError(
            f"`ranking.anchor` is {anchor!r}, which has no score on any query.",
            hint="Choose another anchor, or see failures.jsonl in the run for what went wrong.",
        )
    if anchor not in candidates:
        raise ConfigError(
            f"`ranking.anchor` is {anchor!r}, which is none of the {len(candidates)} candidates.",
            hint=did_you_mean(anchor, candidates),
        )
    return candidates.index(anchor)


def refuse_islands(anchor: int | None, candidates: Sequence[str], islands: Ints) -> None:
    """Raise ConfigError when some candidates cannot be placed against the anchor."""
    if anchor is None:
        return
    apart = np.flatnonzero(islands != islands[anchor])
    if len(apart):
        names = listed((repr(candidates[column]) for column in apart.tolist()), most=10)
        raise ConfigError(
            f"{len(apart)} of {len(candidates)} candidates share no query with the anchor "
            f"{candidates[anchor]!r}, not even through others: {names}.",
            hint="Leave these candidates out, give them responses to the anchor's queries, or "
            "remove `ranking.anchor`: without it they are rated apart, around their own mean.",
        )


def to_ratings(strengths: Floats, islands: Ints, anchor: int | None, rating: float) -> Floats:
    """Strengths (one row a fit) on the Elo scale: the anchor, or each island's mean, at `rating`.

    >>> to_ratings(np.array([[0.0, np.log(10.0)]]), np.array([1, 1]), 0, 1100.0)
    array([[1100., 1500.]])
    """
    if not math.isfinite(rating):
        raise ConfigError(f"`ranking.anchor_rating` is {rating}", hint="Use one such as 1000.")
    zero = _island_means(strengths, islands) if anchor is None else strengths[:, [anchor]]
    ratings: Floats = rating + ELO_PER_STRENGTH * (strengths - zero)
    return ratings


def _island_means(strengths: Floats, islands: Ints) -> Floats:
    """For each column the mean of its island, in every row."""
    members = (islands[:, None] == np.arange(1, islands.max() + 1)).astype(np.float64)
    means: Floats = ((strengths @ members) / members.sum(axis=0)) @ members.T
    return means
