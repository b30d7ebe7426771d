"""Prediction-powered inference: a mean label from few labels and many scores.

Scores are many and cheap but biased; labels are few and correct. The estimate is the mean label
predicted from the scores of all queries, corrected by the prediction error on labeled queries
(PPI++, Angelopoulos, Duchi and Zrnic, 2023):

    estimate = mean(labels) + weight * (mean score of the others - mean score of the labeled)

The weight is power-tuned: with an uninformative judge it is 0 and only the labels count. The tuned
weight is a slope times the share of unlabeled queries. Here it is the least-squares slope of the
labeled queries: with 15 labels and a correlation of 0.95, the estimate then varies a fifth less
than with the variance of all scores in the slope, and with a useless judge a hundredth more.

For few labels the textbook interval (normal, known weight) is too narrow. This one uses the
leave-one-out variance, including the weight; Student's t instead of the normal; and for labels that
pile up at an end of the scale, it moves the bound on the side of the long tail outward by Hall's
transformation for skewness, but at most by half. `studies/coverage.py` and `studies/few_labels.py`
measure its coverage: with 15 to 30 very skewed labels (skewness beyond 2, a handful of low ones
among tens) 92 to 94% instead of 95%.

Assumptions:
- Within a stratum, the labeled queries were drawn at random, or are at least representative.
- No label was used for the score of its own response. Scores of a fit without the response's
  candidate (out-of-fold) are valid, scores of a fit that used the label (fitted) are not. A fit
  must also treat labeled and unlabeled queries alike; a fit per query, to that query's labels of
  other candidates, does not.
- The mean is over queries like these; the run's queries are a sample of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Bools, Floats, Ints
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval
from rocketeval.text import LABELS_NEXT, did_you_mean

FEWEST_IN_STRATUM = 5
"""A stratum with fewer labels is merged with a neighbor."""


def make_strata(scores: Floats, groups: int, categories: Sequence[str] | None = None) -> Ints:
    """Return the stratum of each query, from 0: `groups` of similar size by score, per category.

    Equal scores share a stratum, so there can be fewer.

    >>> make_strata(np.array([1.0, 5.0, 2.0, 9.0]), 2).tolist()
    [0, 1, 0, 1]
    """
    names = np.array(["" for _ in scores] if categories is None else list(categories), dtype=object)
    strata = np.zeros(len(scores), np.int64)
    for name in sorted(set(names.tolist())):
        here = names == name
        edges = np.quantile(scores[here], np.arange(1, groups) / groups)
        strata[here] = strata.max(initial=-1) + 1 + np.searchsorted(edges, scores[here])
    return _numbered(strata)


def merge_thin(strata: Ints, labelled: Bools) -> Ints:
    """Merge each stratum with too few labels into the neighbor that has fewer labels."""
    merged = _numbered(strata)
    while (last := int(merged.max(initial=0))) > 0:
        counts = np.bincount(merged[labelled], minlength=last + 1)
        thin = int(counts.argmin())
        if counts[thin] >= FEWEST_IN_STRATUM:
            break
        near = [place for place in (thin - 1, thin + 1) if 0 <= place <= last]
        merged = _numbered(np.where(merged == thin, min(near, key=lambda p: counts[p]), merged))
    return merged


def weights_of(strata: Ints, merged: Ints, labelled: Bools) -> Floats:
    """Return a weight for each label, 1 on average in a merged stratum.

    Labels of the parts of a merged stratum count by the parts' sizes, because a larger or smaller
    share of a part may be labeled. Parts without a label do not count.

    >>> known = np.array([True, False, False, True])
    >>> weights_of(np.array([0, 0, 0, 1]), np.zeros(4, int), known).tolist()
    [1.5, 0.5]
    """
    counts = np.bincount(strata[labelled], minlength=int(strata.max()) + 1)
    weights = (np.bincount(strata) / np.maximum(counts, 1))[strata[labelled]]
    here = merged[labelled]
    means = np.bincount(here, weights=weights) / np.maximum(np.bincount(here), 1)
    return np.asarray(weights / means[here], np.float64)


def effective_counts(here: Ints, weights: Floats) -> Floats:
    """Return, by stratum, the number of equally weighted labels that would be as precise."""
    sums = np.bincount(here, weights=weights)
    found: Floats = sums**2 / np.bincount(here, weights=weights**2)
    return found


def _numbered(strata: Ints) -> Ints:
    _, places = np.unique(strata, return_inverse=True)
    return places.astype(np.int64)


@dataclass(frozen=True, slots=True)
class LabelTarget:
    """The candidates whose mean label is estimated, and the strata of queries."""

    candidates: tuple[str, ...]
    """Several candidates are labeled on the same queries, so that they can be compared."""
    against: str | None = None
    """If given, the target is the difference to this candidate."""
    strata: int = 1
    """Number of strata by score; use the same number as `labels next`."""
    categories: Mapping[str, str] | None = None
    """Category by query id, to separate strata by category."""

    @property
    def labelled_together(self) -> tuple[str, ...]:
        """Return all candidates whose labels a query needs."""
        return self.candidates if self.against is None else (*self.candidates, self.against)


@dataclass(frozen=True, slots=True, eq=False)
class LabeledSample:
    """One value per query: all have a score, some a label."""

    candidate: str
    query_ids: tuple[str, ...]
    scores: Floats
    labels: Floats
    """NaN if missing."""
    strata: Ints
    """Stratum of each query, from 0."""
    clusters: Ints | None = None
    """The number of each query's cluster, from 0, where some queries depend on each other."""

    @property
    def labelled(self) -> Bools:
        """Return which queries have a label."""
        return ~np.isnan(self.labels)


def column_of(grid: ScoreGrid, candidate: str) -> int:
    """Return the candidate's column; raise ConfigError for an unknown name."""
    if candidate not in grid.candidates:
        raise ConfigError(
            f"The run has no candidate {candidate!r}.",
            hint=did_you_mean(candidate, grid.candidates),
        )
    return grid.candidates.index(candidate)


def refuse_repeated(names: Sequence[str]) -> None:
    """Raise ConfigError without candidates, or if one is given twice."""
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            f"Invalid candidates: {', '.join(map(repr, names)) or 'none'}.",
            hint="Give at least one candidate, and each only once.",
        )


def samples(grid: ScoreGrid, labels: Floats, target: LabelTarget) -> tuple[LabeledSample, ...]:
    """Return a sample per candidate of the target, on queries where all have a score.

    `labels` has the layout of the grid's scores.
    """
    _refuse_odd(target)
    columns = [column_of(grid, name) for name in target.labelled_together]
    scores, known = grid.scores[:, columns], labels[:, columns]
    if target.against is not None:
        scores, known = scores[:, :1] - scores[:, 1:], known[:, :1] - known[:, 1:]
    rows = np.flatnonzero(~np.isnan(scores).any(axis=1))
    if rows.size == 0:
        names = ", ".join(map(repr, target.labelled_together))
        raise ConfigError(f"No query has a score for {names}.", hint="Grade and score them first.")
    query_ids = tuple(grid.query_ids[row] for row in rows)
    strata = make_strata(scores[rows].mean(axis=1), target.strata, _kinds(target, query_ids))
    places = grid.places()[rows]
    alone = grid.clusters is None or len(np.unique(places)) == len(places)
    clusters = None if alone else _numbered(places)
    return tuple(
        LabeledSample(name, query_ids, scores[rows, place], known[rows, place], strata, clusters)
        for place, name in enumerate(target.candidates)
    )


def _kinds(target: LabelTarget, query_ids: Sequence[str]) -> list[str] | None:
    if target.categories is None:
        return None
    return [target.categories.get(query, "") for query in query_ids]


def _refuse_odd(target: LabelTarget) -> None:
    names = target.labelled_together
    if target.against is not None and len(target.candidates) != 1:
        raise ConfigError(
            f"{len(target.candidates)} candidates are given with --against {target.against!r}.",
            hint="Give exactly one --candidate.",
        )
    refuse_repeated(names)
    if target.strata < 1:
        raise ConfigError(f"Invalid strata: {target.strata}.", hint="Use 1 for none, or a few.")


_SYMMETRIC = 1e-6
_ROUNDING = 1e-12
_MOST_LEVERAGE = 0.999
MOST_REACH = 1.5
"""Maximum distance of a bound from the estimate, relative to Student's t interval."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A fitted mean label with its variance."""

    predicted: Floats
    """Predicted label of each query, labeled or not."""
    slope: float
    """Labels per unit of score; 0 if scores are not used."""
    within: Floats
    """Variance from sampling labels, by stratum; a single number for clustered queries."""
    between: float
    """Variance from sampling queries."""
    third_moment: float
    """Third central moment of the mean label's error."""
    freedom: float
    """Degrees of freedom by Satterthwaite, minus one for a slope."""

    @property
    def value(self) -> float:
        """Return the mean label."""
        return float(self.predicted.mean())

    @property
    def variance(self) -> float:
        """Return the variance of the mean label, from sampling labels and queries."""
        return float(self.within.sum()) + self.between


def fit_mean(sample: LabeledSample, strata: Ints, *, use_scores: bool = True) -> Fit:
    """Fit the mean predicted label over all queries; every stratum needs a label.

    The prediction is linear, with one slope for all strata and an intercept per stratum. If
    `strata` merges some of the sample's, labels are weighted; see `weights_of`.
    """
    known = sample.labelled
    here, shares = strata[known], np.bincount(strata) / len(strata)
    counts = np.bincount(here, minlength=len(shares)).astype(np.float64)
    weights = weights_of(sample.strata, strata, known)

    def centred(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
        means = np.bincount(here, weights=weights * values, minlength=len(shares)) / counts
        return values - means[here], means

    x, x_means = centred(sample.scores[known], weights)
    y, y_means = centred(sample.labels[known], weights)
    x_squared = float(weights * x @ x)
    # Equal scores minus their mean may not be exactly zero; ignore such slopes.
    rounding = _ROUNDING * max(1.0, float(np.abs(sample.scores).max()))
    sloped = use_scores and x_squared > len(x) * rounding**2
    slope = float(weights * x @ y) / x_squared if sloped else 0.0
    from_centre = sample.scores - x_means[strata]
    predicted: Floats = y_means[strata] + slope * from_centre

    share, leverage = weights * (shares / counts)[here], weights / counts[here]
    if sloped:
        share = share + weights * x * from_centre.mean() / x_squared
        leverage = leverage + weights * x * x / x_squared
    # Change of the estimate when a label is left out and everything is refitted.
    moves = share * (y - slope * x) / (1.0 - np.minimum(leverage, _MOST_LEVERAGE))
    moves, _ = centred(moves, np.ones(len(moves)))
    if sample.clusters is None:
        within = np.bincount(here, weights=moves**2, minlength=len(shares)) * (1.0 - 1.0 / counts)
        freedom = satterthwaite(within, effective_counts(here, weights) - 1.0)
        freedom -= 1.0 if sloped else 0.0
        between = float(predicted.var()) / len(predicted)
        third = float((moves**3).sum()) + _third_moment(predicted)
    else:
        labeled = _cluster_sums(moves, _numbered(sample.clusters[known]))
        every = _cluster_sums((predicted - predicted.mean()) / len(predicted), sample.clusters)
        within = np.array([_corrected_square(labeled)])
        between = _corrected_square(every)
        freedom = float(len(labeled) - len(shares) - (1.0 if sloped else 0.0))
        third = float((labeled**3).sum() + (every**3).sum())
    return Fit(
        predicted=predicted,
        slope=slope,
        within=within,
        between=between,
        third_moment=third,
        freedom=max(freedom, 1.0),
    )


def _cluster_sums(values: Floats, clusters: Ints) -> Floats:
    sums: Floats = np.bincount(clusters, weights=values).astype(np.float64)
    return sums


def _corrected_square(sums: Floats) -> float:
    """Return the variance of a sum of independent clusters, each centered; NaN for a single one."""
    clusters = len(sums)
    return float(sums @ sums) * clusters / (clusters - 1.0) if clusters > 1 else math.nan


def skewed_interval(fit: Fit, level: float) -> Interval:
    """Return Student's t interval with the bound of the longer tail moved out for skewness.

    Hall's cubic transformation gives the distance. It needs the skewness, which few labels estimate
    poorly: a single outlier among a dozen takes the cubic past its turning point, where one bound
    is several times too far out and the other too near. So no bound is nearer than that of the t
    interval, nor farther than `MOST_REACH` times. `studies/few_labels.py` compares the coverage.

    The bounds are NaN if nothing varies: equal labels do not prove that all labels are equal.
    """
    error = math.sqrt(fit.variance)
    if math.isnan(error) or error <= _ROUNDING * max(1.0, abs(fit.value)):
        return Interval(fit.value, math.nan, math.nan)
    half = half_width(fit, level)
    quantile, skewness = half / error, fit.third_moment / error**3
    below, above = (_reach(x, skewness) for x in (quantile, -quantile))
    return Interval(fit.value, fit.value - below * half, fit.value + above * half)


def half_width(fit: Fit, level: float) -> float:
    """Return half the width of Student's t interval, ignoring skewness."""
    from scipy.special import stdtrit

    return float(stdtrit(fit.freedom, (1.0 + level) / 2.0)) * math.sqrt(fit.variance)


def _reach(quantile: float, skewness: float) -> float:
    """Return the distance of a bound relative to Student's t, at least 1."""
    if abs(skewness) < _SYMMETRIC:
        return 1.0
    hall = 3.0 / skewness * (math.cbrt(1.0 + skewness * (quantile - skewness / 6.0)) - 1.0)
    return min(max(hall / quantile, 1.0), MOST_REACH)


def _third_moment(values: Floats) -> float:
    """Return the third central moment of the mean of the values."""
    return float(((values - values.mean()) ** 3).mean()) / len(values) ** 2


def satterthwaite(parts: Floats, freedoms: Floats) -> float:
    """Return Satterthwaite's degrees of freedom of a sum of variances."""
    total = float(parts.sum())
    if total == 0.0:
        return float(freedoms.sum())
    moving = parts > 0.0
    return total**2 / float((parts[moving] ** 2 / freedoms[moving]).sum())


FEWEST_LABELS = 10
"""With fewer labels, the estimate has no interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean label (or mean difference) over queries like the run's."""

    candidate: str
    against: str | None
    """The other candidate of a difference; None for a mean."""
    with_scores: Interval
    """Prediction-powered estimate; NaN bounds below ten labels, or if all labels are equal."""
    labels_only: Interval
    """Estimate from labels alone."""
    labelled: int
    """Queries with a label and a score (of both, for a difference)."""
    queries: int
    """Queries with a score (of both, for a difference)."""
    weight: float
    """Weight of the scores: lambda of PPI++, in labels per unit of score."""
    correlation: float
    """Pearson's correlation of labels and scores; NaN if either is constant."""
    width_ratio: float
    """Width with scores over width of labels alone, ignoring skewness; NaN without intervals."""
    effective_labels: float
    """Number of labels that alone would be as precise; NaN without intervals."""
    strata: int
    """Number of strata in the estimate; 1 if not stratified."""
    level: float


def estimate(
    sample: LabeledSample,
    *,
    against: str | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Estimate:
    """Estimate the mean label of a sample; `bounds` are the limits of the mean."""
    labelled = int(sample.labelled.sum())
    if labelled < 2:
        raise BenchmarkError(
            f"{_name(sample.candidate, against)} has {labelled} labeled queries with a score.",
            hint=f"Label at least 2. Choose which: {LABELS_NEXT}.",
        )
    strata = merge_thin(sample.strata, sample.labelled)
    alone = fit_mean(sample, strata, use_scores=False)
    # If every query is labeled, scores add nothing.
    powered = alone if labelled == len(sample.scores) else fit_mean(sample, strata)
    with_scores = _interval(powered, labelled, bounds, level)
    labels_only = _interval(alone, labelled, bounds, level)
    known = not (math.isnan(with_scores.low) or math.isnan(labels_only.low))
    ratio = half_width(powered, level) / half_width(alone, level) if known else math.nan
    return Estimate(
        candidate=sample.candidate,
        against=against,
        with_scores=with_scores,
        labels_only=labels_only,
        labelled=labelled,
        queries=len(sample.scores),
        weight=powered.slope * (1.0 - labelled / len(sample.scores)),
        correlation=_correlation(sample),
        width_ratio=ratio,
        effective_labels=labelled / ratio**2,
        strata=int(strata.max()) + 1,
        level=level,
    )


def _interval(
    fit: Fit, labelled: int, bounds: tuple[float, float] | None, level: float
) -> Interval:
    if labelled < FEWEST_LABELS:
        return Interval(fit.value, math.nan, math.nan)
    found = skewed_interval(fit, level)
    if bounds is None or math.isnan(found.low):
        return found
    low, high = bounds
    # Scores can, rarely, move the estimate itself off the scale.
    inside = (min(max(x, low), high) for x in (found.value, found.low, found.high))
    return Interval(*inside)


def _correlation(sample: LabeledSample) -> float:
    scores, labels = sample.scores[sample.labelled], sample.labels[sample.labelled]
    if np.ptp(scores) == 0.0 or np.ptp(labels) == 0.0:
        return math.nan
    return float(np.corrcoef(scores, labels)[0, 1])


def _name(candidate: str, against: str | None) -> str:
    return repr(candidate) if against is None else f"{candidate!r} against {against!r}"
