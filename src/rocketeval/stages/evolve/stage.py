"""evolve: what is judged wrongly brings perspectives, and an evaluator learns to weigh them.

split -> begin -> rounds (ask, predict, propose, ask, select) -> held-out figures -> evaluator
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from rocketeval.budget import Budget
from rocketeval.config import RunConfig
from rocketeval.engines.base import create_engine
from rocketeval.evolve.artifact import save_evaluator
from rocketeval.evolve.cases import Case
from rocketeval.evolve.describe import describe_evaluator
from rocketeval.observing import Observer
from rocketeval.stages.evolve.ask import MakeEngine
from rocketeval.stages.evolve.beginning import Beginning, begin
from rocketeval.stages.evolve.check import evolve_settings
from rocketeval.stages.evolve.evolution import Evolution, Part, PoolFacts, as_json
from rocketeval.stages.evolve.finish import Finished, finish
from rocketeval.stages.evolve.history import History
from rocketeval.stages.evolve.limit import CallLimit
from rocketeval.stages.evolve.rounds import Evolved, Rounds, people_in
from rocketeval.stages.evolve.shared_pool import SharedPool
from rocketeval.stages.evolve.spending import Spending
from rocketeval.stages.evolve.split import Split, split_cases
from rocketeval.stages.evolve.workshop import GoOn, Workshop
from rocketeval.store.run import RunStore

RESULT = "evolve/evolution"


async def evolve_run(
    store: RunStore,
    config: RunConfig,
    observer: Observer,
    stop: asyncio.Event,
    budget: Budget | None,
    *,
    go_on: GoOn,
    path: Path | None = None,
    make_engine: MakeEngine = create_engine,
) -> Evolution:
    """Go on with the evolution of a loaded run; write its evaluator, and return how good it is.

    `go_on` raises where the command was stopped or its money is spent. What was paid for is kept:
    the next command goes on from there.
    """
    settings = evolve_settings(config)
    split = split_cases(store.inputs, settings)
    history = History(store.evolve_folder / "rounds.jsonl")
    finished_rounds = len(history.read(split.digest))
    spending = Spending(store.evolve_folder / "spent.jsonl")
    shared = SharedPool(store.pool_path, settings.answers, history)
    limit = CallLimit(settings, split, spending)
    workshop = Workshop(
        store, config, settings, observer, stop, budget, go_on, make_engine, spending
    )
    optimizer = workshop.open_optimizer()
    try:
        beginning = await begin(workshop, optimizer, shared, limit, finished_rounds)
        rounds = Rounds(workshop, split, history, shared, limit, optimizer)
        evolved = await rounds.go_on(beginning.pool)
    finally:
        if optimizer is not None:
            await optimizer.aclose()
    finished = await finish(workshop, split, evolved)
    path = path or store.evaluator_path
    save_evaluator(finished.evaluator, path)
    found = _evolution(workshop, split, beginning, evolved, finished, path)
    store.save_json(RESULT, as_json(found))
    return found


def _evolution(
    workshop: Workshop,
    split: Split,
    beginning: Beginning,
    evolved: Evolved,
    finished: Finished,
    path: Path,
) -> Evolution:
    settings, config, pool = workshop.settings, workshop.config, evolved.view.pool
    evaluator = finished.evaluator
    rounds = evolved.rounds
    return Evolution(
        created=evaluator.provenance["created"],
        benchmark=str(config.benchmark.path),
        gold=settings.gold,
        asking=settings.asking,
        judge=config.judge.model,
        optimizer=settings.optimizer.model if settings.optimizer else None,
        seen=_part(split.seen),
        held_out=_part(split.held_out),
        pool=PoolFacts(
            len(pool),
            people_in(pool),
            beginning.new_people + evolved.joined,
            _people_before_figures(workshop.store, people_in(pool)),
            evolved.waiting,
            beginning.elsewhere,
            dict(Counter(each.origin.value for each in pool)),
            len(evaluator.about_responses) + len(evaluator.about_queries),
            beginning.refused,
        ),
        beginning=rounds[0].before if rounds else evolved.view.measured,
        rounds=rounds,
        best_round=finished.chosen.best_round,
        stopped=evolved.stopped,
        figures=finished.figures,
        worth=finished.worth,
        evaluator=describe_evaluator(evaluator),
        confidence=finished.confidence,
        cost=finished.cost,
        spent=workshop.spending.facts(config.judge.price, settings.price),
        failed=finished.failed,
        missing=finished.missing,
        path=path,
        pool_path=workshop.store.pool_path,
    )


def _people_before_figures(store: RunStore, people: int) -> int:
    """Return how many perspectives people had added at the end of the first command."""
    earlier = store.json_if_made(RESULT)
    if earlier is None:
        return people
    pool = earlier["pool"]
    return int(pool.get("people_before_figures", pool["people"]))


def _part(cases: Sequence[Case]) -> Part:
    return Part(len(cases), len({case.query_id for case in cases}))
