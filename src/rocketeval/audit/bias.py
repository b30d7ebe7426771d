"""What moves scores beside quality: the length of a response, and whose response it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.length_bias import LengthBias, length_bias
from rocketeval.audit.self_preference import SelfPreference, self_preference
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Vote

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Bias:
    """What moves the scores beside quality, as far as lengths, names and gold tell."""

    length: LengthBias
    own_family: SelfPreference | None
    """None where no candidate's name tells of the judge's family."""
    queries: int
    """Queries whose responses' lengths were looked at."""
    queries_skipped: int
    """Queries that were not, in a run of very many responses."""


def find_bias(
    grid: ScoreGrid,
    lengths: ScoreGrid,
    looked_at: AbstractSet[str],
    labels: Floats | None,
    votes: Sequence[Vote],
    family: AbstractSet[str],
    config: RankingConfig,
) -> Bias:
    """Measure both; lengths (`baselines.length_grid`) only on the queries `looked_at`.

    `labels` are laid out like the grid, NaN where there is none; `family` names the candidates that
    seem to be of the judge's own.
    """
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}
    rows = np.array([query in looked_at for query in grid.query_ids], dtype=bool)
    some, long = (_rows_of(each, rows) for each in (grid, lengths))
    gold = None if labels is None else labels[rows]
    return Bias(
        length=length_bias(some, long, gold, votes, **settings),
        own_family=_own_family(grid, labels, family, settings),
        queries=int(rows.sum()),
        queries_skipped=int((~rows).sum()),
    )


def _own_family(
    grid: ScoreGrid, labels: Floats | None, family: AbstractSet[str], settings: Mapping[str, int]
) -> SelfPreference | None:
    named = family & set(grid.candidates)
    if not named:
        return None
    gold = np.full(grid.scores.shape, np.nan) if labels is None else labels
    rows = np.isfinite(gold).sum(axis=1) > 0
    return self_preference(_rows_of(grid, rows), gold[rows], named, **settings)


def _rows_of(grid: ScoreGrid, rows: Bools) -> ScoreGrid:
    chosen = tuple(grid.query_ids[row] for row in np.flatnonzero(rows).tolist())
    return ScoreGrid(chosen, grid.candidates, grid.scores[rows])
