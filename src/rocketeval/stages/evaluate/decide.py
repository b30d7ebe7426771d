"""What an evaluator decides: a preference for every two responses, or a value for each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from rocketeval.errors import StageMissing
from rocketeval.evolve.cases import Case, CaseTable, Floats
from rocketeval.evolve.perspective import Perspective
from rocketeval.evolve.predictions import Predictions
from rocketeval.stages.evaluate.cases import Cases
from rocketeval.stages.evaluate.given import FOLDER, Given
from rocketeval.stages.evolve.said import Said, SheetAnswers
from rocketeval.store.run import RunStore

AT_ONCE = 20_000
"""Cases that are decided at a time."""


@dataclass(frozen=True, eq=False)
class Decided:
    """Cases and what the evaluator says about each of them."""

    cases: tuple[Case, ...]
    said: Predictions
    silent: int
    """Cases about which nothing was answered: they are not among these, and not decided."""


def decide(store: RunStore, given: Given) -> Iterator[Decided]:
    """Yield all decisions of a run that was graded with this evaluator, at least one part."""
    _check_graded(store, given)
    said = Said(
        given.asked,
        [
            SheetAnswers(sheet, store.inside(FOLDER, sheet.name), perspectives)
            for sheet, perspectives in given.sheets.items()
        ],
    )
    waiting: list[Case] = []
    for _, cases in Cases.of(store.inputs, given.evaluator).decided():
        waiting += cases
        if len(waiting) >= AT_ONCE:
            yield _decide(said, given, waiting)
            waiting = []
    yield _decide(said, given, waiting)


def _decide(said: Said, given: Given, cases: list[Case]) -> Decided:
    evaluator, table = given.evaluator, said.table(cases)
    heard = np.flatnonzero(np.isfinite(table.answers).any(axis=1))
    table = table.take(heard)
    traits = _columns(table, evaluator.about_queries)
    return Decided(table.cases, evaluator.predict(table.answers, traits), len(cases) - len(heard))


def _columns(table: CaseTable, wanted: tuple[Perspective, ...]) -> Floats:
    """Return the traits that the evaluator needs; those that weigh nothing were not asked."""
    place = {each.id: number for number, each in enumerate(table.about_queries)}
    columns = [
        table.traits[:, place[each.id]] if each.id in place else np.zeros(len(table))
        for each in wanted
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0))


def _check_graded(store: RunStore, given: Given) -> None:
    """Raise StageMissing unless this very evaluator was put to the judge."""
    graded = store.manifest().get("stages", {}).get("grade", {}).get("evaluator", {})
    if graded.get("hash") != given.hash:
        raise StageMissing(
            f"{store.path} has not been graded with the evaluator {given.path} as it is now.",
            hint="Run `rocketeval grade` first; what was asked before is not asked again.",
        )
