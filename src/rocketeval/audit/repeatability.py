"""Disagreement of a judge with itself, across samples and across ways of asking.

Both are measured on items, as in figures 4 and 5 of the RocketEval paper. A `p_yes` of 0.5 or more
counts as yes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Floats, Ints, Places
from rocketeval.errors import ConfigError
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import Groups, Resampling, query_places, renumbered


@dataclass(frozen=True, slots=True)
class SampledShare:
    """Expected disagreement for one number of samples per item."""

    times: int
    """Samples per item."""
    share: Interval | None
    """Expected share of items whose samples differ; None without items."""


@dataclass(frozen=True, slots=True)
class SamplingDisagreement:
    """Expected self-disagreement of a sampling judge, computed from its probabilities."""

    shares: tuple[SampledShare, ...]
    items: int
    missing: int
    """Items without a probability."""


@dataclass(frozen=True, slots=True)
class PositionDisagreement:
    """Disagreement of two gradings at one checklist position."""

    position: int
    items: int
    differing: Interval
    """Share of items with a yes in one grading and a no in the other."""
    difference: Interval
    """Mean distance of the two `p_yes`."""
    largest: float
    """Largest distance."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Disagreement of two gradings of the same items."""

    differing: Interval | None
    """Share of items with a yes in one grading and a no in the other; None without items."""
    difference: Interval | None
    """Mean distance of the two `p_yes`."""
    largest: float | None
    """Largest distance."""
    by_position: tuple[PositionDisagreement, ...]
    """In order; positions without items are left out."""
    items: int
    missing: int
    """Items without a probability in one of the gradings."""


def sampling_disagreement(
    p_yes: Floats,
    groups: Groups,
    times: Sequence[int] = (2, 3, 5, 10),
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> SamplingDisagreement:
    """Return the expected share of items on which samples of `p_yes` differ; `groups` are queries.

    >>> found = sampling_disagreement(np.array([0.5, 1.0, np.nan]), ["q", "q", "r"], [2])
    >>> found.shares[0].share.value, found.items, found.missing
    (0.25, 2, 1)
    """
    if any(count < 2 for count in times):
        raise ConfigError(
            f"{min(times)} samples cannot disagree.", hint="Use at least 2 samples per item."
        )
    refuse_improbable(p_yes)
    known = ~np.isnan(p_yes)
    p, places = p_yes[known], renumbered(query_places(groups, len(p_yes))[known])
    resampling = Resampling(bootstrap, seed, level)
    shares = tuple(
        SampledShare(count, resampling.mean(1.0 - p**count - (1.0 - p) ** count, places))
        for count in times
    )
    return SamplingDisagreement(shares, len(p), int((~known).sum()))


def disagreement(
    one: Floats,
    two: Floats,
    groups: Groups,
    positions: Ints | None = None,
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Disagreement:
    """Compare two gradings of the same items; `groups` are their queries.

    With `positions`, the position of each item in its checklist, also report each position.
    """
    refuse_improbable(one)
    refuse_improbable(two)
    if len(one) != len(two):
        raise ValueError(f"gradings of {len(one)} and of {len(two)} items")
    known = ~(np.isnan(one) | np.isnan(two))
    places = renumbered(query_places(groups, len(one))[known])
    apart = np.abs(one - two)[known]
    differing = ((one >= 0.5) != (two >= 0.5))[known].astype(np.float64)
    resampling = Resampling(bootstrap, seed, level)
    by_position: tuple[PositionDisagreement, ...] = ()
    if positions is not None:
        by_position = _by_position(differing, apart, positions[known], places, resampling)
    return Disagreement(
        differing=resampling.share(differing, places),
        difference=resampling.mean(apart, places),
        largest=float(apart.max()) if len(apart) else None,
        by_position=by_position,
        items=len(apart),
        missing=int((~known).sum()),
    )


def refuse_improbable(p_yes: Floats) -> None:
    """Raise ValueError for a probability outside 0..1."""
    if ((p_yes < 0.0) | (p_yes > 1.0)).any():
        raise ValueError("a probability is below 0 or above 1")


def _by_position(
    differing: Floats, apart: Floats, positions: Ints, places: Places, resampling: Resampling
) -> tuple[PositionDisagreement, ...]:
    found, parts, items = np.unique(positions, return_inverse=True, return_counts=True)
    largest = np.zeros(len(found))
    np.maximum.at(largest, parts, apart)
    shares = resampling.shares(differing, places, parts, len(found))
    differences = resampling.means(apart, places, parts, len(found))
    return tuple(
        PositionDisagreement(int(found[part]), int(items[part]), share, difference, largest[part])
        for part, (share, difference) in enumerate(zip(shares, differences, strict=True))
        if share is not None and difference is not None
    )
