"""Two-phase sampling: a cheap score of every response, and a better score of a drawn part.

Every response is drawn with a known probability, larger where the cheap score is uncertain. The
combined score of a response estimates its better score without bias, whatever the cheap one is:

    combined = predicted + drawn / probability * (better - predicted)

**Probabilities**: `FLOOR` of the share is the same for all responses, the rest is in proportion to
the uncertainty. The floor bounds the weights, so that a response on which the cheap judge is sure
and wrong cannot dominate an estimate.
**Draw**: one random number per query decides for all its candidates, so that candidates are drawn
on the same queries where they can be, and what they share cancels in their differences. The numbers
of a benchmark are spread evenly between 0 and 1, so that the drawn part has the size it should.
**Prediction**: a line through the drawn responses, better on cheap score, with one slope and an
offset per candidate that is shrunk to the common one. The slope is the power tuning of
prediction-powered inference: with a useless cheap score it is near 0, and the drawn responses
decide alone. The line of a query is fitted without that query's fold, so that no better score
predicts itself and the estimate stays unbiased.
**Intervals**: the combined scores of different queries are nearly independent. Their variance
includes the draw and the choice of queries. It is known from few drawn responses, and they are
skewed, so the interval is Student's t with Satterthwaite's degrees of freedom and the correction of
`prediction_powered` for skewness; resampling the queries gives intervals that are too narrow.
Tests of all pairs follow from the same intervals, with Holm's rule: sign flips, as in other
rankings, err too often with few drawn responses. `studies/cascade.py` measures the coverage.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Bools, Floats, Ints
from rocketeval.hashing import content_hash
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import least_queries
from rocketeval.stats.permutation import PairwiseTests, holm
from rocketeval.stats.prediction_powered import MOST_REACH, Fit, skewed_interval

FLOOR = 0.5
"""Part of the share that every response gets, however sure the cheap score is."""
FOLDS = 10
SHRINKAGE = 3.0
"""Drawn responses at which a candidate's own offset and the common one count the same."""
_SMALL = 1e-9
_MOST_STEPS = 200


def inclusion_probabilities(uncertainty: Floats, share: float, floor: float = FLOOR) -> Floats:
    """Return the probability of drawing each response; their mean is `share`.

    NaN stays NaN: there is no such response.

    >>> inclusion_probabilities(np.array([[0.0, 1.0], [1.0, 2.0]]), 0.2).round(3).tolist()
    [[0.1, 0.2], [0.2, 0.3]]
    """
    there = ~np.isnan(uncertainty)
    known = uncertainty[there]
    mean = float(known.mean()) if known.size else 0.0
    relative = np.ones(known.shape) if mean <= 0.0 else floor + (1.0 - floor) * known / mean
    found = np.minimum(1.0, share * relative)
    for _ in range(_MOST_STEPS):
        # What probabilities above 1 leave over goes to the others.
        below, total = found < 1.0, share * found.size
        left = total - float((~below).sum())
        if not below.any() or abs(float(found.sum()) - total) <= _SMALL * total:
            break
        found[below] = np.minimum(1.0, found[below] * left / float(found[below].sum()))
    probabilities = np.full(uncertainty.shape, np.nan)
    probabilities[there] = found
    return probabilities


def query_numbers(query_ids: Sequence[str], seed: int) -> Floats:
    """Return a random number between 0 and 1 per query, spread evenly; the same for a seed."""
    drawn = [content_hash("cascade", seed, name) for name in query_ids]
    ranks = np.empty(len(drawn))
    ranks[sorted(range(len(drawn)), key=drawn.__getitem__)] = np.arange(len(drawn))
    within = np.array([int.from_bytes(one[8:], "big") / 2.0**64 for one in drawn])
    numbers: Floats = (ranks + within) / max(1, len(drawn))
    return numbers


@dataclass(frozen=True, slots=True, eq=False)
class TwoPhaseSample:
    """Scores of queries (rows) by candidates (columns)."""

    cheap: Floats
    """NaN where there is no response."""
    better: Floats
    """NaN where it is unknown; not used where a response is not drawn."""
    probabilities: Floats
    numbers: Floats
    """The random number of each query."""
    clusters: Ints
    """The number of each query's cluster, from 0."""

    @property
    def drawn(self) -> Bools:
        """Return which responses are drawn."""
        found: Bools = self.numbers[:, None] < np.nan_to_num(self.probabilities)
        return found

    @property
    def known(self) -> Bools:
        """Return which drawn responses have a better score."""
        found: Bools = self.drawn & ~np.isnan(self.better)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """Combined scores, and what they are made of."""

    scores: Floats
    """NaN where there is no response, and for candidates without a better score."""
    corrections: Floats
    """The part of each combined score that corrects its prediction; 0 where it is not drawn."""
    known: Bools
    """Which responses are drawn and have a better score."""
    slope: float
    """Mean slope of the predictions."""
    clusters: Ints

    def mean(self, column: int, level: float) -> Interval:
        """Return a candidate's mean with its interval."""
        return self._interval(self.scores[:, [column]], self._part([column]), level)

    def difference(self, first: int, second: int, level: float) -> Interval:
        """Return the mean difference of two candidates over the queries both answered."""
        scores = self.scores[:, [first]] - self.scores[:, [second]]
        return self._interval(scores, self._part([first], [second]), level)

    def mean_minus(self, other: Floats, column: int, level: float) -> Interval:
        """Return a candidate's mean minus that of its known scores `other`."""
        scores = self.scores[:, [column]] - other[:, [column]]
        return self._interval(scores, self._part([column]), level)

    def take(self, columns: Sequence[int]) -> Combined:
        """Return some of the candidates, in this order."""
        chosen = list(columns)
        return Combined(
            self.scores[:, chosen],
            self.corrections[:, chosen],
            self.known[:, chosen],
            self.slope,
            self.clusters,
        )

    def tests(self, level: float) -> PairwiseTests:
        """Test every pair of candidates, with p-values adjusted for all pairs by Holm's rule.

        A pair is significant on its own if the interval of its difference excludes zero.
        """
        count = self.scores.shape[1]
        differences, p_values = np.zeros((count, count)), np.ones((count, count))
        for first in range(count - 1):
            others = list(range(first + 1, count))
            scores = self.scores[:, [first]] - self.scores[:, others]
            found = _mean_errors(scores, *self._part([first], others), self.clusters)
            differences[first, others], differences[others, first] = found.means, -found.means
            p_values[first, others] = p_values[others, first] = found.p_values(level)
        return PairwiseTests(differences, holm(p_values), level)

    def _part(
        self, columns: Sequence[int], minus: Sequence[int] | None = None
    ) -> tuple[Floats, Bools]:
        """Return the corrections of columns, or of differences, and where there are any."""
        corrections, known = self.corrections[:, columns], self.known[:, columns]
        if minus is None:
            return corrections, known
        return corrections - self.corrections[:, minus], known | self.known[:, minus]

    def _interval(self, scores: Floats, part: tuple[Floats, Bools], level: float) -> Interval:
        found = _mean_errors(scores, *part, self.clusters)
        if found.drawn[0] < least_queries(level):
            return Interval(float(found.means[0]), math.nan, math.nan)
        fit = Fit(
            predicted=scores[~np.isnan(scores)],
            slope=0.0,
            within=found.within,
            between=float(found.variances[0] - found.within[0]),
            third_moment=float(found.third_moments[0]),
            freedom=float(found.freedoms[0]),
        )
        return skewed_interval(fit, level)


def combine(sample: TwoPhaseSample) -> Combined:
    """Return the combined scores of a sample.

    Drawn responses without a better score count as drawn by chance among the candidate's drawn
    ones: the others get their weight.
    """
    present, known = ~np.isnan(sample.cheap), sample.known
    weights = _weights(sample)
    numbers = np.argsort(np.argsort(sample.numbers, kind="stable"), kind="stable")
    first_of_cluster = np.full(int(sample.clusters.max()) + 1, len(numbers), np.int64)
    np.minimum.at(first_of_cluster, sample.clusters, numbers)
    folds = first_of_cluster[sample.clusters] % FOLDS
    predicted, slope = _predict(sample.cheap, sample.better, weights, folds)
    better = np.where(known, sample.better, 0.0)
    corrections = np.where(known, weights * (better - predicted), 0.0)
    scores = np.where(present, predicted + corrections, np.nan)
    scores[:, ~known.any(axis=0)] = np.nan
    return Combined(scores, corrections, known, slope, sample.clusters)


def _weights(sample: TwoPhaseSample) -> Floats:
    """Return the weight of each better score, 0 where there is none."""
    inverse = 1.0 / np.where(sample.drawn, sample.probabilities, 1.0)
    drawn = np.where(sample.drawn, inverse, 0.0).sum(axis=0)
    known = np.where(sample.known, inverse, 0.0)
    total = known.sum(axis=0)
    weights: Floats = known * np.divide(drawn, total, out=np.ones_like(total), where=total > 0.0)
    return weights


def _predict(cheap: Floats, better: Floats, weights: Floats, folds: Ints) -> tuple[Floats, float]:
    """Return each response's prediction by a fit without its fold, and the mean slope."""
    used = weights > 0.0
    if not used.any():
        return np.zeros_like(cheap), 0.0
    center, level = float(cheap[used].mean()), float(better[used].mean())
    x, y = np.where(used, cheap - center, 0.0), np.where(used, better - level, 0.0)
    w = weights / float(weights[used].mean())

    in_fold = (folds == np.arange(FOLDS)[:, None]).astype(np.float64)

    def left_out(values: Floats) -> Floats:
        """Return the sums by fold and candidate over all other folds."""
        sums = in_fold @ values
        others: Floats = sums.sum(axis=0) - sums
        return others

    w0, wx, wxx = left_out(w), left_out(w * x), left_out(w * x * x)
    wy, wxy = left_out(w * y), left_out(w * x * y)
    pull = SHRINKAGE / (w0 + SHRINKAGE)
    own = wx / (w0 + SHRINKAGE)
    a11, a12 = (pull * w0).sum(axis=1), (pull * wx).sum(axis=1)
    a22, b1 = (wxx - own * wx).sum(axis=1), (pull * wy).sum(axis=1)
    b2 = (wxy - own * wy).sum(axis=1)
    spread = a11 * a22 - a12**2
    sloped = spread > _SMALL * np.maximum(a11 * wxx.sum(axis=1), _SMALL)
    slope = np.divide(a11 * b2 - a12 * b1, spread, out=np.zeros(FOLDS), where=sloped)
    offset = np.divide(b1 - slope * a12, a11, out=np.zeros(FOLDS), where=a11 > 0.0)
    gap = wy - offset[:, None] * w0 - slope[:, None] * wx
    offsets = offset[:, None] + gap / (w0 + SHRINKAGE)
    predicted: Floats = level + offsets[folds] + slope[folds][:, None] * (cheap - center)
    return predicted, float(slope.mean())


@dataclass(frozen=True, slots=True, eq=False)
class _MeanErrors:
    """The mean of each column of combined scores, and the moments of its error."""

    means: Floats
    variances: Floats
    within: Floats
    """The part of the variance that the corrections cause."""
    third_moments: Floats
    freedoms: Floats
    drawn: Ints
    """Clusters with a better score."""

    def p_values(self, level: float) -> Floats:
        """Return the two-sided p-value of each mean, corrected for skewness like its interval."""
        from scipy.special import stdtr, stdtrit

        errors = np.sqrt(np.maximum(self.variances, 1e-300))
        quantiles = stdtrit(self.freedoms, (1.0 + level) / 2.0)
        skewness = self.third_moments / errors**3
        signed = np.where(self.means < 0.0, -quantiles, quantiles)
        skewed = np.where(np.abs(skewness) < _SMALL, _SMALL, skewness)
        hall = 3.0 / skewed * (np.cbrt(1.0 + skewed * (signed - skewed / 6.0)) - 1.0)
        reach = np.clip(hall / signed, 1.0, MOST_REACH)
        found: Floats = 2.0 * stdtr(self.freedoms, -np.abs(self.means) / (errors * reach))
        usable = (self.drawn >= least_queries(level)) & (self.variances > 0.0)
        return np.where(usable, np.minimum(found, 1.0), 1.0)


def _mean_errors(scores: Floats, corrections: Floats, known: Bools, clusters: Ints) -> _MeanErrors:
    """Return the moments of every column; NaN scores are left out."""
    there = ~np.isnan(scores)
    total = np.maximum(there.sum(axis=0), 1).astype(np.float64)
    means = np.where(there, scores, 0.0).sum(axis=0) / total
    away = np.where(there, scores - means, 0.0)
    moved = np.where(there, corrections, 0.0)
    met, graded = there.astype(np.float64), (there & known).astype(np.float64)
    if len(np.unique(clusters)) < len(clusters):
        order = np.argsort(clusters, kind="stable")
        starts = np.flatnonzero(np.diff(clusters[order], prepend=-1))
        columns = (away, moved, met, graded)
        away, moved, met, graded = (np.add.reduceat(x[order], starts, axis=0) for x in columns)
    count = np.maximum((met > 0.0).sum(axis=0), 2)
    variances = (away**2).sum(axis=0) / total**2 * count / (count - 1.0)
    within = np.minimum(variances, (moved**2).sum(axis=0) / total**2)
    drawn = (graded > 0.0).sum(axis=0)
    parts = within**2 / np.maximum(drawn - 1, 1) + (variances - within) ** 2 / (count - 1.0)
    return _MeanErrors(
        means=np.where(there.any(axis=0), means, np.nan),
        variances=variances,
        within=within,
        third_moments=(away**3).sum(axis=0) / total**3,
        freedoms=np.divide(variances**2, parts, out=count - 1.0, where=parts > 0.0),
        drawn=drawn,
    )
