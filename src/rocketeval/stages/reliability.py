"""Several judges, or one judge several times, on the same responses: how far do they agree?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.advice_on_judges import on_judges
from rocketeval.audit.kappa import Statistic
from rocketeval.audit.rank_matrix import RankMatrix, rank_matrix
from rocketeval.audit.reliability import Reliability, reliability
from rocketeval.audit.repeatability import Disagreement, disagreement
from rocketeval.audit.same_cells import common_cells, mean_scores
from rocketeval.config import RankingConfig
from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.ensemble import common_grids
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.mean import MeanScorer
from rocketeval.stages.judged_runs import JudgedRun, judge_names, refuse_other_responses
from rocketeval.stages.shared_answers import read_shared
from rocketeval.stages.yes_no import answers_yes_or_no

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JudgePair:
    """What two of the judges disagree on, item by item."""

    one: str
    two: str
    items: Disagreement
    """Also by position in the checklist."""
    kappa: Statistic | None
    """Cohen's, of their yes and no; None where they do not answer with yes or no."""


@dataclass(frozen=True, slots=True)
class JudgeReliability:
    """How far judges agree with each other; says nothing about whether they are right."""

    judges: tuple[str, ...]
    yes_no: bool
    """Whether all of them answer with yes or no; otherwise with places on a scale."""
    items: Reliability
    """Their yes and no to the same items (CheckEval's inter-evaluator agreement), or their places
    on the scale."""
    scores: Reliability
    """The means of their answers as scores, on the first run's scale; its variance is that of one
    response across judges."""
    pairs: tuple[JudgePair, ...]
    orders: RankMatrix
    """Rank correlation of their orders of the candidates, by mean score over the responses that
    all of them scored."""
    responses: int
    """Responses that all of them judged by the same items."""
    left_out: int
    """Responses that only some of them judged."""
    other_items: int
    """Responses that all of them judged, but by other items."""
    advice: tuple[str, ...]
    """What this means, in sentences."""


def compare_judges(runs: Sequence[JudgedRun], ranking: RankingConfig) -> JudgeReliability:
    """Return how far the runs' judges agree, on what all of them judged by the same items."""
    if len(runs) < 2:
        raise ConfigError("One run cannot agree with itself.", hint="Give two runs or more.")
    names = judge_names(runs)
    shared = read_shared(runs)
    scores = _scores(runs[0], shared.tables)
    grids = _grids(runs, names, shared.tables, scores)
    same_cells, _ = common_cells(grids)
    orders = rank_matrix(
        {name: mean_scores(grid) for name, grid in same_cells.items()}, seed=ranking.seed
    )
    first, times, seed = shared.tables[0], ranking.bootstrap, ranking.seed
    yes_no = all(answers_yes_or_no(run.config) for run in runs)
    answers = np.stack([table.p_yes for table in shared.tables])
    items = reliability(
        np.where(np.isnan(answers), np.nan, answers >= 0.5) if yes_no else answers,
        _queries_of_items(first),
        names,
        level="nominal" if yes_no else "interval",
        bootstrap=times,
        seed=seed,
    )
    return JudgeReliability(
        judges=names,
        yes_no=yes_no,
        items=items,
        scores=reliability(
            scores, first.query_ids, names, level="interval", bootstrap=times, seed=seed
        ),
        pairs=_pairs(shared.tables, items, ranking, yes_no=yes_no),
        orders=orders,
        responses=len(first),
        left_out=shared.left_out,
        other_items=shared.other_items,
        advice=tuple(on_judges(items, orders, _twins(runs, names))),
    )


def _twins(runs: Sequence[JudgedRun], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the judges that are one and the same, asked in the same way."""
    digests = [run.store.judge().digest for run in runs]
    return [
        (names[one], names[two])
        for one, two in combinations(range(len(runs)), 2)
        if digests[one] == digests[two]
    ]


def _scores(first: JudgedRun, tables: Sequence[AnswerTable]) -> Floats:
    """Return each judge's mean answers on the first run's scale, one row a judge."""
    scorer = first.config.scorer
    mean = MeanScorer(scorer.scale, scorer.missing)
    return np.stack([mean.predict(table) for table in tables])


def _grids(
    runs: Sequence[JudgedRun],
    names: Sequence[str],
    tables: Sequence[AnswerTable],
    scores: Floats,
) -> dict[str, ScoreGrid]:
    """Return each judge's scores as a grid; they must be about the same responses."""
    grids = {
        name: ScoreGrid.from_columns(table.query_ids, table.candidates, own.tolist())
        for name, table, own in zip(names, tables, scores, strict=True)
    }
    refuse_other_responses(runs, common_grids(list(grids.values())))
    return grids


def _pairs(
    tables: Sequence[AnswerTable], items: Reliability, ranking: RankingConfig, *, yes_no: bool
) -> tuple[JudgePair, ...]:
    """Return what each two judges disagree on."""
    first = tables[0]
    queries, positions = _queries_of_items(first), _positions(first)
    return tuple(
        JudgePair(
            items.raters[one],
            items.raters[two],
            disagreement(
                tables[one].p_yes,
                tables[two].p_yes,
                queries,
                positions,
                bootstrap=ranking.bootstrap,
                seed=ranking.seed,
            ),
            items.cohen[one][two] if yes_no else None,
        )
        for one, two in combinations(range(len(tables)), 2)
    )


def _queries_of_items(table: AnswerTable) -> list[str]:
    """Return the query of every item."""
    sizes = table.items.tolist()
    return [query for query, size in zip(table.query_ids, sizes, strict=True) for _ in range(size)]


def _positions(table: AnswerTable) -> NDArray[np.int64]:
    """Return the place of every item in its checklist, from 1."""
    return np.arange(len(table.p_yes)) - np.repeat(table.offsets[:-1], table.items) + 1
