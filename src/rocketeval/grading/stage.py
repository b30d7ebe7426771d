"""The grade stage: the judge answers every item that is neither in the run nor in the cache.

The judge is identified first, unless the run recorded it and nothing else changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from rocketeval.budget import Budget, PricedBudget
from rocketeval.checklists.rubric import rubric_options
from rocketeval.checks.runner import CheckRunner
from rocketeval.config import RunConfig
from rocketeval.engines.base import Engine, offline_identity, status_of
from rocketeval.errors import JudgeChanged
from rocketeval.grading.ask import Method
from rocketeval.grading.canaries import (
    ON_RESUME,
    Canaries,
    can_repeat,
    fingerprints_of,
    finished_canaries,
    model_of,
    noise_of,
    resume_watch,
)
from rocketeval.grading.loop import (
    Grading,
    GradingBudget,
    HashedPrompt,
    fingerprint,
    grade,
    most_for_contact,
    stop_without_judge,
)
from rocketeval.grading.methods import create_method
from rocketeval.grading.work import (
    GradingWork,
    asks_items_independently,
    open_grading,
)
from rocketeval.hashing import content_hash
from rocketeval.observer import EngineStatus, Observer
from rocketeval.records import JudgeFingerprint
from rocketeval.store.manifest import ContinuityFacts, GradeFacts
from rocketeval.store.run import RunStore
from rocketeval.workers import unless_stopped

LAST_CHECK = 10
"""A run with this many judgments checks its judge when it is resumed, and a grading that finished
this many at its end."""
MOST_NAMED = 3
"""Number of rejected responses to name; all are counted."""
NOT_ASKED_WITH = {"price", "template", "canaries", "datamarking"}
"""Judge settings that change no answer; the method's hash covers the template."""


def judge_request(config: RunConfig, method: HashedPrompt) -> str:
    """Return a hash of everything the config says about the judge and how it is asked."""
    settings = config.judge.model_dump(mode="json", exclude=NOT_ASKED_WITH)
    return content_hash(settings, method.hash).hex()


def remembered_judge(
    store: RunStore, config: RunConfig, method: HashedPrompt
) -> JudgeFingerprint | None:
    """Return the judge of a run that was graded with exactly these settings; None otherwise.

    The server behind this URL may have changed; identify it again before sending work.
    """
    manifest = store.manifest()
    same = manifest.stages.grade.asked_as == judge_request(config, method)
    return manifest.judge if same else None


async def judge_of(
    store: RunStore, config: RunConfig, method: HashedPrompt, engine: Engine
) -> JudgeFingerprint:
    """Return the run's judge; contact its engine only if the run did not record it."""
    remembered = remembered_judge(store, config, method)
    if remembered is not None:
        return remembered
    return store.known_judge(fingerprint(await engine.identify(), method), config.cache)


async def contact_judge(
    store: RunStore,
    config: RunConfig,
    engine: Engine,
    observer: Observer,
    budget: Budget | None = None,
) -> bool:
    """Check that the judge can be used for this run, before any money is spent.

    Return whether it was contacted: if a first contact does not fit into the `budget`, judging
    does not fit either. Raises EngineError if the judge is unreachable, serves another model or
    returns no log-probabilities, and RunMismatch if the run was started with another judge.
    """
    if budget is not None and config.judge.price is not None:
        priced = PricedBudget(budget, config.judge.price)
        if not priced.has_room(most_for_contact()):
            return False
        priced.keep_back(most_for_contact())
    observer.watched(partial(_first_contact, engine, config))
    store.check_judge(fingerprint(await offline_identity(engine), create_method(config)))
    return True


async def grade_responses(
    store: RunStore,
    config: RunConfig,
    engine: Engine,
    observer: Observer,
    stop: asyncio.Event,
    budget: Budget | None = None,
    *,
    method: Method | None = None,
    also: Sequence[RunStore] = (),
    own_engine: bool = False,
    contacted: bool = False,
) -> GradeFacts:
    """Append the missing judgments to the ledger; return counts and cost of this grading.

    `method` is given if it is not the one in the config. Answers to the same items in the runs
    `also` are reused. If no judgment is missing, the engine is not contacted, unless the config
    does not describe it (`own_engine`). `contacted` means that the judge was already contacted,
    and the budget has reserved that cost.
    """
    method = method or create_method(config)
    observer.watched(partial(_first_contact, engine, config))
    remembered = None if own_engine else remembered_judge(store, config, method)
    judge = remembered
    if judge is None:
        found = fingerprint(await unless_stopped(engine.identify(), stop), method)
        judge = store.known_judge(found, config.cache)
    with open_grading(store, config, method, judge, observer, also=also) as work:
        if remembered is not None and work.left:
            identity = await unless_stopped(engine.identify(), stop)
            store.check_judge(fingerprint(identity, method))
        learning = _limit(budget, engine, config, method, contacted) if work.left else None
        limit = await unless_stopped(learning, stop) if learning else None
        earlier = store.manifest().stages.grade.continuity
        resume_watch(engine, earlier)
        canaries = _canaries(work, config, method, engine, judge, limit) if work.left else None
        if canaries is not None and len(work.ledger.finished) >= LAST_CHECK:
            await unless_stopped(canaries.check(ON_RESUME), stop)
        started = time.monotonic()
        checks = CheckRunner(rubric_options(config).checks)
        try:
            grading = await _without_drift(
                work,
                canaries,
                work.tasks(),
                engine,
                work.ledger.append,
                ask=method.asking(engine),
                concurrency=config.judge.concurrency or engine.in_flight,
                known=work.known(),
                observer=observer,
                stop=stop,
                proven=bool(work.ledger.finished),
                budget=limit,
                checks=checks,
            )
        finally:
            checks.close()
        seconds = time.monotonic() - started
        work.keep_failures([*grading.failures, *grading.cut_off])
    if not grading.stopped:
        stop_without_judge(grading, len(work.ledger.finished))
    facts = work.facts(
        judged=grading.judged,
        failed=len(grading.failures),
        spent=grading.spent,
        seconds=seconds,
    )
    status = status_of(engine)
    rejected = [each for each in grading.failures if each.rejected]
    return replace(
        facts,
        retries=dict(status.retry_reasons) or None,
        asked_as=None if own_engine else judge_request(config, method),
        continuity=_continuity(engine, canaries, earlier),
        rejected=len(rejected),
        rejected_named=tuple(
            f"{each.candidate} on {each.query_id}: {each.reason}" for each in rejected[:MOST_NAMED]
        ),
    )


def _canaries(
    work: GradingWork,
    config: RunConfig,
    method: Method,
    engine: Engine,
    judge: JudgeFingerprint,
    limit: GradingBudget | None,
) -> Canaries | None:
    """Return the canaries of a grading; None if its items cannot be asked again one at a time."""
    if not (config.judge.canaries and can_repeat(engine) and asks_items_independently(method)):
        return None
    step, noise = noise_of(judge)
    ask = method.asking(engine) if limit is None else limit.within(method.asking(engine))
    canaries = Canaries(ask, engine, config.judge.canaries, step, noise)
    prompt, finished = method.prompt, work.ledger.finished
    canaries.keep(finished_canaries(work.store, prompt, judge.digest, finished))
    return canaries


async def _without_drift(
    work: GradingWork, canaries: Canaries | None, *args: Any, **settings: Any
) -> Grading:
    """Grade; if the judge changed, set aside what it judged since the last passed check."""
    try:
        grading = await grade(*args, **settings, canaries=canaries)
        if canaries is not None and grading.judged >= LAST_CHECK and not grading.stopped:
            await canaries.check(1)
    except JudgeChanged:
        if canaries is not None:
            work.ledger.set_aside(canaries.suspects)
        raise
    return grading


def _continuity(
    engine: Engine, canaries: Canaries | None, earlier: ContinuityFacts | None
) -> ContinuityFacts | None:
    """Return what is known of the judge's continuity in this run; None if nothing is."""
    facts = ContinuityFacts() if canaries is None else canaries.facts
    now = replace(facts, model=model_of(engine), fingerprints=fingerprints_of(engine))
    found = now.after(earlier or ContinuityFacts())
    return None if found == ContinuityFacts() else found


def _first_contact(engine: Engine, config: RunConfig) -> EngineStatus:
    """Return the status before the first task: waiting for the judge."""
    at = f" at {config.judge.base_url}" if config.judge.base_url else ""
    return replace(status_of(engine), waiting=f"waiting for the judge {config.judge.model}{at}")


async def _limit(
    budget: Budget | None, engine: Engine, config: RunConfig, method: Method, contacted: bool
) -> GradingBudget | None:
    """Return the budget of this grading; None if there is no limit."""
    if budget is None or config.judge.price is None:
        return None
    priced = PricedBudget(budget, config.judge.price)
    limit = GradingBudget(
        priced, engine, config.judge.extra_body, method.most_written, alone=method.alone
    )
    await limit.learn(contacted=contacted)
    return limit
