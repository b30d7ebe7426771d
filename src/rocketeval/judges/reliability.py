"""Inter-judge agreement: several judges, or repetitions of one, on the same responses."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.audit.repeatability import Disagreement, disagreement
from rocketeval.audit.votes import common_responses, mean_scores
from rocketeval.audit.wording import LEVEL, rho, rho_interval
from rocketeval.config import RankingConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.judges.runs import JudgedRun, common_grids, judge_names, refuse_other_responses
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.read_answers import answers_yes_or_no, read_answers
from rocketeval.stats.agreement import RankMatrix, Reliability, Statistic, rank_matrix, reliability
from rocketeval.stats.bootstrap import least_queries

Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SharedAnswers:
    """Answers that every run gave to the same items, with the same rows in every table."""

    tables: tuple[AnswerTable, ...]
    """As read, with what each answer contributes to a score."""
    clusters: tuple[str, ...]
    """Of each row: what is resampled for intervals."""
    left_out: int
    """Responses judged by only some of the runs."""
    other_items: int
    """Responses judged by all runs, but with different items."""


def read_shared(runs: Sequence[JudgedRun]) -> SharedAnswers:
    """Return the answers of all runs to the same items; BenchmarkError if there are none."""
    tables = [read_answers(run.store)[0] for run in runs]
    seen = [_judged(run, table) for run, table in zip(runs, tables, strict=True)]
    everywhere = set.intersection(*(set(each) for each in seen))
    anywhere = set[Cell]().union(*seen)
    same = [
        cell
        for cell in seen[0]
        if cell in everywhere and len({each[cell][1] for each in seen}) == 1
    ]
    if not same:
        raise BenchmarkError(
            "The runs share no response that was judged with the same items.",
            hint="Compare runs whose judges answered the same checklists.",
        )
    cut = tuple(
        table.take([each[cell][0] for cell in same])
        for table, each in zip(tables, seen, strict=True)
    )
    _refuse_unanswered(runs, cut)
    named = runs[0].store.inputs.clusters()
    clusters = tuple(named[query] for query, _ in same)
    return SharedAnswers(
        cut, clusters, len(anywhere) - len(everywhere), len(everywhere) - len(same)
    )


def _judged(run: JudgedRun, table: AnswerTable) -> dict[Cell, tuple[int, tuple[str, ...]]]:
    """Return the row and the items of every response that the run judged."""
    checklists = run.store.inputs.checklists()
    columns = zip(table.query_ids, table.candidates, table.items.tolist(), strict=True)
    return {
        (query, candidate): (row, checklists[query].items)
        for row, (query, candidate, items) in enumerate(columns)
        if items
    }


def _refuse_unanswered(runs: Sequence[JudgedRun], tables: Sequence[AnswerTable]) -> None:
    for run, table in zip(runs, tables, strict=True):
        if np.isnan(table.shown).all():
            raise BenchmarkError(
                f"The judge of {run.store.path} answered none of the items that the runs share.",
                hint="Leave this run out; `rocketeval doctor` shows why a judge does not answer.",
            )


RELIABLE, TENTATIVE = 0.8, 0.667
"""Krippendorff's thresholds for reliable and for tentative conclusions."""


def judge_advice(
    items: Reliability, orders: RankMatrix, duplicates: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """Yield sentences on whether the judges are interchangeable, by item and by ranking.

    `duplicates` are pairs of runs with the same judge and method.
    """
    yield _on_items(items)
    yield from _on_orders(orders)
    for one, two in duplicates:
        yield (
            f"{one} and {two} are the same judge with the same method: if the runs share a cache, "
            "they also share answers."
        )
    yield "Judges that agree can all be wrong: check them against reference data."


def _on_items(found: Reliability) -> str:
    alpha = found.alpha
    if alpha is None:
        return f"Item by item, agreement is unknown: {found.reason}."
    if math.isnan(alpha.low):
        why = f"{found.queries} queries are too few for an interval"
        if found.queries >= least_queries(LEVEL):
            why = f"it is the same on all {found.queries} queries, so there is no interval"
            if alpha.value < TENTATIVE:
                depends = "Item by item, results depend on the judge"
                return f"{depends}: alpha {rho(alpha.value)}; {why}."
        return f"Item by item, alpha is {rho(alpha.value)}; {why}."
    figure = f"alpha {rho_interval(alpha)}"
    if alpha.low >= RELIABLE:
        return f"Item by item, the judges are interchangeable: {figure}."
    if alpha.high < TENTATIVE:
        return (
            f"Item by item, results depend on the judge: {figure}, below the minimum of "
            f"{TENTATIVE:.2f} for any conclusion."
        )
    return (
        f"Item by item, conclusions from one judge are tentative: {figure}; judges are "
        f"interchangeable from {RELIABLE:g}."
    )


def _on_orders(found: RankMatrix) -> Iterator[str]:
    known = [
        (cell.spearman.value, found.judges[one], found.judges[two])
        for one, two in combinations(range(len(found.judges)), 2)
        if (cell := found.cells[one][two]).spearman is not None
    ]
    if not known:
        return
    lowest, one, two = min(known)
    differ = rho(lowest) != rho(max(known)[0])
    worst = f" at the lowest, between {one} and {two}" if differ else ""
    yield (
        f"Rankings of {len(found.candidates)} candidates by mean score: Spearman "
        f"{rho(lowest)}{worst}."
    )


@dataclass(frozen=True, slots=True)
class JudgePair:
    """The disagreement of two judges, item by item."""

    one: str
    two: str
    items: Disagreement
    """Also by position in the checklist."""
    kappa: Statistic | None
    """Cohen's kappa of their yes/no answers; None if they do not answer yes or no."""


@dataclass(frozen=True, slots=True)
class JudgeReliability:
    """The agreement of judges with each other, which does not show whether they are right."""

    FILE: ClassVar[str] = "reliability"
    COMMAND: ClassVar[str] = "audit --against"
    SCHEMA: ClassVar[int] = 1

    judges: tuple[str, ...]
    yes_no: bool
    """Whether all of them answer yes or no; otherwise on a scale."""
    items: Reliability
    """Agreement of yes/no answers to the same items (CheckEval's inter-evaluator agreement), or of
    answers on a scale."""
    scores: Reliability
    """Agreement of mean answers as scores, on the first run's scale; its variance is that of one
    response across judges."""
    pairs: tuple[JudgePair, ...]
    orders: RankMatrix
    """Rank correlation of the candidates' mean scores, over the responses that all judges
    scored."""
    responses: int
    """Responses that all of them judged with the same items."""
    left_out: int
    """Responses judged by only some of them."""
    other_items: int
    """Responses judged by all of them, but with different items."""
    advice: tuple[str, ...]
    """The conclusions, as sentences."""


def compare_judges(runs: Sequence[JudgedRun], ranking: RankingConfig) -> JudgeReliability:
    """Return the agreement of the runs' judges on responses judged with the same items."""
    if len(runs) < 2:
        raise ConfigError(
            "A comparison of judges needs at least two runs.", hint="Give two or more."
        )
    names = judge_names(runs)
    shared = read_shared(runs)
    scores = _scores(runs[0], shared.tables)
    grids = _grids(runs, names, shared.tables, scores)
    same_cells, _ = common_responses(grids)
    orders = rank_matrix(
        {name: mean_scores(grid) for name, grid in same_cells.items()}, seed=ranking.seed
    )
    times, seed = ranking.bootstrap, ranking.seed
    yes_no = all(answers_yes_or_no(run.config) for run in runs)
    answers = np.stack([table.shown for table in shared.tables])
    items = reliability(
        np.where(np.isnan(answers), np.nan, answers >= 0.5) if yes_no else answers,
        _clusters_of_items(shared),
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
            scores, shared.clusters, names, level="interval", bootstrap=times, seed=seed
        ),
        pairs=_pairs(shared, items, ranking, yes_no=yes_no),
        orders=orders,
        responses=len(shared.clusters),
        left_out=shared.left_out,
        other_items=shared.other_items,
        advice=tuple(judge_advice(items, orders, _duplicates(runs, names))),
    )


def _duplicates(runs: Sequence[JudgedRun], names: Sequence[str]) -> list[tuple[str, str]]:
    """Return the pairs of runs with the same judge and method."""
    digests = [run.store.judge().digest for run in runs]
    return [
        (names[one], names[two])
        for one, two in combinations(range(len(runs)), 2)
        if digests[one] == digests[two]
    ]


def _scores(first: JudgedRun, tables: Sequence[AnswerTable]) -> Floats:
    """Return each judge's mean answers on the first run's scale, one row per judge."""
    scorer = first.config.scorer
    mean = MeanScorer(scorer.scale, scorer.missing)
    return np.stack([mean.predict(table) for table in tables])


def _grids(
    runs: Sequence[JudgedRun], names: Sequence[str], tables: Sequence[AnswerTable], scores: Floats
) -> dict[str, ScoreGrid]:
    """Return each judge's scores as a grid, after checking that the responses are the same."""
    grids = {
        name: ScoreGrid.from_columns(table.query_ids, table.candidates, own.tolist())
        for name, table, own in zip(names, tables, scores, strict=True)
    }
    refuse_other_responses(runs, common_grids(list(grids.values())))
    return grids


def _pairs(
    shared: SharedAnswers, items: Reliability, ranking: RankingConfig, *, yes_no: bool
) -> tuple[JudgePair, ...]:
    """Return the disagreement of each pair of judges."""
    tables = shared.tables
    clusters, positions = _clusters_of_items(shared), _positions(tables[0])
    return tuple(
        JudgePair(
            items.raters[one],
            items.raters[two],
            disagreement(
                tables[one].shown,
                tables[two].shown,
                clusters,
                positions,
                bootstrap=ranking.bootstrap,
                seed=ranking.seed,
            ),
            items.cohen[one][two] if yes_no else None,
        )
        for one, two in combinations(range(len(tables)), 2)
    )


def _clusters_of_items(shared: SharedAnswers) -> list[str]:
    """Return the cluster of every item."""
    return np.repeat(np.array(shared.clusters), shared.tables[0].items).tolist()


def _positions(table: AnswerTable) -> NDArray[np.int64]:
    """Return the position of every item in its checklist, from 1."""
    return np.arange(len(table.p_yes)) - np.repeat(table.offsets[:-1], table.items) + 1
