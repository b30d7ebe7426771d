"""What is known about a target: a score for every query, a label for some.

A target is the mean label of candidates, or the mean difference of two. For a difference every
figure is a difference, taken on the queries where both are known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.certainty.strata import make_strata
from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.names import did_you_mean

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Target:
    """Whose mean label is wanted, and how queries are grouped for it."""

    candidates: tuple[str, ...]
    """Several are labelled on the same queries, so that they can be held against each other."""
    against: str | None = None
    """Given, the target is the difference of the one candidate to this one."""
    strata: int = 1
    """Groups of like size by score; labels that `advise` chose need the number it had."""
    categories: Mapping[str, str] | None = None
    """Category by query id, where strata are to keep categories apart."""

    @property
    def labelled_together(self) -> tuple[str, ...]:
        """Everyone whose label a query needs."""
        return self.candidates if self.against is None else (*self.candidates, self.against)


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """One figure a query: all have a score, some a label."""

    candidate: str
    query_ids: tuple[str, ...]
    scores: Floats
    labels: Floats
    """NaN where there is none."""
    strata: Ints
    """From 0."""

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


def samples(grid: ScoreGrid, labels: Floats, target: Target) -> tuple[Sample, ...]:
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
    return tuple(
        Sample(name, query_ids, scores[rows, place], known[rows, place], strata)
        for place, name in enumerate(target.candidates)
    )


def _kinds(target: Target, query_ids: Sequence[str]) -> list[str] | None:
    if target.categories is None:
        return None
    return [target.categories.get(query, "") for query in query_ids]


def _refuse_odd(target: Target) -> None:
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
