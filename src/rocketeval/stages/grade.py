"""grade: the judge answers every item that no earlier run has paid for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from rocketeval.budget import Budget, Purse
from rocketeval.config import RunConfig
from rocketeval.cost import usage_facts
from rocketeval.engines.base import Engine, pulse_of
from rocketeval.errors import EngineRefused, EngineUnavailable
from rocketeval.grading.budget import GradingBudget
from rocketeval.grading.grade import Grading, grade
from rocketeval.grading.judge import fingerprint
from rocketeval.grading.methods.base import Method
from rocketeval.grading.methods.table import create_method
from rocketeval.grading.reuse import known_answers
from rocketeval.grading.schedule import cells, unfinished_tasks
from rocketeval.observing import Observer, Pulse
from rocketeval.stages.bill import expected_use, make_bill
from rocketeval.store.ledger import Ledger, adopt_from_cache
from rocketeval.store.run import RunStore


async def grade_responses(
    store: RunStore,
    config: RunConfig,
    engine: Engine,
    observer: Observer,
    stop: asyncio.Event,
    budget: Budget | None = None,
) -> dict[str, Any]:
    """Append the missing judgments to the ledger; return counts and cost of this grading."""
    price = config.judge.price
    method = create_method(config)
    observer.watched(partial(_first_contact, engine, config))
    judge = fingerprint(await engine.identify(), method)
    store.claim(judge)
    wanted, without_checklist = _wanted(store, judge.digest)
    cache = store.shared_ledger(judge.digest, config.cache)
    with store.ledger(judge.digest, cache) as ledger:
        earlier = sum(key in ledger.finished for key in wanted)
        adopted = adopt_from_cache(ledger, cache, wanted) if cache else 0
        observer.stage_began("grade", len(wanted), earlier + adopted)
        observer.reused(earlier, adopted)
        expected = expected_use(store.plan(), wanted, len(wanted) - earlier - adopted, price)
        if expected is not None:
            observer.expected(expected)
        limit = (
            await _limit(budget, engine, config, method)
            if earlier + adopted < len(wanted)
            else None
        )
        started = time.monotonic()
        grading = await grade(
            unfinished_tasks(
                store.inputs, method.prompt, judge.digest, ledger.finished.__contains__
            ),
            engine,
            ledger.append,
            ask=method.asking(engine),
            concurrency=config.judge.concurrency or engine.in_flight,
            known=known_answers(
                store, method, judge.digest, store.inputs.checklists(), ledger.finished
            ),
            observer=observer,
            stop=stop,
            proven=bool(ledger.finished),
            budget=limit,
        )
        seconds = time.monotonic() - started
        _keep_failures(store, ledger, grading, wanted)
    _stop_without_judge(grading, len(ledger.finished))
    unfinished = {key for key in wanted if key not in ledger.finished}
    return {
        "tasks": len(wanted),
        "finished_earlier": earlier,
        "from_cache": adopted,
        "judged": grading.judged,
        "failed": len(grading.failures),
        "unfinished": len(unfinished),
        "responses_unfinished": _responses(store, judge.digest, unfinished),
        "responses_without_checklist": without_checklist,
        "usage": usage_facts(grading.spent, price),
        "usage_of_ledger": usage_facts(store.ledger_usage(), price),
        "bill": make_bill(
            store.plan(), wanted, len(wanted) - earlier - adopted, grading.spent, seconds, price
        ),
    }


def _first_contact(engine: Engine, config: RunConfig) -> Pulse:
    """Return whom everything waits for before the first task."""
    at = f" at {config.judge.base_url}" if config.judge.base_url else ""
    return replace(pulse_of(engine), waiting=f"waiting for the judge {config.judge.model}{at}")


async def _limit(
    budget: Budget | None, engine: Engine, config: RunConfig, method: Method
) -> GradingBudget | None:
    """Return what keeps grading within the money; None when there is no limit."""
    if budget is None or config.judge.price is None:
        return None
    purse = Purse(budget, config.judge.price)
    limit = GradingBudget(
        purse, engine, config.judge.extra_body, method.most_written, alone=method.alone
    )
    await limit.learn()
    return limit


def _stop_without_judge(grading: Grading, safe: int) -> None:
    """Raise if grading gave up on the judge."""
    if grading.gone:
        raise EngineUnavailable(
            f"The judge is gone; the last task: {grading.failures[-1].reason}",
            hint=f"{safe} judgments are safe: run the same command again to go on.",
        )
    if grading.useless:
        raise EngineRefused(
            f"Not one of the first {len(grading.failures)} tasks could be judged; the last: "
            f"{grading.failures[-1].reason}",
            hint="Check the judge's settings: some servers allow fewer `top_logprobs` or none, "
            "or too short a context.",
        )


def _wanted(store: RunStore, judge: bytes) -> tuple[dict[bytes, tuple[str, str]], int]:
    """Return every judgment the run needs, and how many responses cannot have one."""
    wanted: dict[bytes, tuple[str, str]] = {}
    without_checklist = 0
    for cell in cells(store.inputs, judge):
        if cell.key is None:
            without_checklist += 1
        else:
            wanted.setdefault(cell.key, (cell.query_id, cell.candidate))
    return wanted, without_checklist


def _responses(store: RunStore, judge: bytes, keys: Collection[bytes]) -> int:
    """Return how many responses these judgments are about: equal responses share one."""
    return sum(cell.key in keys for cell in cells(store.inputs, judge)) if keys else 0


def _keep_failures(
    store: RunStore, ledger: Ledger, grading: Grading, wanted: Mapping[bytes, object]
) -> None:
    """Remember what failed now, and what failed before and was not tried again."""
    latest = {failure.key: failure for failure in (*store.failures(), *grading.failures)}
    store.save_failures(
        failure for key, failure in latest.items() if key in wanted and key not in ledger.finished
    )
