"""How far scores miss labels, query by query, and how wide an interval will be for it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.certainty.fit import fit_mean, satterthwaite
from rocketeval.certainty.prediction_powered import FEWEST_LABELS
from rocketeval.certainty.sample import Sample
from rocketeval.certainty.strata import merge_thin

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

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


def measure_spread(sample: Sample) -> Spread:
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
