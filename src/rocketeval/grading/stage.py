"""The grade stage: the judge answers every item that is neither in the run nor in the cache.

The judge is identified first, unless the run recorded it and nothing else changed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Protocol

from rocketeval.budget import Budget, PricedBudget
from rocketeval.checklists.rubric import rubric_options
from rocketeval.checks.runner import CheckRunner
from rocketeval.config import RunConfig
from rocketeval.engines.base import (
    Engine,
    confirm_recorded,
    offline_identity,
    status_of,
    take_probe_usage,
)
from rocketeval.errors import EngineError, JudgeChanged
from rocketeval.grading.ask import Method, asks_items_independently
from rocketeval.grading.canaries import (
    FEWEST,
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
    spent_in_all,
    stop_without_judge,
)
from rocketeval.grading.methods import create_method
from rocketeval.grading.schedule import cells
from rocketeval.grading.work import (
    GradingWork,
    open_grading,
)
from rocketeval.hashing import content_hash
from rocketeval.observer import EngineStatus, Observer
from rocketeval.records import GradingTask, JudgeFingerprint, Usage
from rocketeval.store.failures import Repeats, Unchecked
from rocketeval.store.manifest import ContinuityFacts, GradeFacts
from rocketeval.store.run import RunStore
from rocketeval.text import count_of
from rocketeval.workers import unless_stopped

LAST_CHECK = 10
"""A run with this many judgments checks its judge when it is resumed, and at its end."""
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


class GradingRounds(Protocol):
    """Tasks that depend on the judgments so far."""

    @property
    def left(self) -> int:
        """Most judgments that may still be needed."""
        ...

    @property
    def ended(self) -> bool:
        """Whether no more judgments are needed."""
        ...

    def tasks(self, grading: Grading) -> Iterator[GradingTask]:
        """Yield tasks while `grading` is in progress, until others must finish first."""
        ...


class ChosenResponses:
    """The tasks of some responses of a run, by query and candidate; the others are not graded."""

    ended = True

    def __init__(self, work: GradingWork, chosen: Collection[tuple[str, str]]) -> None:
        self._work, self._chosen = work, chosen
        self._keys = {
            cell.key
            for cell in cells(work.inputs, work.digest)
            if cell.key is not None and (cell.query_id, cell.candidate) in chosen
        }
        done = len(self._keys) - self.left
        work.observer.stage_began("grade", len(self._keys), done)

    @property
    def left(self) -> int:
        """Number of chosen judgments that are missing."""
        return len(self._keys - set(self._work.ledger.finished))

    def tasks(self, grading: Grading) -> Iterator[GradingTask]:
        """Yield the unfinished tasks of the chosen responses."""
        return self._work.tasks(but=self._work.wanted.keys() - self._keys)

    def finish(self, facts: GradeFacts) -> GradeFacts:
        """Return the facts without the responses that were not chosen."""
        finished = self._work.ledger.finished
        states = [
            cell.key in finished
            for cell in cells(self._work.inputs, self._work.digest)
            if (cell.query_id, cell.candidate) in self._chosen
        ]
        return replace(
            facts,
            unfinished=self.left,
            responses_unfinished=states.count(False),
            not_needed=len(self._work.unfinished() - self._keys),
        )


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
    make_rounds: Callable[[GradingWork], GradingRounds] | None = None,
) -> GradeFacts:
    """Append the missing judgments to the ledger; return counts and cost of this grading.

    `method` is given if it is not the one in the config. Answers to the same items in the runs
    `also` are reused. If no judgment is missing, the engine is not contacted, unless the config
    does not describe it (`own_engine`). `contacted` means that the judge was already contacted,
    and the budget has reserved that cost. `make_rounds` chooses the tasks; without it, all are
    graded.
    """
    method = method or create_method(config)
    observer.watched(partial(_first_contact, engine, config))
    remembered = None if own_engine else remembered_judge(store, config, method)
    judge = remembered
    if judge is None:
        found = fingerprint(await unless_stopped(engine.identify(), stop), method)
        judge = store.known_judge(found, config.cache)
    with open_grading(store, config, method, judge, observer, also=also) as work:
        suspects = _unchecked(work, config, method, engine)
        rounds = make_rounds(work) if make_rounds else None
        left = work.left if rounds is None else rounds.left
        asking = bool(left) or _is_due(work, suspects)
        if asking and remembered is not None:
            asking = await _is_there(work, method, engine, stop, needed=bool(left))
        probes = take_probe_usage(engine)
        learning = _limit(budget, engine, config, method, contacted, probes) if asking else None
        limit = await unless_stopped(learning, stop) if learning else None
        earlier = store.manifest().stages.grade.continuity
        resume_watch(engine, earlier)
        grading = Grading(probes=probes or Usage())
        canaries = None
        work.spent = lambda: (grading.spent, spent_in_all(grading, canaries) - grading.spent)
        if asking and suspects is not None:
            canaries = _canaries(work, config, method, engine, judge, limit, suspects)
            await unless_stopped(_check_first(work, canaries, method, judge), stop)
            if make_rounds and canaries.facts.set_aside:
                rounds = make_rounds(work)
        started = time.monotonic()
        checks = CheckRunner(rubric_options(config).checks)
        try:
            await _without_drift(
                grading,
                work,
                canaries,
                rounds,
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
        except JudgeChanged:
            raise  # Its answers may be those of another judge.
        except EngineError:
            work.keep_failures([*grading.failures, *grading.cut_off])
            raise
        finally:
            checks.close()
            if suspects is not None:
                suspects.close()
        seconds = time.monotonic() - started
        work.keep_failures([*grading.failures, *grading.cut_off])
        failed = {each.key for each in grading.failures}
        confirm_recorded(engine, everything=work.unfinished() <= failed)
        if not grading.stopped:
            stop_without_judge(grading, len(work.ledger.finished))
    observer.spent(spent_in_all(grading, canaries))
    facts = work.facts(
        judged=grading.judged,
        failed=len(grading.failures),
        seconds=seconds,
    )
    unchecked = len(suspects) if suspects is not None and _is_due(work, suspects) else 0
    status = status_of(engine)
    rejected = [each for each in grading.failures if each.rejected]
    return replace(
        facts,
        retries=dict(status.retry_reasons) or None,
        asked_as=None if own_engine else judge_request(config, method),
        continuity=_continuity(engine, canaries, earlier, unchecked),
        rejected=len(rejected),
        rejected_named=tuple(
            f"{each.candidate} on {each.query_id}: {each.reason}" for each in rejected[:MOST_NAMED]
        ),
    )


def _unchecked(
    work: GradingWork, config: RunConfig, method: Method, engine: Engine
) -> Unchecked | None:
    """Return the judgments that no check followed; None if items cannot be asked again singly."""
    if not (config.judge.canaries and can_repeat(engine) and asks_items_independently(method)):
        return None
    return Unchecked(work.ledger.folder, work.ledger.finished)


def _is_due(work: GradingWork, suspects: Unchecked | None) -> bool:
    """Return whether the last check of the run was left out."""
    return bool(suspects) and len(work.ledger.finished) >= LAST_CHECK


async def _is_there(
    work: GradingWork, method: Method, engine: Engine, stop: asyncio.Event, *, needed: bool
) -> bool:
    """Identify the judge again; return whether it is reachable. EngineError if it is `needed`."""
    try:
        identity = await unless_stopped(engine.identify(), stop)
    except EngineError:
        if needed:
            raise
        # Only the last check is missing: it stays due.
        return False
    work.store.check_judge(fingerprint(identity, method))
    return True


def _canaries(
    work: GradingWork,
    config: RunConfig,
    method: Method,
    engine: Engine,
    judge: JudgeFingerprint,
    limit: GradingBudget | None,
    suspects: Unchecked,
) -> Canaries:
    """Return the canaries of a grading: some judgments that a passed check followed."""
    step, noise = noise_of(judge)
    ask = method.asking(engine) if limit is None else limit.within(method.asking(engine))
    repeats = Repeats(work.ledger.folder)
    canaries = Canaries(
        ask, engine, config.judge.canaries, step, noise, suspects=suspects, repeats=repeats
    )
    trusted = work.ledger.finished - set(suspects.keys)
    known = repeats.p_yes
    canaries.keep(finished_canaries(work.store, method.prompt, judge.digest, trusted, known))
    return canaries


async def _check_first(
    work: GradingWork, canaries: Canaries, method: Method, judge: JudgeFingerprint
) -> None:
    """Check the judge before new tasks, and judgments whose check an earlier command left out."""
    if len(work.ledger.finished) < LAST_CHECK:
        return
    if not canaries.suspects:
        await canaries.check(ON_RESUME)
        return
    keys = list(canaries.suspects.keys)
    unchecked = finished_canaries(work.store, method.prompt, judge.digest, set(keys))
    if not await canaries.check_earlier(unchecked):
        canaries.repeats.drop(keys)
        work.set_aside(keys)
        canaries.suspects.drop(len(keys))
        canaries.facts = replace(canaries.facts, set_aside=len(keys))


async def _without_drift(
    grading: Grading,
    work: GradingWork,
    canaries: Canaries | None,
    rounds: GradingRounds | None,
    *args: Any,
    **settings: Any,
) -> None:
    """Grade; if the judge changed, set aside what it judged since the last passed check."""
    done = -1
    try:
        # With rounds, a loop ends if the next tasks depend on those in flight.
        while done < (done := grading.judged + len(grading.failures)) and not grading.stopped:
            tasks = work.tasks() if rounds is None else rounds.tasks(grading)
            await grade(tasks, *args, **settings, canaries=canaries, into=grading)
            if rounds is None or rounds.ended or grading.unreachable or grading.useless:
                break
        if canaries is not None and _is_due(work, canaries.suspects) and not grading.stopped:
            await canaries.check(FEWEST)
    except JudgeChanged as error:
        if canaries is None or not canaries.suspects:
            raise
        count = len(canaries.suspects)
        canaries.repeats.drop(canaries.suspects.keys)
        work.ledger.set_aside(canaries.suspects.keys)
        canaries.suspects.drop(count)
        aside = (
            f"Set aside: {count_of(count, 'judgment', 'judgments')} since the last passed check."
        )
        raise JudgeChanged(error.message, hint=f"{aside} {error.hint}") from error


def _continuity(
    engine: Engine,
    canaries: Canaries | None,
    earlier: ContinuityFacts | None,
    unchecked: int,
) -> ContinuityFacts | None:
    """Return what is known of the judge's continuity in this run; None if nothing is."""
    facts = ContinuityFacts() if canaries is None else canaries.facts
    seen = replace(facts, model=model_of(engine), fingerprints=fingerprints_of(engine))
    now = replace(seen, unchecked=unchecked)
    found = now.after(earlier or ContinuityFacts())
    return None if found == ContinuityFacts() else found


def _first_contact(engine: Engine, config: RunConfig) -> EngineStatus:
    """Return the status before the first task: waiting for the judge."""
    at = f" at {config.judge.base_url}" if config.judge.base_url else ""
    return replace(status_of(engine), waiting=f"waiting for the judge {config.judge.model}{at}")


async def _limit(
    budget: Budget | None,
    engine: Engine,
    config: RunConfig,
    method: Method,
    contacted: bool,
    probes: Usage | None,
) -> GradingBudget | None:
    """Return the budget of this grading; None if there is no limit."""
    if budget is None or config.judge.price is None:
        return None
    priced = PricedBudget(budget, config.judge.price)
    limit = GradingBudget(
        priced, engine, config.judge.extra_body, method.most_written, alone=method.alone
    )
    await limit.learn(contacted=contacted, probes=probes)
    return limit
