"""The rank stage: ratings and ranks with intervals, from scores."""

from __future__ import annotations

from rocketeval.config import RunConfig
from rocketeval.ranking.rank import Ranking, find_anchor, rank
from rocketeval.ranking.summary import ranking_csv
from rocketeval.scoring.stage import read_grid
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
    )
    if store.save(ranking):
        store.drop_from("audit")
    store.save_text("ranking.csv", ranking_csv(ranking))
    return ranking


def check_anchor(store: RunStore, config: RunConfig) -> None:
    """Raise ConfigError, before anything is spent, if the anchor is not a candidate."""
    if config.ranking.anchor is not None:
        find_anchor(config.ranking.anchor, sorted(store.inputs.candidates()))


def read_ranking(store: RunStore) -> Ranking:
    """Return the saved ranking; raise StageMissing if there is none."""
    return store.read(Ranking)
