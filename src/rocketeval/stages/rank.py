"""rank: scores become ratings and ranks, with intervals."""

from __future__ import annotations

import csv
import io
import math
from dataclasses import asdict
from typing import Any

from rocketeval.config import RunConfig
from rocketeval.ranking.rank import Ranking, rank
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
    )
    store.save_json("ranking", asdict(ranking))
    store.save_text("ranking.csv", _csv(ranking))
    return ranking


def _csv(ranking: Ranking) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in ranking.rows:
        name = row.candidate
        writer.writerow(
            [
                row.rank,
                row.rank_low,
                row.rank_high,
                # A leading apostrophe keeps a spreadsheet from running a name as a formula.
                f"'{name}" if name.startswith(("=", "+", "-", "@", "\t", "\r")) else name,
                *_cells(row.rating),
                *_cells(row.mean_score),
                row.queries,
                row.missing,
                row.group,
            ]
        )
    return text.getvalue()


def _cells(figure: Interval) -> list[float | str]:
    """Return value and bounds; an unknown bound is an empty cell."""
    return ["" if math.isnan(x) else x for x in (figure.value, figure.low, figure.high)]


_COLUMNS: list[Any] = [
    "rank",
    "rank_low",
    "rank_high",
    "candidate",
    "rating",
    "rating_low",
    "rating_high",
    "mean_score",
    "mean_score_low",
    "mean_score_high",
    "queries",
    "missing",
    "group",
]
