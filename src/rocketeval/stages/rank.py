"""rank: scores become ratings and ranks, with intervals."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rocketeval.config import RunConfig
from rocketeval.exports.tables import ranking_csv
from rocketeval.ranking.anchor import find_anchor
from rocketeval.ranking.rank import RankedCandidate, Ranking, WinMatrix, rank
from rocketeval.records import Interval
from rocketeval.stages.score import read_grid
from rocketeval.store.run import RunStore


def rank_candidates(store: RunStore, config: RunConfig) -> Ranking:
    """Write the ranking as JSON and CSV, and return it."""
    store.drop_from("rank")
    ranking = rank(
        read_grid(store),
        tie_margin=config.ranking.tie_margin,
        bootstrap=config.ranking.bootstrap,
        seed=config.ranking.seed,
        anchor=config.ranking.anchor,
        anchor_rating=config.ranking.anchor_rating,
    )
    store.save_json("ranking", asdict(ranking))
    store.save_text("ranking.csv", ranking_csv(ranking))
    return ranking


def check_anchor(store: RunStore, config: RunConfig) -> None:
    """Raise ConfigError, before anything is paid for, if no candidate is the anchor."""
    if config.ranking.anchor is not None:
        find_anchor(config.ranking.anchor, sorted(store.inputs.candidates()))


def read_ranking(store: RunStore) -> Ranking:
    """Return the ranking as the rank stage left it; StageMissing before."""
    found = store.load_json("ranking", "rank")
    wins = found.get("wins")
    made = {
        "rows": tuple(map(_read_row, found["rows"])),
        "unranked": tuple(found["unranked"]),
        "wins": wins
        and WinMatrix(tuple(wins["candidates"]), tuple(tuple(row) for row in wins["shares"])),
    }
    return Ranking(**{**found, **made})


def _read_row(row: Mapping[str, Any]) -> RankedCandidate:
    figures = {name: _read_interval(row[name]) for name in ("rating", "mean_score")}
    return RankedCandidate(**{**row, **figures})


def _read_interval(found: Mapping[str, float | None]) -> Interval:
    """Return an interval as JSON kept it, which has no NaN."""
    values = (found[name] for name in ("value", "low", "high"))
    return Interval(*(math.nan if value is None else value for value in values))
