"""Several judges, or one judge several times, on the same responses: how far do they agree?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.methods import mean_scores
from rocketeval.audit.rank_matrix import RankMatrix, rank_matrix
from rocketeval.audit.reliability import Reliability, reliability
from rocketeval.audit.repeatability import Disagreement, disagreement
from rocketeval.config import RankingConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.ensemble import Common, common_grids
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.mean import MeanScorer
from rocketeval.stages.judged_runs import (
    JudgedRun,
    judge_names,
    refuse_other_responses,
    refuse_other_scales,
)
from rocketeval.stages.score import read_answers

Floats = NDArray[np.float64]
Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class JudgeReliability:
    """How far judges agree with each other; says nothing about whether they are right."""

    judges: tuple[str, ...]
    items: Reliability
    """Their yes and no to the same items: CheckEval's inter-evaluator agreement."""
    scores: Reliability
    """Their mean answers as scores; its variance is that of one response across judges."""
    pairs: Mapping[str, Disagreement]
    """Item by item between each two judges, by position in the checklist."""
    orders: RankMatrix
    """Rank correlation of their orders of the candidates."""
    responses: int
    """Responses that all of them judged by the same items."""
    left_out: int
    """Responses that only some of them judged, or by other items."""


def compare_judges(runs: Sequence[JudgedRun], ranking: RankingConfig) -> JudgeReliability:
    """Return how far the runs' judges agree, on what all of them judged by the same items."""
    if len(runs) < 2:
        raise ConfigError("One run cannot agree with itself.", hint="Give two runs or more.")
    refuse_other_scales(runs)
    tables = [read_answers(run.store)[0] for run in runs]
    refuse_other_responses(runs, _common(runs, tables))
    cells, left_out = _shared_cells(runs, tables)
    if not cells:
        raise BenchmarkError(
            "The runs have no response in common that was judged by the same items.",
            hint="Judges can be compared only where they answered the same checklists.",
        )
    names = judge_names(runs)
    answers = np.stack([_flat(table, cells) for table in tables])
    lengths = [len(items) for items in cells.values()]
    groups = np.repeat([query for query, _ in cells], lengths)
    positions = np.concatenate([np.arange(1, length + 1) for length in lengths])
    times, seed = ranking.bootstrap, ranking.seed
    grids = [_grid(run, table, cells) for run, table in zip(runs, tables, strict=True)]
    scores = np.stack([_scores(grid, cells) for grid in grids])
    hard = np.where(np.isnan(answers), np.nan, answers >= 0.5)
    return JudgeReliability(
        judges=names,
        items=reliability(hard, groups, names, level="nominal", bootstrap=times, seed=seed),
        scores=reliability(
            scores,
            np.array([query for query, _ in cells]),
            names,
            level="interval",
            bootstrap=times,
            seed=seed,
        ),
        pairs={
            f"{names[one]} / {names[two]}": disagreement(
                answers[one], answers[two], groups, positions, bootstrap=times, seed=seed
            )
            for one, two in combinations(range(len(names)), 2)
        },
        orders=rank_matrix(
            {name: mean_scores(grid) for name, grid in zip(names, grids, strict=True)}
        ),
        responses=len(cells),
        left_out=left_out,
    )


def _common(runs: Sequence[JudgedRun], tables: Sequence[AnswerTable]) -> Common:
    grids = [
        ScoreGrid.from_columns(table.query_ids, table.candidates, _mean(run, table).tolist())
        for run, table in zip(runs, tables, strict=True)
    ]
    return common_grids(grids)


def _shared_cells(
    runs: Sequence[JudgedRun], tables: Sequence[AnswerTable]
) -> tuple[dict[Cell, tuple[str, ...]], int]:
    """Return the responses judged by all runs with the same items, and how many others."""
    seen: list[dict[Cell, tuple[str, ...]]] = []
    for run, table in zip(runs, tables, strict=True):
        checklists = run.store.inputs.checklists()
        seen.append(
            {
                (query, candidate): checklists[query].items
                for query, candidate, items in zip(
                    table.query_ids, table.candidates, table.items.tolist(), strict=True
                )
                if items
            }
        )
    first, *others = seen
    shared = {
        cell: items for cell, items in first.items() if all(o.get(cell) == items for o in others)
    }
    return shared, len(set().union(*seen)) - len(shared)


def _flat(table: AnswerTable, cells: Mapping[Cell, tuple[str, ...]]) -> Floats:
    """Return the answers to all items of the cells, in their order."""
    rows = _rows(table)
    return table.take([rows[cell] for cell in cells]).p_yes


def _grid(run: JudgedRun, table: AnswerTable, cells: Mapping[Cell, tuple[str, ...]]) -> ScoreGrid:
    rows = _rows(table)
    chosen = table.take([rows[cell] for cell in cells])
    return ScoreGrid.from_columns(chosen.query_ids, chosen.candidates, _mean(run, chosen).tolist())


def _scores(grid: ScoreGrid, cells: Mapping[Cell, tuple[str, ...]]) -> Floats:
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    at = [rows[query] for query, _ in cells]
    found: Floats = grid.scores[at, [columns[candidate] for _, candidate in cells]]
    return found


def _mean(run: JudgedRun, table: AnswerTable) -> Floats:
    scorer = run.config.scorer
    return MeanScorer(scorer.scale, scorer.missing).predict(table)


def _rows(table: AnswerTable) -> dict[Cell, int]:
    cells = zip(table.query_ids, table.candidates, strict=True)
    return {cell: row for row, cell in enumerate(cells)}
