"""What each label or vote costs a scorer, and which scorer that speaks for."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.outcomes import compare, vote_outcomes
from rocketeval.records import Gold, Vote
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.features import Floats
from rocketeval.scoring.labelled import label_column

_ROUNDING = 1e-9
# Two scorers that say the same shall not be told apart by their last bits.


@dataclass(frozen=True, eq=False)
class Losses:
    """What gold costs one scorer, query by query."""

    totals: Floats
    """Sum of the losses on each query."""
    counts: Floats
    """Labels or votes of each query that have scores."""

    @property
    def mean(self) -> float:
        """The loss per label or vote; NaN if there are none."""
        whole = float(self.counts.sum())
        return float(self.totals.sum()) / whole if whole else float("nan")


def squared_errors(
    answers: AnswerTable, scores: Floats, gold: Gold, scale: tuple[float, float]
) -> Losses:
    """Return the squared distance of scores from labels."""
    errors = (scores - label_column(answers, gold.labels, scale)) ** 2
    return _by_query(answers.query_ids, answers.query_ids, errors)


def disagreements(
    answers: AnswerTable, scores: Floats, votes: Sequence[Vote], tie_margin: float
) -> Losses:
    """Return 1 for every vote whose outcome, ties included, is not what the scores say."""
    cells = zip(answers.query_ids, answers.candidates, strict=True)
    found = dict(zip(cells, scores.tolist(), strict=True))

    def side(candidates: Iterable[str]) -> Floats:
        pairs = zip((vote.query_id for vote in votes), candidates, strict=True)
        return np.array([found.get(pair, math.nan) for pair in pairs], dtype=np.float64)

    first = side(vote.candidate_a for vote in votes)
    second = side(vote.candidate_b for vote in votes)
    wrong = (compare(first, second, tie_margin) != vote_outcomes(votes)).astype(np.float64)
    return _by_query(
        answers.query_ids,
        [vote.query_id for vote in votes],
        np.where(np.isnan(first - second), np.nan, wrong),
    )


def simplest_of_the_best(losses: Sequence[Losses]) -> int:
    """Return the place of the first scorer that is not worse than the best by a standard error.

    The error is that of the difference between the two, with queries drawn whole: a query's
    responses are alike, and counting each by itself would make the error too small. From fewer than
    two queries nothing can be told, and the first is taken.
    """
    means = np.array([found.mean for found in losses])
    if np.isnan(means).any():
        return 0
    best = losses[int(means.argmin())]
    return next(
        place
        for place, found in enumerate(losses)
        if found.mean - best.mean <= _standard_error(found, best) + _ROUNDING * best.mean
    )


def _standard_error(one: Losses, other: Losses) -> float:
    used = one.counts > 0
    queries = int(used.sum())
    if queries < 2:
        return float("inf")
    difference = (one.totals - other.totals)[used]
    excess = difference - difference.sum() / one.counts.sum() * one.counts[used]
    variance = queries / (queries - 1) * float(excess @ excess)
    return float(np.sqrt(variance) / one.counts.sum())


def _by_query(names: Sequence[str], query_ids: Sequence[str], losses: Floats) -> Losses:
    places = {name: place for place, name in enumerate(dict.fromkeys(names))}
    there = np.array([query_id in places for query_id in query_ids], dtype=np.bool_)
    there &= ~np.isnan(losses)
    place: NDArray[np.intp] = np.array(
        [places[query_id] for query_id, use in zip(query_ids, there, strict=True) if use],
        dtype=np.intp,
    )
    size = len(places)
    counts = np.bincount(place, minlength=size).astype(np.float64)
    totals = np.bincount(place, weights=losses[there], minlength=size).astype(np.float64)
    return Losses(totals, counts)
