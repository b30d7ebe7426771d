"""Which queries to label next, and how narrow the interval will then be.

Queries are grouped by score. A label is worth most where there are many queries and where scores
have missed the labels by most (Neyman's allocation); each next label goes where it takes most off
the variance. Within a group queries are drawn at random, so that the labels stand for the rest and
intervals hold. Any beginning of the list is as good a choice as its number allows: stop where you
like, but not because of what the labels say.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.certainty.sample import Sample, Target
from rocketeval.certainty.spread import Spread, expected_width, measure_spread
from rocketeval.certainty.strata import FEWEST_IN_STRATUM
from rocketeval.errors import ConfigError

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

STEPS = (0, 10, 20, 50, 100)
"""More labelled queries for which the width is forecast."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A label to get."""

    query_id: str
    candidate: str
    stratum: int
    """From 0; candidates of one query share it."""
    order: int
    """From 1: the most useful query first. All labels of a query have the same."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """How wide the interval will be, to expect."""

    labelled: int
    """Queries with all labels of the target."""
    with_scores: float
    """Expected width of the prediction-powered interval."""
    labels_only: float
    """Expected width of labels alone."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to label next and what it buys."""

    target: Target
    labelled: int
    """Queries that have all labels of the target."""
    queries: int
    """Queries with all scores of the target."""
    wanted: tuple[Wanted, ...]
    forecasts: tuple[Forecast, ...]
    """Now, and with more labelled queries; for several candidates, of the average one."""
    assumed: bool
    """Whether there are too few labels to know how far scores miss them, so that the widths rest
    on an assumption: labels spread like scores, correlation 0.5."""
    level: float
    seed: int


def advise(
    sampled: Sequence[Sample],
    target: Target,
    *,
    given: Collection[tuple[str, str]] = (),
    more: int = 20,
    seed: int = 0,
    level: float = 0.95,
) -> Advice:
    """The next `more` queries to label for the target that `sampled` was made for.

    `given` are the responses, by query id and candidate, whose label is there already.
    """
    if more < 1:
        raise ConfigError(f"{more} more queries to label", hint="Ask for at least 1.")
    strata = sampled[0].strata
    labelled = np.all([sample.labelled for sample in sampled], axis=0)
    spreads = [measure_spread(sample) for sample in sampled]
    residual = np.mean([spread.residual for spread in spreads], axis=0)
    places = allocate(strata, residual, labelled, max(more, *STEPS))
    drawn = _draw(strata, labelled, places, seed)
    return Advice(
        target=target,
        labelled=int(labelled.sum()),
        queries=len(strata),
        wanted=_wanted(sampled[0], target, drawn[:more], given),
        forecasts=tuple(
            _forecast(spreads, strata, _with(labelled, drawn[:step]), level)
            for step in STEPS
            if step <= len(drawn)
        ),
        assumed=any(spread.assumed for spread in spreads),
        level=level,
        seed=seed,
    )


def allocate(strata: Ints, residual: Floats, labelled: Bools, more: int) -> list[int]:
    """The stratum of each next label, the most useful first; fewer when queries run out.

    Every stratum first gets the few labels without which it cannot be estimated. Then, taking each
    time the one whose next label takes most off the variance is Neyman's allocation, in whole
    numbers and with the labels that are there already.
    """
    sizes, counts = np.bincount(strata), np.bincount(strata[labelled], minlength=strata.max() + 1)
    worth = sizes * np.bincount(strata, weights=residual)

    def turn(stratum: int) -> tuple[bool, float, int]:
        count = int(counts[stratum])
        thin = count < FEWEST_IN_STRATUM
        gain = float(worth[stratum]) / max(count * (count + 1), 1)
        return (not thin, count if thin else -gain, stratum)

    places: list[int] = []
    queue = [turn(stratum) for stratum in range(len(sizes)) if counts[stratum] < sizes[stratum]]
    heapq.heapify(queue)
    while queue and len(places) < more:
        stratum = heapq.heappop(queue)[-1]
        places.append(stratum)
        counts[stratum] += 1
        if counts[stratum] < sizes[stratum]:
            heapq.heappush(queue, turn(stratum))
    return places


def _forecast(spreads: Sequence[Spread], strata: Ints, planned: Bools, level: float) -> Forecast:
    def width(use_scores: bool) -> float:
        found = [expected_width(s, strata, planned, level, use_scores=use_scores) for s in spreads]
        return float(np.mean(found))

    return Forecast(int(planned.sum()), width(use_scores=True), width(use_scores=False))


def _with(labelled: Bools, rows: Sequence[int]) -> Bools:
    planned = labelled.copy()
    planned[list(rows)] = True
    return planned


def _draw(strata: Ints, labelled: Bools, places: Sequence[int], seed: int) -> list[int]:
    """A query, as a row, for each place; the same seed goes on where labels were given before."""
    shuffled = np.random.default_rng(seed).permutation(len(strata))
    waiting = {
        stratum: iter([row for row in shuffled if strata[row] == stratum and not labelled[row]])
        for stratum in set(places)
    }
    return [int(next(waiting[stratum])) for stratum in places]


def _wanted(
    sample: Sample, target: Target, drawn: Sequence[int], given: Collection[tuple[str, str]]
) -> tuple[Wanted, ...]:
    return tuple(
        Wanted(sample.query_ids[row], candidate, int(sample.strata[row]), order)
        for order, row in enumerate(drawn, start=1)
        for candidate in target.labelled_together
        if (sample.query_ids[row], candidate) not in given
    )
