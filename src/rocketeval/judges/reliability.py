"""How far several judges, or one judge several times, agree on the same responses."""

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
from rocketeval.audit.wording import rho
from rocketeval.config import RankingConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.judges.runs import JudgedRun, common_grids, judge_names, refuse_other_responses
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.read_answers import answers_yes_or_no, read_answers
from rocketeval.stats.agreement import Reliability, Statistic, reliability
from rocketeval.stats.correlation import RankMatrix, rank_matrix

Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class SharedAnswers:
    """What every run judged by the same items, the same rows in every table."""

    tables: tuple[AnswerTable, ...]
    left_out: int
    """Responses that only some of the runs judged."""
    other_items: int
    """Responses that all of them judged, but by other items."""


def read_shared(runs: Sequence[JudgedRun]) -> SharedAnswers:
    """Return what all runs judged by the same items; BenchmarkError if that is nothing."""
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
            "The runs have no response in common that was judged by the same items.",
            hint="Judges can be compared only where they answered the same checklists.",
        )
    cut = tuple(
        table.take([each[cell][0] for cell in same])
        for table, each in zip(tables, seen, strict=True)
    )
    _refuse_silent(runs, cut)
    return SharedAnswers(cut, len(anywhere) - len(everywhere), len(everywhere) - len(same))


def _judged(run: JudgedRun, table: AnswerTable) -> dict[Cell, tuple[int, tuple[str, ...]]]:
    """Return the row and the items of every response that the run judged."""
    checklists = run.store.inputs.checklists()
    columns = zip(table.query_ids, table.candidates, table.items.tolist(), strict=True)
    return {
        (query, candidate): (row, checklists[query].items)
        for row, (query, candidate, items) in enumerate(columns)
        if items
    }


def _refuse_silent(runs: Sequence[JudgedRun], tables: Sequence[AnswerTable]) -> None:
    for run, table in zip(runs, tables, strict=True):
        if np.isnan(table.p_yes).all():
            raise BenchmarkError(
                f"The judge of {run.store.path} answered none of the items that the runs share.",
                hint="Leave its run out; `rocketeval doctor` tells why a judge does not answer.",
            )


RELIABLE, TENTATIVE = 0.8, 0.667
"""Krippendorff's own marks: data to draw conclusions from, and tentative ones."""


def on_judges(
    items: Reliability, orders: RankMatrix, twins: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """Yield whether the judges can stand for each other: item by item, and for an order.

    `twins` are the same judge, asked in the same way.
    """
    yield _on_items(items)
    yield from _on_orders(orders)
    for one, two in twins:
        yield (
            f"{one} and {two} are the same judge, asked in the same way: where the runs share a "
            "cache, so are the answers."
        )
    yield "Judges that agree can still all be wrong: only gold tells."


def _on_items(found: Reliability) -> str:
    alpha = found.alpha
    if alpha is None:
        return f"Item by item, their agreement cannot be told: {found.reason}."
    if math.isnan(alpha.low):
        told = f"{found.queries} queries are too few to be sure"
        return f"Item by item, alpha is {rho(alpha.value)} so far; {told}."
    figure = f"alpha {rho(alpha.value)} ({rho(alpha.low)} to {rho(alpha.high)})"
    if alpha.low >= RELIABLE:
        return f"Item by item, one judge can stand for another: {figure}."
    if alpha.high < TENTATIVE:
        return (
            f"Item by item, what is found hangs on which judge is asked: {figure}, and "
            f"{TENTATIVE:.2f} is the least to conclude anything from."
        )
    return (
        f"Item by item, conclusions from one judge are tentative: {figure}; from {RELIABLE:g} on "
        "one can stand for another."
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
    worst = f" at worst, between {one} and {two}" if differ else ""
    yield (
        f"Their orders of {len(found.candidates)} candidates by mean score: Spearman "
        f"{rho(lowest)}{worst}."
    )


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

    FILE: ClassVar[str] = "reliability"
    COMMAND: ClassVar[str] = "audit --against"
    SCHEMA: ClassVar[int] = 1

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
    same_cells, _ = common_responses(grids)
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
    runs: Sequence[JudgedRun], names: Sequence[str], tables: Sequence[AnswerTable], scores: Floats
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
