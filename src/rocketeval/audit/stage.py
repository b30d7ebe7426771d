"""audit: how far people agree with the scores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.audit.advice import advice
from rocketeval.audit.audit import Audit, audit
from rocketeval.audit.bias import guess_family
from rocketeval.config import RunConfig, ScorerConfig
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Basis, Gold
from rocketeval.scoring.base import create_scorer
from rocketeval.scoring.read_answers import AnswerReader, answers_yes_or_no
from rocketeval.scoring.split import gold_cells
from rocketeval.scoring.stage import read_grid
from rocketeval.stats.permutation import queries_needed
from rocketeval.store.run import RunStore

MOST_LENGTHS = 20_000
"""Responses of a run above which the length bias is measured on some of its queries."""


def audit_run(store: RunStore, config: RunConfig) -> Audit:
    """Write the audit as JSON and return it; a report of another audit is removed."""
    gold = Gold(store.inputs.labels(), store.inputs.votes(), store.inputs.ratings())
    ratings = {row.candidate: row.rating.value for row in store.read(Ranking).rows}
    grid = read_grid(store)
    found = audit(
        grid,
        _rivals(store, config, gold, grid) if gold.votes or gold.labels else {},
        _lengths(store, gold, grid, config.ranking.seed),
        ratings,
        gold,
        _basis(store, gold),
        config.ranking,
        categories=_categories(store, gold),
        scale=config.scorer.scale,
        family=guess_family(store.judge().model, grid.candidates) or frozenset(),
    )
    found = replace(found, advice=advice(found, queries_needed))
    if store.save(found):
        store.drop_from("report")
    return found


def _lengths(
    store: RunStore, gold: Gold, grid: ScoreGrid, seed: int
) -> dict[tuple[str, str], float]:
    """Return the characters of responses: of all, or in a large run of those to some queries.

    Queries with gold are always among them.
    """
    lengths = store.inputs.lengths_of(_queries(gold) | _some_queries(grid, seed))
    return {cell: float(length) for cell, length in lengths.items()}


def _queries(gold: Gold) -> set[str]:
    """Return the queries with labels or votes."""
    return {vote.query_id for vote in gold.votes} | {label.query_id for label in gold.labels}


def _some_queries(grid: ScoreGrid, seed: int) -> set[str]:
    """Return as many queries, drawn at random, as `MOST_LENGTHS` responses belong to."""
    queries = len(grid.query_ids)
    room = MOST_LENGTHS * queries // max(1, grid.scores.size)
    if room >= queries:
        return set(grid.query_ids)
    drawn = np.random.default_rng(seed).choice(queries, size=max(1, room), replace=False)
    return {grid.query_ids[row] for row in drawn.tolist()}


def _categories(store: RunStore, gold: Gold) -> dict[str, str]:
    """Return the category of every query that has one, by its id; nothing without votes."""
    if not gold.votes:
        return {}
    queries = store.inputs.queries.values()
    return {query.id: query.category for query in queries if query.category}


def _rivals(
    store: RunStore, config: RunConfig, gold: Gold, grid: ScoreGrid
) -> dict[str, ScoreGrid]:
    """Return judgments on queries with gold, scored by simpler means than the run's scorer."""
    scorer = config.scorer
    own = scorer.kind if scorer.fitted is None and config.evaluator is None else None
    kinds = _SIMPLER if answers_yes_or_no(config) else _SIMPLER_GRADES
    scorers = {
        name: create_scorer(ScorerConfig(kind=kind, scale=scorer.scale, missing=scorer.missing))
        for name, kind in kinds.items()
        if kind != own
    }
    scores = {name: np.full(grid.scores.shape, np.nan) for name in scorers}
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    for part in AnswerReader(store).parts(_queries(gold)):
        own_rows = [rows[query] for query in part.answers.query_ids]
        own_columns = [columns[candidate] for candidate in part.answers.candidates]
        for name, simpler in scorers.items():
            scores[name][own_rows, own_columns] = simpler.predict(part.answers)
    return {name: ScoreGrid(grid.query_ids, grid.candidates, own) for name, own in scores.items()}


def _basis(store: RunStore, gold: Gold) -> dict[tuple[str, str], Basis]:
    """Return what the score of every response with gold rests on."""
    cells = gold_cells(gold)
    if not cells:
        return {}
    queries = pa.array(sorted({query_id for query_id, _ in cells}), pa.string())
    found: dict[tuple[str, str], Basis] = {}
    for batch in store.score_batches(["query_id", "candidate", "basis"]):
        chosen = batch.filter(pc.is_in(batch["query_id"], value_set=queries))
        columns = (chosen[name].to_pylist() for name in ("query_id", "candidate", "basis"))
        for query_id, candidate, basis in zip(*columns, strict=True):
            if (query_id, candidate) in cells:
                found[query_id, candidate] = Basis(basis)
    return found


_SIMPLER_GRADES = {"mean of answers": "mean"}
_SIMPLER = {**_SIMPLER_GRADES, "hard yes/no": "hard"}
