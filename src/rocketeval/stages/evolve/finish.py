"""The end of an evolution: figures on held-out cases, and an evaluator that learned from all."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from rocketeval.config import EvolveConfig
from rocketeval.evolve.cases import CaseTable
from rocketeval.evolve.columns import stacked
from rocketeval.evolve.confidence import THRESHOLDS, confidence_table, threshold_for
from rocketeval.evolve.evaluator import Evaluator, fit_evaluator
from rocketeval.evolve.perspective import Kind, Origin, Perspective, Pool
from rocketeval.evolve.select import weigh_perspectives
from rocketeval.evolve.validate import WITH, Validation, cross_validate
from rocketeval.stages.evolve.ask import Asked
from rocketeval.stages.evolve.cost import Cost, count_cost, measured_use
from rocketeval.stages.evolve.evolution import Confidence, Figures, Worth, as_json, figures_of
from rocketeval.stages.evolve.history import Round, best_round
from rocketeval.stages.evolve.rounds import Evolved
from rocketeval.stages.evolve.split import Split, learned_from
from rocketeval.stages.evolve.workshop import Workshop
from rocketeval.stages.evolve.worth import worth_of

HELD_OUT = "evolve/held_out"
"""Folder of the sheets on the cases that are held out."""
OVERALL = "Is the response a good answer to the query as a whole?"
"""The seed that asks for the whole judgment."""
TARGETS = (0.9, 0.8)
"""Shares of right verdicts that a threshold is looked for, the first that can be reached."""


@dataclass(frozen=True, eq=False)
class Chosen:
    """What the seen cases decided."""

    best_round: int
    kept: tuple[Perspective, ...]
    overall: Perspective
    """The single prompt that the evaluator is held against."""

    @property
    def asked(self) -> tuple[Perspective, ...]:
        """What the judge is asked about held-out cases."""
        known = {each.id for each in self.kept}
        return self.kept if self.overall.id in known else (*self.kept, self.overall)


@dataclass(frozen=True, eq=False)
class Finished:
    """An evaluator and how good it is."""

    chosen: Chosen
    evaluator: Evaluator
    figures: Figures
    worth: Worth
    confidence: Confidence | None
    cost: Cost
    failed: int
    missing: int


async def finish(workshop: Workshop, split: Split, evolved: Evolved) -> Finished:
    """Return the evaluator of the best round's pool, measured on what nobody looked at."""
    settings = workshop.settings
    view = evolved.view
    chosen = await asyncio.to_thread(
        choose, view.pool, view.table, view.kept, evolved.rounds, settings
    )
    asked = await workshop.ask(chosen.asked, split.held_out, HELD_OUT, "held out")
    workshop.observer.part_began("held out", 1, 1)
    workshop.observer.stage_entered("fit")
    return await asyncio.to_thread(_measure, workshop, split, evolved, chosen, asked)


def choose(
    pool: Pool,
    table: CaseTable,
    kept: tuple[str, ...],
    rounds: tuple[Round, ...],
    settings: EvolveConfig,
) -> Chosen:
    """Return what is kept of the best round's pool, and of what people added.

    Questions about queries stay, as many as may be: one costs a question a query, and the queries
    that are seen are too few to say that it will never help.
    """
    best = best_round(rounds)
    there = Pool(each for each in pool if each.round <= best or each.origin is Origin.PERSON)
    if len(there) < len(pool):
        standings = weigh_perspectives(table.narrow(each.id for each in there), settings)
        there = there.weigh(standings.by_id())
        kept = standings.keep(settings.most_about_responses, settings.most_about_queries)
    chosen = tuple(there[name] for name in kept)
    routing = [each for each in chosen if each.kind is Kind.QUERY]
    others = [each for each in there.of(Kind.QUERY) if each not in routing]
    chosen += tuple(others[: settings.most_about_queries - len(routing)])
    return Chosen(best, chosen, _overall(there, chosen))


def _overall(pool: Pool, kept: tuple[Perspective, ...]) -> Perspective:
    """Return the perspective that asks for the whole; the most important one if there is none."""
    for each in pool.of(Kind.RESPONSE):
        if each.text == OVERALL:
            return each
    about_responses = [each for each in kept if each.kind is Kind.RESPONSE]
    return max(about_responses, key=lambda each: each.importance or 0.0)


def _measure(
    workshop: Workshop, split: Split, evolved: Evolved, chosen: Chosen, asked: Asked
) -> Finished:
    settings, config = workshop.settings, workshop.config
    seen, held_out = evolved.view.asked, asked
    kept = [each.id for each in chosen.kept]
    validation = cross_validate(
        held_out.table,
        settings,
        learn_also=seen.table.narrow(each.id for each in chosen.asked),
        overall=chosen.overall.id,
        kept=kept,
    )
    whole = stacked(held_out.table.narrow(kept), seen.table.narrow(kept))
    evaluator = fit_evaluator(whole, settings)
    figures = figures_of(validation, chosen.overall.text)
    worth = worth_of(figures)
    confidence = _confidence(validation, held_out.table)
    used = measured_use(workshop.store, HELD_OUT, held_out.sheets)
    cost = count_cost(
        evaluator.asked, chosen.overall, split.cases, settings.asking, used, config.judge.price
    )
    notes = {
        **_notes(workshop, split, evolved, evaluator, whole),
        "figures": {**as_json(figures), "worth": worth.words},
        "confidence": as_json(confidence.rows) if confidence else [],
        "threshold": confidence.threshold if confidence else None,
        "cost": as_json(cost),
    }
    judges = {**seen.judges, **held_out.judges}
    counts = evaluator.provenance["counts"]
    return Finished(
        chosen,
        evaluator.documented(judges, notes),
        figures,
        worth,
        confidence,
        cost,
        sum(facts["failed"] for one in (seen, held_out) for facts in one.sheets.values()),
        counts["missing answers"] + counts["missing traits"],
    )


def _confidence(validation: Validation, table: CaseTable) -> Confidence | None:
    said = validation.arms[WITH].predictions
    if said is None or said.probabilities is None:
        return None
    gold, query_ids = validation.gold, validation.query_ids
    for target in TARGETS:
        threshold = threshold_for(target, said, gold, query_ids)
        if threshold is not None:
            rows = confidence_table(said, gold, query_ids, sorted({*THRESHOLDS, threshold}))
            unsure = np.argsort(said.confidence, kind="stable").tolist()
            names = tuple(
                table.cases[validation.rows[place]].name
                for place in unsure
                if said.confidence[place] < threshold
            )
            return Confidence(rows, target, threshold, names)
    return Confidence(confidence_table(said, gold, query_ids), None, None, ())


def _notes(
    workshop: Workshop, split: Split, evolved: Evolved, evaluator: Evaluator, whole: CaseTable
) -> dict[str, Any]:
    """What the evaluator was made from, beside what it notes itself."""
    expert = evaluator.predict_table(whole).expert
    used = {each.id for each in (*evaluator.about_responses, *evaluator.about_queries)}
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "benchmark": str(workshop.config.benchmark.path.name),
        "cases": len(whole),
        "learned_from": learned_from(workshop.store.inputs.queries, split.cases),
        "rounds": [as_json(_brief(done)) for done in evolved.rounds],
        "cases by expert": np.bincount(expert, minlength=len(evaluator.experts)).tolist(),
        "ancestors": [_named(each) for each in _ancestors(evolved.view.pool, used)],
    }


def _brief(done: Round) -> Mapping[str, Any]:
    """A round without what only its own record needs."""
    names = ("round", "pool", "mistakes", "proposed", "dropped", "before", "after")
    return {name: getattr(done, name) for name in names}


def _ancestors(pool: Pool, used: set[str]) -> list[Perspective]:
    """Those that perspectives in use were made from, and those that they were made from."""
    by_id = {each.id: each for each in pool}
    found: dict[str, Perspective] = {}
    left = [parent for name in used if name in by_id for parent in by_id[name].parents]
    while left:
        name = left.pop()
        if name in by_id and name not in used and name not in found:
            found[name] = by_id[name]
            left += by_id[name].parents
    return [each for each in pool if each.id in found]


def _named(each: Perspective) -> dict[str, Any]:
    return {
        "id": each.id,
        "text": each.text,
        "kind": each.kind.value,
        "origin": each.origin.value,
        "form": each.form.value,
        "parents": list(each.parents),
        "round": each.round,
        "types": list(each.types),
    }
