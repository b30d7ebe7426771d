"""Which queries to label next, and how narrow the interval will then be.

Queries are grouped by score. A label is worth most where there are many queries and where scores
have missed the labels by most (Neyman's allocation); each next label goes where it takes most off
the variance. Within a group queries are drawn at random, so that the labels stand for the rest and
intervals hold. Any beginning of the list is as good a choice as its number allows: stop where you
like, but not because of what the labels say.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Bools, Floats, Ints
from rocketeval.errors import ConfigError
from rocketeval.stats.prediction_powered import (
    FEWEST_IN_STRATUM,
    FEWEST_LABELS,
    LabeledSample,
    LabelTarget,
    fit_mean,
    merge_thin,
    satterthwaite,
)

ASSUMED_CORRELATION = 0.5
"""Of labels and scores, as long as there are too few labels to see it."""
PRIOR_LABELS = 8.0
"""With so many labels, a stratum's own spread counts as much as the spread over all strata."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """What is known, or assumed, of the labels that queries would get."""

    predicted: Floats
    """The label that the scores predict, by query."""
    residual: Floats
    """Variance of the label about it, by query; equal within a stratum."""
    assumed: bool
    """Whether this is an assumption, for want of labels."""


def measure_spread(sample: LabeledSample) -> Spread:
    """How far labels lie from what scores predict; strata with few labels lean on the others."""
    known = sample.labelled
    if known.sum() < FEWEST_LABELS:
        share = ASSUMED_CORRELATION**2
        unexplained = np.full(len(known), (1.0 - share) * float(sample.scores.var()))
        return Spread(ASSUMED_CORRELATION * sample.scores, unexplained, assumed=True)
    merged = merge_thin(sample.strata, known)
    fit = fit_mean(sample, merged)
    squares = (sample.labels - fit.predicted)[known] ** 2
    squares *= len(squares) / (len(squares) - merged.max() - 2.0)
    strata = int(sample.strata.max()) + 1
    own = np.bincount(sample.strata[known], weights=squares, minlength=strata)
    counts = np.bincount(sample.strata[known], minlength=strata)
    shrunk = (own + PRIOR_LABELS * squares.mean()) / (counts + PRIOR_LABELS)
    return Spread(fit.predicted, shrunk[sample.strata], assumed=False)


def expected_width(
    spread: Spread, strata: Ints, planned: Bools, level: float, *, use_scores: bool
) -> float:
    """The width to expect of the interval once the `planned` queries are labelled.

    NaN for fewer labels than an interval needs.
    """
    from scipy.special import stdtrit

    labels, queries = int(planned.sum()), len(planned)
    if labels < FEWEST_LABELS:
        return math.nan
    merged = merge_thin(strata, planned)
    sizes = np.bincount(merged)
    counts = np.bincount(merged[planned]).astype(np.float64)
    inside = np.bincount(merged, weights=spread.residual) / sizes
    slopes = 1.0 if use_scores else 0.0
    between = float(spread.predicted.var())
    if not use_scores:
        means = np.bincount(merged, weights=spread.predicted) / sizes
        inside = inside + np.bincount(merged, (spread.predicted - means[merged]) ** 2) / sizes
        between = float(means[merged].var())
    # A slope estimated from few labels costs its own error and that of leaving each label out.
    parts = (sizes / queries) ** 2 * inside / counts * (1.0 + 2.0 * slopes / (labels - 3.0))
    freedom = satterthwaite(parts, counts - 1.0) - slopes
    variance = between / queries + float(parts.sum())
    return 2.0 * float(stdtrit(freedom, (1.0 + level) / 2.0)) * math.sqrt(variance)


STEPS = (0, 10, 20, 50, 100)
"""More labelled queries for which the width is forecast."""


@dataclass(frozen=True, slots=True)
class WantedLabel:
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

    target: LabelTarget
    labelled: int
    """Queries that have all labels of the target."""
    queries: int
    """Queries with all scores of the target."""
    wanted: tuple[WantedLabel, ...]
    forecasts: tuple[Forecast, ...]
    """Now, and with more labelled queries; for several candidates, of the average one."""
    assumed: bool
    """Whether there are too few labels to know how far scores miss them, so that the widths rest
    on an assumption: labels spread like scores, correlation 0.5."""
    level: float
    seed: int


def advise(
    sampled: Sequence[LabeledSample],
    target: LabelTarget,
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
    sample: LabeledSample,
    target: LabelTarget,
    drawn: Sequence[int],
    given: Collection[tuple[str, str]],
) -> tuple[WantedLabel, ...]:
    return tuple(
        WantedLabel(sample.query_ids[row], candidate, int(sample.strata[row]), order)
        for order, row in enumerate(drawn, start=1)
        for candidate in target.labelled_together
        if (sample.query_ids[row], candidate) not in given
    )
