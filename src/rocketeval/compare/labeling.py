"""Choice of the queries to label next, with a forecast of the interval's width.

Queries are grouped by score. A label is most useful in a group with many queries and large errors
of the scores (Neyman allocation); each next label goes where it reduces the variance most. Within a
group, queries are drawn at random, so that the labels are representative and intervals are valid.
Any prefix of the list is the best choice of its length: stop at any point, but do not decide by the
labels themselves.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from rocketeval.arrays import Bools, Floats, Ints
from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Query, Response, Turn
from rocketeval.stats.prediction_powered import (
    FEWEST_IN_STRATUM,
    FEWEST_LABELS,
    LabeledSample,
    LabelTarget,
    effective_counts,
    fit_mean,
    merge_thin,
    satterthwaite,
    weights_of,
)

if TYPE_CHECKING:
    from rocketeval.store.inputs import Inputs

ASSUMED_CORRELATION = 0.5
"""Assumed correlation of labels and scores if there are too few labels to measure it."""
PRIOR_LABELS = 8.0
"""Prior weight, in labels, of the spread over all strata against a stratum's own spread."""
TINY = 1e-12
"""Variance of residuals that are all equal."""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Predicted labels and their residual variance, measured or assumed."""

    predicted: Floats
    """Label predicted from the score, per query."""
    residual: Floats
    """Variance of the label around the prediction, per query; equal within a stratum."""
    assumed: bool
    """True if assumed because there are too few labels."""
    clusters: Ints | None = None
    """The number of each query's cluster, from 0; None if all queries are independent."""
    shared: float = 0.0
    """Correlation of residuals within a cluster. It is 1 until labels show less, so that widths
    are rarely too narrow."""


def measure_spread(sample: LabeledSample) -> Spread:
    """Measure how far labels are from predictions; shrink strata with few labels to the mean."""
    known = sample.labelled
    if known.sum() < FEWEST_LABELS:
        share = ASSUMED_CORRELATION**2
        unexplained = np.full(len(known), (1.0 - share) * float(sample.scores.var()))
        predicted, clusters = ASSUMED_CORRELATION * sample.scores, sample.clusters
        return Spread(predicted, unexplained, True, clusters, 0.0 if clusters is None else 1.0)
    merged = merge_thin(sample.strata, known)
    fit = fit_mean(sample, merged)
    residuals = (sample.labels - fit.predicted)[known]
    squares = residuals**2
    squares *= len(squares) / (len(squares) - merged.max() - 2.0)
    strata = int(sample.strata.max()) + 1
    own = np.bincount(sample.strata[known], weights=squares, minlength=strata)
    counts = np.bincount(sample.strata[known], minlength=strata)
    shrunk = (own + PRIOR_LABELS * squares.mean()) / (counts + PRIOR_LABELS)
    variances: Floats = shrunk[sample.strata]
    shared = 0.0
    if sample.clusters is not None:
        pairs, products = _within_clusters(
            residuals / np.sqrt(np.maximum(variances[known], TINY)), sample.clusters[known]
        )
        prior = PRIOR_LABELS / 2.0
        shared = min(1.0, max(0.0, (products + prior) / (pairs + prior)))
    return Spread(fit.predicted, variances, False, sample.clusters, shared)


def _within_clusters(values: Floats, clusters: Ints) -> tuple[float, float]:
    """Return the number of pairs of values in the same cluster, and the sum of their products."""
    sizes = np.bincount(clusters).astype(np.float64)
    sums = np.bincount(clusters, weights=values)
    pairs = float((sizes * (sizes - 1.0)).sum()) / 2.0
    return pairs, (float(sums @ sums) - float(values @ values)) / 2.0


def expected_width(
    spread: Spread, strata: Ints, planned: Bools, level: float, *, use_scores: bool
) -> float:
    """Return the expected width of the interval after labeling the `planned` queries.

    NaN if there are too few labels for an interval.
    """
    from scipy.special import stdtrit

    labels, queries = int(planned.sum()), len(planned)
    if labels < FEWEST_LABELS:
        return math.nan
    merged = merge_thin(strata, planned)
    sizes = np.bincount(merged)
    weights = weights_of(strata, merged, planned)
    counts = effective_counts(merged[planned], weights)
    inside = np.bincount(merged, weights=spread.residual) / sizes
    slopes = 1.0 if use_scores else 0.0
    center, apart = spread.predicted, np.zeros(queries)
    if not use_scores:
        center = (np.bincount(merged, weights=spread.predicted) / sizes)[merged]
        apart = spread.predicted - center
        inside = inside + np.bincount(merged, apart**2) / sizes
    # A slope estimated from few labels adds its own error and the leave-one-out error.
    more = 1.0 + 2.0 * slopes / (labels - 3.0)
    parts = (sizes / queries) ** 2 * inside / counts * more
    freedom = satterthwaite(parts, counts - 1.0) - slopes
    variance = float(center.var()) / queries + float(parts.sum())
    if spread.clusters is not None:
        labeled = len(np.unique(spread.clusters[planned]))
        freedom = max(1.0, labeled - len(sizes) - slopes)
        shares = (sizes / queries / np.bincount(merged[planned]))[merged]
        shares[planned] *= weights
        variance += _shared_variance(spread, center, apart, shares, planned, more)
        if labeled < 2:
            return math.nan
    return 2.0 * float(stdtrit(freedom, (1.0 + level) / 2.0)) * math.sqrt(variance)


def _shared_variance(
    spread: Spread, center: Floats, apart: Floats, shares: Floats, planned: Bools, more: float
) -> float:
    """Return what queries of the same cluster add to the variance of independent queries.

    `center` is what all queries contribute, `apart` what scores would explain but are not used
    for. A label has the weight in `shares`; `more` multiplies what labels contribute.
    """
    assert spread.clusters is not None
    _, every = _within_clusters((center - center.mean()) / len(center), spread.clusters)
    clusters, weights = spread.clusters[planned], shares[planned]
    _, errors = _within_clusters(weights * np.sqrt(spread.residual[planned]), clusters)
    pairs, products = _within_clusters(apart, spread.clusters)
    _, drawn = _within_clusters(weights, clusters)
    unused = products / pairs * drawn if pairs else 0.0
    return 2.0 * (every + more * (spread.shared * errors + max(0.0, unused)))


STEPS = (0, 10, 20, 50, 100)
"""Numbers of additional labeled queries to forecast."""


@dataclass(frozen=True, slots=True)
class WantedLabel:
    """One label to collect."""

    query_id: str
    candidate: str
    stratum: int
    """Stratum from 0; candidates of one query share it."""
    order: int
    """Rank of the query from 1, the most useful first; all labels of a query share it."""


@dataclass(frozen=True, slots=True)
class WantedVote:
    """One pair of responses to vote on."""

    query_id: str
    candidate_a: str
    candidate_b: str
    """The two in random order, which is the order to show them in."""
    stratum: int
    """Stratum by difference of the scores, from 0 for the closest pairs."""
    order: int
    """Rank from 1."""


PAIR_STRATA = 3
"""Number of groups of pairs by difference of their scores."""


def draw_pairs(
    grid: ScoreGrid,
    candidates: Sequence[str],
    *,
    voted: Collection[tuple[str, frozenset[str]]] = (),
    more: int = 20,
    seed: int = 0,
) -> tuple[WantedVote, ...]:
    """Draw pairs of responses to vote on, at random and evenly from strata by score difference.

    The strata have equal sizes, so that the votes are representative of all pairs. The same seed
    continues after the pairs in `voted`.
    """
    names = {name: column for column, name in enumerate(grid.candidates)}
    columns = [names[name] for name in candidates]
    pairs = [
        (row, first, second, abs(float(grid.scores[row, first] - grid.scores[row, second])))
        for row in range(len(grid.query_ids))
        for first, second in combinations(columns, 2)
    ]
    known = sorted((pair for pair in pairs if not math.isnan(pair[3])), key=lambda pair: pair[3])
    random = np.random.default_rng(seed)
    queues = []
    for stratum, places in enumerate(np.array_split(np.arange(len(known)), PAIR_STRATA)):
        shuffled = [
            (known[place], bool(random.integers(2))) for place in random.permutation(places)
        ]
        queues.append([(stratum, *each) for each in shuffled])
    # Round-robin, so that any prefix is balanced.
    turns = (each for row in zip_longest(*queues) for each in row if each is not None)
    drawn: list[WantedVote] = []
    for stratum, (row, first, second, _), swapped in turns:
        query, (a, b) = grid.query_ids[row], (grid.candidates[first], grid.candidates[second])
        if len(drawn) < more and (query, frozenset((a, b))) not in voted:
            shown = (b, a) if swapped else (a, b)
            drawn.append(WantedVote(query, *shown, stratum, len(drawn) + 1))
    return tuple(drawn)


@dataclass(frozen=True, slots=True)
class Forecast:
    """Expected width of the interval for a number of labeled queries."""

    labelled: int
    """Queries with all labels of the target."""
    with_scores: float
    """Expected width of the prediction-powered interval."""
    labels_only: float
    """Expected width of the interval from labels alone."""


@dataclass(frozen=True, slots=True)
class Advice:
    """Labels to collect next, with forecasts of the interval's width."""

    target: LabelTarget
    labelled: int
    """Labeled queries: all candidates of the target have a label."""
    queries: int
    """Queries with all scores of the target."""
    wanted: tuple[WantedLabel, ...]
    forecasts: tuple[Forecast, ...]
    """Forecasts for now and for more labeled queries; averaged over candidates."""
    assumed: bool
    """True if there are too few labels to measure the error of the scores: the widths then assume
    that labels vary like scores, with a correlation of 0.5."""
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
    """Choose the next `more` queries to label for the target of `sampled`.

    `given` holds the (query id, candidate) pairs that already have a label.
    """
    if more < 1:
        raise ConfigError(f"Cannot choose {more} queries to label.", hint="Choose at least 1.")
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
    """Return the stratum of each next label, the most useful first; fewer if queries run out.

    Every stratum first gets the minimum of labels for an estimate. Then each label goes to the
    stratum where it reduces the variance most: Neyman allocation in whole numbers, given the
    existing labels.
    """
    sizes, counts = np.bincount(strata), np.bincount(strata[labelled], minlength=strata.max() + 1)
    variances = sizes * np.bincount(strata, weights=residual)

    def turn(stratum: int) -> tuple[bool, float, int]:
        count = int(counts[stratum])
        thin = count < FEWEST_IN_STRATUM
        gain = float(variances[stratum]) / max(count * (count + 1), 1)
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
    """Draw a query row for each place; the same seed continues after earlier labels."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class RowToLabel:
    """A response to label; with a value, it is a row of labels.jsonl."""

    query_id: str
    candidate: str
    history: tuple[Turn, ...]
    query: str
    response: str
    value: float | None = None
    stratum: int
    order: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RowToVote:
    """A pair of responses to vote on; with a winner, it is a row of votes.jsonl."""

    query_id: str
    candidate_a: str
    candidate_b: str
    history: tuple[Turn, ...]
    query: str
    response_a: str
    response_b: str
    winner: str | None = None
    stratum: int
    order: int


def rows_to_label(inputs: Inputs, wanted: Sequence[WantedLabel]) -> Iterator[RowToLabel]:
    """Yield the rows to label, in the order of `wanted`."""
    responses = _responses(inputs, (row.query_id for row in wanted))
    for row in wanted:
        query, response = inputs.queries[row.query_id], responses[row.query_id, row.candidate]
        yield RowToLabel(
            query_id=row.query_id,
            candidate=row.candidate,
            history=_history(query, response),
            query=query.text,
            response=response.text,
            stratum=row.stratum,
            order=row.order,
        )


def rows_to_vote(inputs: Inputs, wanted: Sequence[WantedVote]) -> Iterator[RowToVote]:
    """Yield the pairs to vote on, in the order of `wanted`."""
    responses = _responses(inputs, (row.query_id for row in wanted))
    for row in wanted:
        query, first = inputs.queries[row.query_id], responses[row.query_id, row.candidate_a]
        yield RowToVote(
            query_id=row.query_id,
            candidate_a=row.candidate_a,
            candidate_b=row.candidate_b,
            history=_history(query, first),
            query=query.text,
            response_a=first.text,
            response_b=responses[row.query_id, row.candidate_b].text,
            stratum=row.stratum,
            order=row.order,
        )


def _responses(inputs: Inputs, query_ids: Iterable[str]) -> dict[tuple[str, str], Response]:
    chosen = list(dict.fromkeys(query_ids))
    return {(one.query_id, one.candidate): one for one in inputs.responses_to(chosen)}


def _history(query: Query, response: Response) -> tuple[Turn, ...]:
    return query.history if response.history is None else response.history
