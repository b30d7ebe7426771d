"""The rank stage: ratings and ranks with intervals, from scores."""

from __future__ import annotations

import math
from dataclasses import replace

from rocketeval.config import RunConfig
from rocketeval.ranking.rank import Ranking, find_anchor, rank
from rocketeval.ranking.summary import ranking_csv
from rocketeval.records import Interval
from rocketeval.scoring.rubric import POINTS
from rocketeval.scoring.stage import read_grid
from rocketeval.stopping.race import RaceResult
from rocketeval.store.run import RunStore


def rank_candidates(store: RunStore, config: RunConfig) -> Ranking:
    """Write the ranking as JSON and CSV, and return it.

    Audit, explanation and report are removed only if the ranking changed.
    """
    ranking = rank(
        read_grid(store),
        tie_margin=config.ranking.tie_margin,
        bootstrap=config.ranking.bootstrap,
        seed=config.ranking.seed,
        anchor=config.ranking.anchor,
        anchor_rating=config.ranking.anchor_rating,
        rank_intervals=config.ranking.rank_intervals,
        race=store.read_if_made(RaceResult),
    )
    scale = clipping_scale(store, config)
    if scale is not None:
        ranking = clip_means(ranking, scale)
    if store.save(ranking):
        store.drop_from("audit")
    store.save_text("ranking.csv", ranking_csv(ranking))
    return ranking


def clipping_scale(store: RunStore, config: RunConfig) -> tuple[float, float] | None:
    """Return the scale to which shown means of scores are clipped; None if they are not.

    Differences, their intervals and all tests use the scores as they are.
    """
    points = store.manifest().stages.score.scorer == POINTS
    return config.scorer.scale if points else None


def clip_means(ranking: Ranking, scale: tuple[float, float]) -> Ranking:
    """Return the ranking with mean scores and their bounds clipped to the scale.

    Points of a response may be below the scale, as penalties add up; a candidate's mean is not.
    """
    rows = [replace(row, mean_score=clip_interval(row.mean_score, scale)) for row in ranking.rows]
    return replace(ranking, rows=tuple(rows))


def clip_interval(given: Interval, scale: tuple[float, float]) -> Interval:
    """Return a figure and its bounds clipped to the scale; an unknown bound stays unknown.

    An interval on one side of the scale is unknown, because nothing of it is left.
    """
    low, high = scale

    def clipped(value: float) -> float:
        return value if math.isnan(value) else min(max(value, low), high)

    found = Interval(clipped(given.value), clipped(given.low), clipped(given.high))
    if found.low == found.high and given.low < given.high:
        return Interval(found.value, math.nan, math.nan)
    return found


def check_anchor(store: RunStore, config: RunConfig) -> None:
    """Raise ConfigError, before anything is spent, if the anchor is not a candidate."""
    if config.ranking.anchor is not None:
        find_anchor(config.ranking.anchor, sorted(store.inputs.candidates()))


def read_ranking(store: RunStore) -> Ranking:
    """Return the saved ranking; raise StageMissing if there is none."""
    return store.read(Ranking)
