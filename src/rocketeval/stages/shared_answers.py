"""The answers of several runs to the same items about the same responses, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rocketeval.errors import BenchmarkError
from rocketeval.scoring.answers import AnswerTable
from rocketeval.stages.answers import read_answers
from rocketeval.stages.judged_runs import JudgedRun

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
