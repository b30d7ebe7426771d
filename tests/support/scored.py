"""A scored run with any scores, labels and bases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from rocketeval.config import RunConfig
from rocketeval.ranking.rank import RankedCandidate, Ranking
from rocketeval.records import Interval, Label, Query, Response
from rocketeval.store.run import RunStore
from support.make import make_config


def scored_run(
    folder: Path,
    scores: Mapping[str, Sequence[float | None]],
    labels: Sequence[Label] = (),
    *,
    basis: Mapping[str, str] | None = None,
    categories: Sequence[str] | None = None,
) -> RunConfig:
    """Write a run whose queries are q0, q1, ...; return its config.

    `basis` is by candidate; without it the table has no such column, as in older runs.
    """
    config = make_config(folder, ranking={"bootstrap": 200})
    store = RunStore(config.run_path)
    count = len(next(iter(scores.values())))
    kinds = categories or [None] * count
    queries = [Query(f"q{row}", "?", category=kinds[row]) for row in range(count)]
    cells = [(query.id, name, row) for row, query in enumerate(queries) for name in scores]
    store.inputs.save(queries, [Response(q, c, "x") for q, c, _ in cells], labels, (), ())
    columns: dict[str, list[object]] = {
        "query_id": [query_id for query_id, _, _ in cells],
        "candidate": [candidate for _, candidate, _ in cells],
        "score": [scores[candidate][row] for _, candidate, row in cells],
    }
    if basis is not None:
        columns["basis"] = [basis[candidate] for _, candidate, _ in cells]
    store.save_scores([pa.table(columns)])
    figure = Interval(0.0, 0.0, 0.0)
    rows = tuple(
        RankedCandidate(name, place, place, place, figure, figure, count, 0, place, 1)
        for place, name in enumerate(scores, start=1)
    )
    store.save(Ranking(rows, (), 0.1, 200, 0, 0.95, count, 1))
    return config


def scores_and_labels(
    queries: int, labelled: int, seed: int = 0
) -> tuple[dict[str, list[float | None]], list[Label]]:
    """Return scores of `new` and `old` (new is a point better), and labels on some queries."""
    rng = np.random.default_rng(seed)
    scores: dict[str, list[float | None]] = {}
    labels: list[Label] = []
    rows = rng.permutation(queries)[:labelled].tolist()
    for name, shift in (("new", 1.0), ("old", 0.0)):
        truth = np.clip(6.0 + shift + rng.normal(size=queries), 1.0, 10.0)
        judged = np.clip(truth - 1.0 + 0.5 * rng.normal(size=queries), 1.0, 10.0)
        scores[name] = judged.tolist()
        labels += [Label(f"q{row}", name, float(truth[row])) for row in rows]
    return scores, labels
