"""How alike judges order the same candidates, judge by judge."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from rocketeval.audit.correlation import Correlation, correlate
from rocketeval.records import Rating


@dataclass(frozen=True, slots=True)
class RankMatrix:
    """Rank correlations of every judge with every judge, on the candidates that all of them have.

    Where there are too few candidates, or a judge tells none apart, a cell says so.
    """

    judges: tuple[str, ...]
    candidates: tuple[str, ...]
    """Candidates with a figure by every judge, sorted."""
    left_out: tuple[str, ...]
    """Candidates that a judge has no figure for, sorted."""
    cells: tuple[tuple[Correlation, ...], ...]
    """Spearman and Kendall, row by column, in the order of `judges`."""


def rank_matrix(
    figures: Mapping[str, Mapping[str, float]], *, seed: int = 0, level: float = 0.95
) -> RankMatrix:
    """Correlate the judges' figures of candidates, such as ratings or mean scores.

    >>> matrix = rank_matrix({"one": {"a": 1, "b": 2, "c": 3}, "two": {"a": 9, "b": 8, "c": 7}})
    >>> matrix.cells[0][1].spearman.value
    -1.0
    """
    finite = [
        {candidate for candidate, value in given.items() if math.isfinite(value)}
        for given in figures.values()
    ]
    common = sorted(set.intersection(*finite)) if finite else []
    columns = [{name: float(given[name]) for name in common} for given in figures.values()]
    upper = [
        [correlate(one, _ratings(two), seed=seed, level=level) for two in columns[first:]]
        for first, one in enumerate(columns)
    ]
    span = range(len(columns))
    return RankMatrix(
        judges=tuple(figures),
        candidates=tuple(common),
        left_out=tuple(sorted(set().union(*figures.values()) - set(common))),
        cells=tuple(
            tuple(upper[min(row, column)][abs(row - column)] for column in span) for row in span
        ),
    )


def _ratings(figures: Mapping[str, float]) -> list[Rating]:
    return [Rating(candidate, value) for candidate, value in figures.items()]
