"""How good an evaluator is on queries that it never saw, beside simpler ways to judge.

Queries are cut into folds. For each fold everything is learned from the others alone: which
perspectives stay, the forests' settings, the number of experts, the router and the forests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.config import EvolveConfig
from rocketeval.evolve.baselines import (
    COMMONEST,
    MEAN,
    commonest_outcome,
    mean_outcome,
    single_outcomes,
)
from rocketeval.evolve.cases import CaseTable, Floats, Task
from rocketeval.evolve.choose import Choice
from rocketeval.evolve.columns import stacked
from rocketeval.evolve.evaluator import prepare
from rocketeval.evolve.figures import label_figures, verdict_figures
from rocketeval.evolve.groups import group_folds
from rocketeval.evolve.panel import fit_panel, fit_router
from rocketeval.evolve.predictions import Predictions, joined
from rocketeval.evolve.select import weigh_perspectives, with_gold
from rocketeval.records import Interval

WITHOUT = "without experts"
WITH = "with experts"
Parts = list[tuple[NDArray[np.intp], Predictions]]


@dataclass(frozen=True, eq=False)
class Arm:
    """One way to judge, and how it did on queries it did not learn from."""

    name: str
    figures: Mapping[str, Interval]
    """Of pairs accuracy, f1 and precision (macro), rho and tau; of labels rho, tau and mse."""
    gain: Interval
    """Its accuracy, of labels its rho, less that of `WITHOUT`, on the same resamples."""
    lead: Interval
    """That of `WITH` less its own, likewise: what the evaluator gains over it."""
    outcome: Floats
    """Its verdict (-1, 0, 1) or label of each case in `Validation.rows`."""
    predictions: Predictions | None
    """Of the two learned arms, with probabilities, confidence and expert."""


@dataclass(frozen=True, eq=False)
class Validation:
    """Arms on the same cases."""

    task: Task
    rows: NDArray[np.intp]
    """Places in the table of the cases that have gold; all else is in their order."""
    gold: Floats
    query_ids: tuple[str, ...]
    folds: NDArray[np.int64]
    """The fold in which each case was left out."""
    experts: tuple[int, ...]
    """How many experts each fold chose."""
    arms: Mapping[str, Arm]
    without_gold: int
    """Cases that count for nothing because nobody judged them."""
    learned_also: int
    """Cases of `learn_also` that could be learned from, each in one fold or more."""

    @property
    def measure(self) -> str:
        """The figure by which arms are compared."""
        return measure_of(self.task)


def cross_validate(
    table: CaseTable,
    settings: EvolveConfig,
    *,
    learn_also: CaseTable | None = None,
    overall: str | None = None,
    kept: Collection[str] | None = None,
) -> Validation:
    """Return figures on the table's cases, each judged by what never saw its query.

    learn_also: cases that are learned from in every fold and never measured, such as those that
    evolution saw; without those of a query that is left out.
    overall: id of the perspective that asks for the whole judgment; without one, the arms of a
    single prompt are left out.
    kept: ids of the perspectives that all other arms may use, where that is not every one.
    """
    known = with_gold(table)
    folds = group_folds(known.query_ids, settings.folds, settings.seed)
    learned: dict[str, Parts] = {WITHOUT: [], WITH: []}
    simple: dict[str, Floats] = {}
    chosen, also_rows = [], set[int]()
    for fold in range(int(folds.max()) + 1):
        asked = np.flatnonzero(folds == fold)
        seen = known.take(np.flatnonzero(folds != fold))
        if learn_also is not None:
            more = _of_other_queries(learn_also, {known.query_ids[row] for row in asked.tolist()})
            also_rows.update(more.tolist())
            seen = stacked(seen, learn_also.take(more))
        new = known.take(asked)
        said_by = {COMMONEST: commonest_outcome(seen, new)} if known.pairs else {}
        if overall is not None:
            said_by |= single_outcomes(seen, new, overall)
        if kept is not None:
            seen, new = seen.narrow(kept), new.narrow(kept)
        for name, outcome in {**said_by, MEAN: mean_outcome(seen, new)}.items():
            simple.setdefault(name, np.zeros(len(known)))[asked] = outcome
        both, count = _learned(seen, new, settings)
        chosen.append(count)
        for name, found in both.items():
            learned[name].append((asked, found))
    said = {name: joined(parts) for name, parts in learned.items()}
    outcomes = {**simple, **{name: whole.outcome for name, whole in said.items()}}
    return Validation(
        known.task,
        np.flatnonzero(~np.isnan(table.gold)),
        known.gold,
        tuple(known.query_ids),
        folds,
        tuple(chosen),
        _arms(known.task, outcomes, said, known, settings.seed),
        len(table) - len(known),
        len(also_rows),
    )


def out_of_fold(table: CaseTable, settings: EvolveConfig) -> Predictions:
    """Return what evaluators say about cases of queries that they did not learn from: for mistakes.

    Cheaper than `cross_validate`, and a little flattered: the number of experts and the forests'
    settings are found once, with all queries, by the short search. Cases without gold are judged
    too; they are learned from by nobody.
    """
    course = prepare(table, settings.model_copy(update={"search": "short"}))
    count = course.choose().count
    folds = group_folds(table.query_ids, settings.folds, settings.seed)
    parts: Parts = []
    for fold in range(int(folds.max()) + 1):
        asked = np.flatnonzero(folds == fold)
        seen = with_gold(table.take(np.flatnonzero(folds != fold)))
        standings = weigh_perspectives(seen, settings)
        kept = standings.keep(settings.most_about_responses, settings.most_about_queries)
        seen, new = seen.narrow(kept), table.take(asked).narrow(kept)
        router = fit_router(seen, standings.about_queries, count, settings)
        panel = fit_panel(
            seen, router, lambda *_: course.forest, settings.seed, mirrored=course.mirrored
        )
        parts.append((asked, panel.predict(new.answers, new.traits)))
    return joined(parts)


def measure_of(task: Task) -> str:
    """Return the name of the figure by which arms are compared."""
    return "accuracy" if task == "pairs" else "rho"


def _learned(
    seen: CaseTable, new: CaseTable, settings: EvolveConfig
) -> tuple[dict[str, Predictions], int]:
    """What evaluators without and with experts say about new cases, and how many experts."""
    course = prepare(seen, settings)
    one = course.finish(Choice(1, {}, {}))
    choice = course.choose()
    many = one if choice.count == 1 else course.finish(choice)
    said = {WITHOUT: one.predict_table(new), WITH: many.predict_table(new)}
    return said, len(many.experts)


def _arms(
    task: Task,
    outcomes: Mapping[str, Floats],
    said: Mapping[str, Predictions],
    known: CaseTable,
    seed: int,
) -> dict[str, Arm]:
    figures = verdict_figures if task == "pairs" else label_figures
    drawn = {
        name: figures(outcome, known.gold, known.query_ids, seed)
        for name, outcome in outcomes.items()
    }
    return {
        name: Arm(
            name,
            found.intervals(),
            found.less(drawn[WITHOUT], measure_of(task)),
            drawn[WITH].less(found, measure_of(task)),
            outcomes[name],
            said.get(name),
        )
        for name, found in drawn.items()
    }


def _of_other_queries(table: CaseTable, left_out: set[str]) -> NDArray[np.intp]:
    usable = [
        place
        for place, (case, query_id) in enumerate(zip(table.cases, table.query_ids, strict=True))
        if case.gold is not None and query_id not in left_out
    ]
    return np.array(usable, dtype=np.intp)
