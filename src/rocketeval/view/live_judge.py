"""The judge of a run, asked again from its page: `rocketeval view --ask-judge`.

The answers stay in the memory of this process. They are no judgments, so they never reach the
ledger or the shared cache.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from rocketeval.budget import Budget, PricedBudget
from rocketeval.config import RunConfig, load_config
from rocketeval.engines.base import Engine, create_engine
from rocketeval.errors import ConfigError, RocketEvalError, RunMismatch, StageMissing, StoreError
from rocketeval.evolve.apply_setup import as_graded
from rocketeval.explain.influence import (
    AnswerInfluence,
    InfluenceCost,
    InfluencePlan,
    JudgedItem,
    estimate_cost,
    measure_influence,
    plan_influence,
)
from rocketeval.grading.ask import Ask, Method
from rocketeval.grading.canaries import resume_watch
from rocketeval.grading.loop import GradingBudget, fingerprint
from rocketeval.grading.methods import create_method
from rocketeval.prices import with_prices
from rocketeval.records import Judgment
from rocketeval.scoring.read_answers import read_judgment
from rocketeval.settings import LOADED_HERE
from rocketeval.store.run import DERIVED, RunStore
from rocketeval.store.watch import READ_ERRORS
from rocketeval.strategy import effective_config
from rocketeval.view.run_list import is_finished, unreadable

MOST_KEPT = 256
"""Results that stay in memory."""
BEAT_SECONDS = 0.5
"""Time between two reports of progress; a closed page is noticed at the next one."""
PATIENCE = 10.0
"""Seconds to retry an unreachable judge: a person is waiting."""


class MistakenQuestion(RocketEvalError):
    """A question about an answer that the run does not have."""


@dataclass(frozen=True, slots=True)
class ItemQuestion:
    """Which answer to explain."""

    query: str
    candidate: str
    item: int
    """Number in the checklist, from 1."""

    @classmethod
    def of(cls, given: Mapping[str, object]) -> ItemQuestion:
        """Return the question in a request; MistakenQuestion if it is none."""
        query, candidate, item = (given.get(name) for name in ("query", "candidate", "item"))
        try:
            number = int(item) if isinstance(item, int | str) else 0
        except ValueError:
            number = 0
        if not isinstance(query, str) or not isinstance(candidate, str) or number < 1:
            raise MistakenQuestion("The question must have a query, a candidate and an item.")
        return cls(query, candidate, number)


@dataclass(frozen=True, slots=True)
class InfluenceOffer:
    """What the page says before anything is asked."""

    judge: str = ""
    cost: InfluenceCost | None = None
    refused: str = ""
    """Why the judge cannot be asked; empty if it can."""
    known: AnswerInfluence | None = None
    """The result, if it was measured before."""


@dataclass(frozen=True, slots=True)
class InfluenceStep:
    """Progress of the asking; the last step has a result or a problem."""

    done: int = 0
    of: int = 0
    """Number of questions; 0 until the judge is identified."""
    result: AnswerInfluence | None = None
    problem: str = ""


@dataclass
class _Meter:
    done: int = 0
    of: int = 0

    def advance(self) -> None:
        self.done += 1


@dataclass(frozen=True)
class _OpenItem:
    """An item of a run, ready to be asked."""

    store: RunStore
    config: RunConfig
    method: Method
    judged: JudgedItem
    plan: InfluencePlan
    key: tuple[bytes, int]
    """Identity of the answer."""


@dataclass
class LiveJudges:
    """Asks the judges of runs on demand, one question at a time."""

    _results: OrderedDict[tuple[bytes, int], AnswerInfluence] = field(default_factory=OrderedDict)
    _budgets: dict[Path, Budget] = field(default_factory=dict)
    _loaded: tuple[Path, Engine] | None = None
    _turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    _jobs: set[asyncio.Task[AnswerInfluence]] = field(default_factory=set)

    async def offer(self, path: Path, question: ItemQuestion) -> InfluenceOffer:
        """Return the cost of an explanation, or the explanation if it is known; ask nothing."""
        try:
            opened = await _opened(path, question)
            judge = opened.store.judge().name
            known = self._results.get(opened.key)
            if known is not None:
                self._results.move_to_end(opened.key)
                return InfluenceOffer(judge, known=known)
            engine = _create(opened.config)
            try:
                price = opened.config.judge.price
                cost = estimate_cost(opened.plan, opened.judged, opened.method, engine, price)
            finally:
                await engine.aclose()
            return InfluenceOffer(judge, cost)
        except MistakenQuestion:
            raise
        except RocketEvalError as error:
            return InfluenceOffer(refused=_sentence(error))

    async def steps(self, path: Path, question: ItemQuestion) -> AsyncGenerator[InfluenceStep]:
        """Ask, and yield the progress; closing the iterator cancels what is in flight."""
        meter = _Meter()
        job = asyncio.create_task(self._explain(path, question, meter))
        self._jobs.add(job)
        try:
            while not job.done():
                await asyncio.wait({job}, timeout=BEAT_SECONDS)
                if not job.done():
                    yield InfluenceStep(meter.done, meter.of)
            yield _last_step(job, meter)
        finally:
            self._jobs.discard(job)
            job.cancel()
            with suppress(asyncio.CancelledError):
                await asyncio.wait({job})

    async def aclose(self) -> None:
        """Cancel all questions, and unload a judge."""
        jobs = list(self._jobs)
        for job in jobs:
            job.cancel()
        await asyncio.gather(*jobs, return_exceptions=True)
        await self._unload()

    async def _explain(self, path: Path, question: ItemQuestion, meter: _Meter) -> AnswerInfluence:
        opened = await _opened(path, question)
        async with self._turn:
            if opened.key not in self._results:
                async with self._engine(path, opened.config) as engine:
                    self._results[opened.key] = await self._measure(opened, engine, meter)
            while len(self._results) > MOST_KEPT:
                self._results.popitem(last=False)
            return self._results[opened.key]

    async def _measure(self, opened: _OpenItem, engine: Engine, meter: _Meter) -> AnswerInfluence:
        store, config, plan = opened.store, opened.config, opened.plan
        await _check_judge(store, opened.method, engine)
        ask = await self._within_budget(store.path, config, engine, opened.method.asking(engine))
        meter.of = len(plan.tasks)
        return await measure_influence(
            plan,
            opened.judged.answer,
            store.judge(),
            ask,
            concurrency=config.judge.concurrency or engine.in_flight,
            advanced=meter.advance,
        )

    async def _within_budget(self, path: Path, config: RunConfig, engine: Engine, ask: Ask) -> Ask:
        """Return `ask` within the config's `max_cost`, which holds for all questions together."""
        price = config.judge.price
        if config.max_cost is None or price is None:
            return ask
        budget = self._budgets.setdefault(path, Budget(config.max_cost, price.currency))
        limit = GradingBudget(PricedBudget(budget, price), engine, config.judge.extra_body)
        await limit.learn()
        return limit.within(ask)

    @asynccontextmanager
    async def _engine(self, path: Path, config: RunConfig) -> AsyncIterator[Engine]:
        """Yield the run's engine: a new one for each question, unless it has loaded the judge.

        A server may have changed since the last question, and an engine identifies it only once.
        """
        if config.judge.engine not in LOADED_HERE:
            engine = _create(config)
            try:
                yield engine
            finally:
                await engine.aclose()
            return
        if self._loaded is None or self._loaded[0] != path:
            await self._unload()
            self._loaded = path, _create(config)
        yield self._loaded[1]

    async def _unload(self) -> None:
        loaded, self._loaded = self._loaded, None
        if loaded is not None:
            await loaded[1].aclose()


def _last_step(job: asyncio.Task[AnswerInfluence], meter: _Meter) -> InfluenceStep:
    try:
        return InfluenceStep(meter.done, meter.of, job.result())
    except RocketEvalError as error:
        return InfluenceStep(meter.done, meter.of, problem=_sentence(error))
    except asyncio.CancelledError:
        return InfluenceStep(meter.done, meter.of, problem="The server is stopping.")


def _sentence(error: RocketEvalError) -> str:
    return f"{error.message} {error.hint}".strip()


def _create(config: RunConfig) -> Engine:
    """Return the run's engine; it is not contacted."""
    patience = min(config.judge.patience, PATIENCE)
    engine = create_engine(config.judge.model_copy(update={"patience": patience}))
    if engine.durable:
        raise ConfigError(
            f"The engine {config.judge.engine!r} answers in batches, within hours, not at once."
        )
    return engine


async def _check_judge(store: RunStore, method: Method, engine: Engine) -> None:
    """Raise RunMismatch or JudgeChanged if another judge answers than the run's."""
    try:
        store.check_judge(fingerprint(await engine.identify(), method))
    except RunMismatch as error:
        raise RunMismatch(
            error.message, hint="Nothing was asked. Serve the run's judge again, then ask."
        ) from None
    resume_watch(engine, store.manifest().stages.grade.continuity)


async def _opened(path: Path, question: ItemQuestion) -> _OpenItem:
    try:
        return await asyncio.to_thread(_open, path, question)
    except READ_ERRORS as error:
        raise StoreError(unreadable(path, error)) from error


def _open(path: Path, question: ItemQuestion) -> _OpenItem:
    """Read one item of a run; MistakenQuestion if the run does not have it."""
    store = RunStore(path)
    if not is_finished(store):
        raise StageMissing(f"The run {path.name} is not finished: its judge may still be at work.")
    config = effective_config(with_prices(load_config(path / "run.yaml")))
    if as_graded(config).evaluator is not None or store.judge().template.startswith(DERIVED):
        raise ConfigError(
            f"An evaluator judged {path.name}: its verdicts are not answers to single items."
        )
    judged, judgment = _judged(store, question)
    method = create_method(config)
    plan = plan_influence(judged, method)
    return _OpenItem(store, config, method, judged, plan, (judgment.key, judged.place))


def _judged(store: RunStore, question: ItemQuestion) -> tuple[JudgedItem, Judgment]:
    query = store.inputs.queries.get(question.query)
    checklist = store.inputs.checklists().get(question.query)
    if query is None or checklist is None:
        raise MistakenQuestion(f"There is no query {question.query!r} with a checklist here.")
    responses = store.inputs.responses_to([query.id])
    response = next((one for one in responses if one.candidate == question.candidate), None)
    if response is None:
        raise MistakenQuestion(f"There is no response of {question.candidate!r} to {query.id!r}.")
    if question.item > len(checklist.items):
        raise MistakenQuestion(f"The checklist of {query.id!r} has no item {question.item}.")
    judgment = read_judgment(store, query.id, response.candidate)
    if judgment is None or len(judgment.answers) != len(checklist.items):
        raise MistakenQuestion(
            f"The response of {response.candidate!r} to {query.id!r} was not judged."
        )
    place = question.item - 1
    answer, usage = judgment.answers[place], judgment.usage
    return JudgedItem(query, response, checklist, place, answer, usage), judgment
