"""Anchor queries of a run, and a first look at new candidates that answered only these."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rocketeval.config import RunConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.scoring.stage import read_grid, refuse_other_scorer, scoring_change
from rocketeval.stats.anchors import (
    FEWEST_CANDIDATES,
    Anchors,
    PredictionError,
    choose_anchors,
    cross_validate,
    random_queries,
)
from rocketeval.stopping.race import RaceResult
from rocketeval.store.files import refuse_inside_run, write_bytes
from rocketeval.store.run import RunStore
from rocketeval.text import join_words

DRAWS = 200
"""Random subsets to compare with."""
FULL = 0.95
"""Share of the queries on which a candidate needs a score."""


@dataclass(frozen=True, slots=True)
class AnchorChoice:
    """Queries that predict the means of a run's candidates."""

    queries: tuple[str, ...]
    """In the order of the run."""
    weights: tuple[float, ...]
    """Share of all queries that each stands for."""
    candidates: tuple[str, ...]
    """Candidates that the choice is based on."""
    of_queries: int
    """Queries on which all of them have a score."""
    means: tuple[float, ...]
    """Mean score of each candidate."""
    predicted: tuple[float, ...]
    """Mean of each candidate by the anchors."""
    anchors: PredictionError
    """Of candidates predicted from anchors that were chosen without them."""
    random: PredictionError
    """Of as many random queries, on average."""


@dataclass(frozen=True, slots=True)
class Placement:
    """A candidate in the order by anchor scores."""

    candidate: str
    predicted: float
    new: bool


def choose_queries(store: RunStore, count: int, seed: int = 0) -> AnchorChoice:
    """Choose anchors from the scores of a run's fully graded candidates."""
    race = store.read_if_made(RaceResult)
    if race is not None and race.stopped_early:
        raise ConfigError(
            f"{store.path} stopped early, so its candidates have few scores in common.",
            hint="Grade everything first: `rocketeval run --until all`.",
        )
    grid = _complete(read_grid(store))
    if len(grid.candidates) < FEWEST_CANDIDATES:
        raise BenchmarkError(
            f"{store.path} has {len(grid.candidates)} candidates with scores on {FULL:.0%} of the "
            f"queries; anchors need {FEWEST_CANDIDATES}.",
            hint="Use a run with more candidates.",
        )
    if 2 * count > len(grid.query_ids):
        raise ConfigError(
            f"{count} anchors of {len(grid.query_ids)} queries spare little.",
            hint=f"Use --count {max(1, len(grid.query_ids) // 2)} or less, or grade everything.",
        )
    found = choose_anchors(grid.scores, count, seed)
    return AnchorChoice(
        queries=tuple(grid.query_ids[row] for row in found.rows.tolist()),
        weights=tuple(found.weights.tolist()),
        candidates=grid.candidates,
        of_queries=len(grid.query_ids),
        means=tuple(grid.scores.mean(axis=0).tolist()),
        predicted=tuple(found.predict(grid.scores).tolist()),
        anchors=cross_validate(grid.scores, count, seed),
        random=random_queries(grid.scores, count, DRAWS, seed),
    )


def _complete(grid: ScoreGrid) -> ScoreGrid:
    """Return the candidates with nearly all scores, and the queries on which all have one."""
    there = ~np.isnan(grid.scores)
    columns = np.flatnonzero(there.mean(axis=0) >= FULL)
    rows = np.flatnonzero(there[:, columns].all(axis=1))
    return grid.take(rows.tolist(), columns.tolist())


def save_queries(found: AnchorChoice, path: Path) -> None:
    """Write the ids, one per line, for `rocketeval run --queries`."""
    refuse_inside_run(path)
    write_bytes(path, "".join(f"{name}\n" for name in found.queries).encode())


def place_candidates(
    known: RunStore, new: RunStore, found: AnchorChoice, configs: tuple[RunConfig, RunConfig]
) -> tuple[Placement, ...]:
    """Return the known and the new run's candidates, best first by their anchor scores.

    `configs` are those of the two runs, in this order.
    """
    for store, config in zip((known, new), configs, strict=True):
        refuse_other_scorer(store, config)
    change = scoring_change(*configs)
    if known.judge().digest != new.judge().digest:
        change = "was graded by another judge or method"
    if change:
        raise ConfigError(
            f"Compared with {known.path}, {new.path} {change}.",
            hint="Run the new candidates with the same config and --queries.",
        )
    _refuse_other_queries(known, new, found)
    grid = read_grid(new)
    rows = {name: row for row, name in enumerate(grid.query_ids)}
    lacking = [name for name in found.queries if name not in rows]
    if lacking:
        raise BenchmarkError(
            f"{new.path} lacks {len(lacking)} anchors: {join_words(lacking, most=3)}.",
            hint="Write the anchors with --out, and grade them with `rocketeval run --queries`.",
        )
    scores = grid.scores[[rows[name] for name in found.queries]]
    names = [name for name in grid.candidates if name not in found.candidates]
    if not names:
        raise BenchmarkError(
            f"{new.path} has no candidate that {known.path} does not have.",
            hint="Give the run of a new candidate.",
        )
    anchors = Anchors(np.arange(len(found.queries)), np.array(found.weights))
    predicted = dict(zip(grid.candidates, anchors.predict(scores).tolist(), strict=True))
    unknown = [name for name in names if np.isnan(predicted[name])]
    if unknown:
        raise BenchmarkError(
            f"{join_words(unknown, most=3)} has no score on some anchors in {new.path}.",
            hint="Run it again to retry what failed.",
        )
    placed = [
        *(Placement(name, predicted[name], True) for name in names),
        *(
            Placement(name, value, False)
            for name, value in zip(found.candidates, found.predicted, strict=True)
        ),
    ]
    return tuple(sorted(placed, key=lambda one: (-one.predicted, one.candidate)))


def _refuse_other_queries(known: RunStore, new: RunStore, found: AnchorChoice) -> None:
    ours, theirs = known.inputs, new.inputs
    checklists = ours.checklists(), theirs.checklists()
    for name in found.queries:
        if name not in theirs.queries or name not in checklists[1]:
            continue
        pairs = (
            (ours.queries[name], theirs.queries[name]),
            (checklists[0][name], checklists[1][name]),
        )
        if any(one.content_hash != other.content_hash for one, other in pairs):
            raise BenchmarkError(
                f"Query {name!r} or its checklist differs between {known.path} and {new.path}.",
                hint="Use the same queries and checklists in both runs.",
            )
