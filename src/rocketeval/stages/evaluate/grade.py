"""grade, with an evaluator: the judge answers its perspectives, sheet by sheet."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Any

from rocketeval.budget import Budget
from rocketeval.config import RunConfig
from rocketeval.engines.base import create_engine
from rocketeval.evolve.cases import Case
from rocketeval.grading.schedule import cells
from rocketeval.observing import Observer
from rocketeval.stages.evaluate.cases import Cases
from rocketeval.stages.evaluate.given import ANSWERED, FOLDER, Given, check_judge
from rocketeval.stages.evaluate.judgments import derive_judgments, derived_judge, read_sheets
from rocketeval.stages.evaluate.totals import bill_of, counts_of, usage_of
from rocketeval.stages.evolve.ask import Asker, MakeEngine
from rocketeval.stages.evolve.questions import questions
from rocketeval.store.run import RunStore


async def grade_with_evaluator(
    store: RunStore,
    config: RunConfig,
    given: Given,
    observer: Observer,
    stop: asyncio.Event,
    budget: Budget | None = None,
    *,
    make_engine: MakeEngine = create_engine,
) -> dict[str, Any]:
    """Ask what is not paid for, by an earlier run or an evolution in this one; make its judgments.

    Returns counts and cost as grading does, over all sheets, and those of each sheet.
    """
    cases = Cases.of(store.inputs, given.evaluator)
    asked = cases.asked()
    asker = Asker(
        store,
        config,
        observer,
        stop,
        budget,
        asking=given.evaluator.asking,
        folder=FOLDER,
        also=ANSWERED,
        make_engine=make_engine,
        check_judge=partial(check_judge, given),
    )
    told = (await asker.ask(given.asked, asked)).sheets
    sheets = read_sheets(store, given)
    judge = derived_judge(sheets)
    store.derive_ledger(judge, derive_judgments(store, given, sheets, asked))
    insides = [store.inside(FOLDER, name) for name in told]
    store.save_failures(failure for inside in insides for failure in inside.failures())
    return {
        **counts_of(told.values()),
        "responses_unfinished": _unjudged(store, judge.digest, asked),
        "responses_without_checklist": 0,
        "responses_without_opponent": cases.lonely,
        "usage": usage_of([facts["usage"] for facts in told.values()]),
        "usage_of_ledger": usage_of([facts["usage_of_ledger"] for facts in told.values()]),
        "bill": bill_of(told.values()),
        "evaluator": given.facts(),
        "questions": _count_questions(given, asked, cases.count()),
        "sheets": told,
    }


def _count_questions(given: Given, asked: Sequence[Case], decided: int) -> dict[str, Any]:
    """Return what is asked in all, and for each response or pair that is decided about."""
    whole = questions(given.asked, asked, given.evaluator.asking)
    return {"all": whole, "decided": decided, "per_decision": whole / decided if decided else None}


def _unjudged(store: RunStore, judge: bytes, asked: Sequence[Case]) -> int:
    """Return how many responses were asked about and have no judgment."""
    rows = {(case.query_id, candidate) for case in asked for candidate in case.candidates}
    finished = store.finished()
    return sum(
        cell.key not in finished
        for cell in cells(store.inputs, judge)
        if (cell.query_id, cell.candidate) in rows
    )
