"""A mean label from few labels and many scores: prediction-powered inference.

Scores are many and cheap but biased; labels are few and right. The estimate is the mean of the
labels that the scores predict for all queries, corrected by how far the prediction was off where
there are labels (PPI++, Angelopoulos, Duchi and Zrnic, 2023):

    estimate = mean(labels) + weight * (mean score of the others - mean score of the labelled)

The weight is power-tuned: a judge that says nothing gets weight 0 and the labels stand alone. The
tuned weight is a slope times the share of unlabelled queries. Here it is the least-squares slope of
the labelled queries: with 15 labels and a correlation of 0.95 the estimate then scatters a fifth
less than with the variance of all scores in the slope, and with a useless judge a hundredth more.

For few labels the textbook interval (normal, weight taken as known) is too narrow. This one takes
the variance from the estimate without each label in turn, weight and all; Student's t for the
normal; and where labels pile up at an end of their scale, it moves the end on the side of the long
tail further out, as far as Hall's transformation for skewness says, but at most by half.
`studies/coverage.py` and `studies/few_labels.py` show what it covers: with 15 to 30 very skewed
labels (skewness beyond 2, a handful of low ones among tens) 92 to 94% instead of 95%.

What it rests on:
- Within a stratum the labelled queries were drawn at random, or are like the others at least.
- No label had a part in the score of its own response. Scores by a fit without the response's
  candidate (out of fold) are fine, scores by a fit that saw the label (fitted) are not. A fit must
  also treat labelled and unlabelled queries alike: one for each query, to that query's labels of
  other candidates, does not.
- The mean is that over queries like these, of which the run's are a sample.
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
from rocketeval.text import did_you_mean

FEWEST_IN_STRATUM = 5
"""A stratum with fewer labels is estimated together with a neighbour."""


def make_strata(scores: Floats, groups: int, categories: Sequence[str] | None = None) -> Ints:
    """The stratum of each query, from 0: `groups` of like size by score, in each category.

    Equal scores are never parted, so that there can be fewer.

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
    """The same strata, those with hardly any label joined to the neighbour that has fewer."""
    merged = _numbered(strata)
    while (last := int(merged.max(initial=0))) > 0:
        counts = np.bincount(merged[labelled], minlength=last + 1)
        thin = int(counts.argmin())
        if counts[thin] >= FEWEST_IN_STRATUM:
            break
        beside = [place for place in (thin - 1, thin + 1) if 0 <= place <= last]
        merged = _numbered(np.where(merged == thin, min(beside, key=lambda p: counts[p]), merged))
    return merged


def _numbered(strata: Ints) -> Ints:
    _, places = np.unique(strata, return_inverse=True)
    return places.astype(np.int64)


@dataclass(frozen=True, slots=True)
class LabelTarget:
    """Whose mean label is wanted, and how queries are grouped for it."""

    candidates: tuple[str, ...]
    """Several are labelled on the same queries, so that they can be held against each other."""
    against: str | None = None
    """Given, the target is the difference of the one candidate to this one."""
    strata: int = 1
    """Groups of like size by score; labels that `labels next` chose need the number it had."""
    categories: Mapping[str, str] | None = None
    """Category by query id, where strata are to keep categories apart."""

    @property
    def labelled_together(self) -> tuple[str, ...]:
        """Everyone whose label a query needs."""
        return self.candidates if self.against is None else (*self.candidates, self.against)


@dataclass(frozen=True, slots=True, eq=False)
class LabeledSample:
    """One figure a query: all have a score, some a label."""

    candidate: str
    query_ids: tuple[str, ...]
    scores: Floats
    labels: Floats
    """NaN where there is none."""
    strata: Ints
    """From 0."""
    clusters: Ints | None = None
    """The number of each query's cluster, from 0, where some queries depend on each other."""

    @property
    def labelled(self) -> Bools:
        """Which queries have a label."""
        return ~np.isnan(self.labels)


def column_of(grid: ScoreGrid, candidate: str) -> int:
    """The candidate's column; an unknown name is an error that names the nearest."""
    if candidate not in grid.candidates:
        raise ConfigError(
            f"There is no candidate {candidate!r} in the run.",
            hint=did_you_mean(candidate, grid.candidates),
        )
    return grid.candidates.index(candidate)


def samples(grid: ScoreGrid, labels: Floats, target: LabelTarget) -> tuple[LabeledSample, ...]:
    """What is known about each candidate of the target, on the queries where all have a score.

    `labels` is laid out like the grid's scores.
    """
    _refuse_odd(target)
    columns = [column_of(grid, name) for name in target.labelled_together]
    scores, known = grid.scores[:, columns], labels[:, columns]
    if target.against is not None:
        scores, known = scores[:, :1] - scores[:, 1:], known[:, :1] - known[:, 1:]
    rows = np.flatnonzero(~np.isnan(scores).any(axis=1))
    if rows.size == 0:
        names = ", ".join(map(repr, target.labelled_together))
        raise ConfigError(
            f"There is no query with a score of {names}.", hint="Grade and score them first."
        )
    query_ids = tuple(grid.query_ids[row] for row in rows)
    strata = make_strata(scores[rows].mean(axis=1), target.strata, _kinds(target, query_ids))
    clusters = None if grid.clusters is None else _numbered(grid.places()[rows])
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
            f"{len(target.candidates)} candidates against {target.against!r}",
            hint="A difference is of one candidate to another: name one.",
        )
    if not names or len(set(names)) < len(names):
        raise ConfigError(
            f"The target names the candidates {', '.join(map(repr, names)) or 'of nobody'}.",
            hint="Name at least one, and none twice.",
        )
    if target.strata < 1:
        raise ConfigError(f"{target.strata} strata", hint="Use 1 for none, or a few such as 4.")


_SYMMETRIC = 1e-6
_ROUNDING = 1e-12
_MOST_LEVERAGE = 0.999
MOST_REACH = 1.5
"""An end is at most this many times as far from the estimate as that of Student's t interval."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """A mean label, before it becomes an interval."""

    predicted: Floats
    """The label predicted for every query, labelled or not."""
    slope: float
    """Labels per unit of score; 0 when the scores are not used."""
    within: Floats
    """Variance for want of labels, by stratum; of clustered queries, in all."""
    between: float
    """Variance for want of queries."""
    third_moment: float
    """Of the mean label's error, about its mean."""
    freedom: float
    """Degrees of freedom of the variance: Satterthwaite's, less one for a slope."""

    @property
    def value(self) -> float:
        """The mean label."""
        return float(self.predicted.mean())

    @property
    def variance(self) -> float:
        """Of the mean label: for want of labels, and for want of queries."""
        return float(self.within.sum()) + self.between


def fit_mean(sample: LabeledSample, strata: Ints, *, use_scores: bool = True) -> Fit:
    """The mean of the labels predicted for all queries; every stratum needs a label.

    The prediction is a line with one slope for all strata, through the labelled queries of each.
    """
    known = sample.labelled
    here, shares = strata[known], np.bincount(strata) / len(strata)
    counts = np.bincount(here, minlength=len(shares)).astype(np.float64)

    def centred(values: Floats) -> tuple[Floats, Floats]:
        means = np.bincount(here, weights=values, minlength=len(shares)) / counts
        return values - means[here], means

    x, x_means = centred(sample.scores[known])
    y, y_means = centred(sample.labels[known])
    x_squared = float(x @ x)
    # Equal scores less their mean are seldom exactly zero, and would give any slope.
    rounding = _ROUNDING * max(1.0, float(np.abs(sample.scores).max()))
    sloped = use_scores and x_squared > len(x) * rounding**2
    slope = float(x @ y) / x_squared if sloped else 0.0
    from_centre = sample.scores - x_means[strata]
    predicted: Floats = y_means[strata] + slope * from_centre

    share, leverage = (shares / counts)[here], 1.0 / counts[here]
    if sloped:
        share = share + x * from_centre.mean() / x_squared
        leverage = leverage + x * x / x_squared
    # How far the estimate moves when a label is left out and everything is fitted again.
    moves = share * (y - slope * x) / (1.0 - np.minimum(leverage, _MOST_LEVERAGE))
    moves, _ = centred(moves)
    if sample.clusters is None:
        within = np.bincount(here, weights=moves**2, minlength=len(shares)) * (1.0 - 1.0 / counts)
        freedom = satterthwaite(within, counts - 1.0) - (1.0 if sloped else 0.0)
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
    """Return Student's t interval, the end of the longer tail moved out for skewness.

    Hall's cubic transformation says how far. It needs the skewness, which few labels hardly tell:
    a single outlier among a dozen takes the cubic past its turning point, where it puts one end
    several times too far out and the other too near. So no end is nearer than that of the t
    interval, nor further than `MOST_REACH` times. `studies/few_labels.py` compares what they cover.

    The bounds are NaN when nothing varies: equal labels do not prove that all labels are equal.
    """
    error = math.sqrt(fit.variance)
    if math.isnan(error) or error <= _ROUNDING * max(1.0, abs(fit.value)):
        return Interval(fit.value, math.nan, math.nan)
    half = half_width(fit, level)
    quantile, skewness = half / error, fit.third_moment / error**3
    below, above = (_reach(x, skewness) for x in (quantile, -quantile))
    return Interval(fit.value, fit.value - below * half, fit.value + above * half)


def half_width(fit: Fit, level: float) -> float:
    """Half the width of Student's t interval, skewness aside."""
    from scipy.special import stdtrit

    return float(stdtrit(fit.freedom, (1.0 + level) / 2.0)) * math.sqrt(fit.variance)


def _reach(quantile: float, skewness: float) -> float:
    """Return how many times as far out as Student's t an end lies; 1 where Hall's is nearer."""
    if abs(skewness) < _SYMMETRIC:
        return 1.0
    hall = 3.0 / skewness * (math.cbrt(1.0 + skewness * (quantile - skewness / 6.0)) - 1.0)
    return min(max(hall / quantile, 1.0), MOST_REACH)


def _third_moment(values: Floats) -> float:
    """Of the mean of values, about its mean."""
    return float(((values - values.mean()) ** 3).mean()) / len(values) ** 2


def satterthwaite(parts: Floats, freedoms: Floats) -> float:
    """Satterthwaite's degrees of freedom of a sum of variances."""
    total = float(parts.sum())
    if total == 0.0:
        return float(freedoms.sum())
    moving = parts > 0.0
    return total**2 / float((parts[moving] ** 2 / freedoms[moving]).sum())


FEWEST_LABELS = 10
"""Fewer give an estimate without an interval."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean label (or mean difference) over queries like the run's."""

    candidate: str
    against: str | None
    """Whom the difference is to; None for the candidate's own mean."""
    with_scores: Interval
    """Prediction-powered; NaN bounds below ten labels, or when all labels are the same."""
    labels_only: Interval
    """What the labels say alone."""
    labelled: int
    """Queries with a label (with both, for a difference) and a score."""
    queries: int
    """Queries with a score (both)."""
    weight: float
    """How much of the scores' prediction is taken: PPI++'s lambda, in labels per unit of score."""
    correlation: float
    """Pearson's, of labels and scores where there are both; NaN if either does not vary."""
    width_ratio: float
    """Width with scores over width of labels alone, skewness aside; NaN without intervals."""
    effective_labels: float
    """How many labels alone would be as sharp; NaN without intervals."""
    strata: int
    """Groups of queries within which labels stood for the rest; 1 when not stratified."""
    level: float


def estimate(
    sample: LabeledSample,
    *,
    against: str | None = None,
    bounds: tuple[float, float] | None = None,
    level: float = 0.95,
) -> Estimate:
    """The mean label of a sample's candidate; `bounds` are the least and most it can be."""
    labelled = int(sample.labelled.sum())
    if labelled < 2:
        raise BenchmarkError(
            f"{_name(sample.candidate, against)} has {labelled} labelled queries with a score.",
            hint="Label some first: `rocketeval labels next` chooses which.",
        )
    strata = merge_thin(sample.strata, sample.labelled)
    alone = fit_mean(sample, strata, use_scores=False)
    # Where every query is labelled, scores have nothing to add.
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
    # Scores can carry the estimate itself past an end of the scale, though hardly ever.
    inside = (min(max(x, low), high) for x in (found.value, found.low, found.high))
    return Interval(*inside)


def _correlation(sample: LabeledSample) -> float:
    scores, labels = sample.scores[sample.labelled], sample.labels[sample.labelled]
    if np.ptp(scores) == 0.0 or np.ptp(labels) == 0.0:
        return math.nan
    return float(np.corrcoef(scores, labels)[0, 1])


def _name(candidate: str, against: str | None) -> str:
    return repr(candidate) if against is None else f"{candidate!r} against {against!r}"
