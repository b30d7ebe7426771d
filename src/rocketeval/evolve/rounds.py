"""Rounds of evolution: propose perspectives from failed cases and keep the best."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np
from numpy.typing import NDArray

from rocketeval.budget import Budget, PricedBudget
from rocketeval.checklists.base import AuthorContext
from rocketeval.config import EngineConfig, EvolveConfig, RunConfig
from rocketeval.engines.base import Engine, status_of
from rocketeval.errors import ConfigError, Stopped
from rocketeval.evolve.ask import (
    JudgedCases,
    MakeEngine,
    PerspectiveAsker,
    PrefixedObserver,
    metered,
)
from rocketeval.evolve.cases import Case, CaseTable, error_of_mean
from rocketeval.evolve.evaluator import credit_of
from rocketeval.evolve.forest import is_stopped
from rocketeval.evolve.history import (
    CallLimit,
    CaseSplit,
    History,
    JudgeUse,
    OutOfFoldFigure,
    Round,
    SharedPool,
    Spending,
    rounds_without_gain,
)
from rocketeval.evolve.optimizer import Optimizer, Proposals
from rocketeval.evolve.perspective import (
    PROPOSED,
    Perspective,
    PerspectiveOrigin,
    Pool,
    formats_of,
)
from rocketeval.evolve.pool import seed_pool
from rocketeval.evolve.predictions import Predictions
from rocketeval.evolve.requests import FailedCase, outcome_in_words
from rocketeval.evolve.select import weigh_perspectives
from rocketeval.evolve.validate import out_of_fold
from rocketeval.observer import Observer
from rocketeval.prices import priced
from rocketeval.records import Query, Response, Usage
from rocketeval.store.run import RunStore
from rocketeval.text import count_of
from rocketeval.workers import unless_stopped

GoOn = Callable[[str], None]
"""Raises if the command was stopped or reached its cost limit; gets a text on what is left."""
OptimizerWork = Callable[[AuthorContext], Awaitable[Proposals]]
P = ParamSpec("P")
T = TypeVar("T")
PROPOSING = "propose"
"""Name of the stage in which the optimizer proposes perspectives."""


@dataclass(frozen=True)
class EvolveContext:
    """Sends the requests of one command to judge and optimizer, and records their usage."""

    store: RunStore
    config: RunConfig
    settings: EvolveConfig
    observer: Observer
    stop: asyncio.Event
    budget: Budget | None
    go_on: GoOn
    make_engine: MakeEngine
    spending: Spending

    async def ask(
        self, pool: Iterable[Perspective], cases: Sequence[Case], folder: str, name: str
    ) -> JudgedCases:
        """Return the judge's answers about cases; end the command if it was stopped.

        The usage of each question set is recorded when its engine is closed, even after an error.
        """

        def make_engine(config: EngineConfig, home: Path | None) -> Engine:
            return metered(self.make_engine(config, home), partial(self.spending.judge_used, name))

        asked = await self._asker(folder, name, make_engine).ask(pool, cases)
        left = count_of(asked.unfinished, "prompt was", "prompts were")
        self.go_on(f"{left} not sent to the judge ({name})")
        return asked

    def count_unanswered(
        self, pool: Iterable[Perspective], cases: Sequence[Case], folder: str
    ) -> int:
        """Return the number of questions that `ask` would send to the judge."""
        return self._asker(folder, "", self.make_engine).count_unanswered(pool, cases)

    def _asker(self, folder: str, name: str, make_engine: MakeEngine) -> PerspectiveAsker:
        return PerspectiveAsker(
            self.store,
            self.config,
            PrefixedObserver(self.observer, name),
            self.stop,
            self.budget,
            asking=self.settings.asking,
            folder=folder,
            make_engine=make_engine,
        )

    async def fit(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Return `work(*args)`, done in a thread; raise Stopped once the command is stopped."""
        token = is_stopped.set(self.stop.is_set)
        try:
            return await unless_stopped(asyncio.to_thread(work, *args, **kwargs), self.stop)
        finally:
            is_stopped.reset(token)

    def open_optimizer(self) -> Optimizer | None:
        """Return the optimizer of the config; None without one."""
        section = self.settings.optimizer
        if section is None:
            return None
        engine = self.make_engine(section, self.store.engine_home("optimizer"))
        return Optimizer(self.settings, engine, section.model)

    async def propose(
        self, optimizer: Optimizer, round: int, mistakes: Sequence[FailedCase], pool: Pool
    ) -> Proposals:
        """Return the proposals of a round; end the command if it was stopped."""
        work = partial(optimizer.propose, round, mistakes, pool)
        return await self._optimize(optimizer, f"round {round}", round, self.settings.rounds, work)

    async def decompose(self, optimizer: Optimizer, guidelines: str, pool: Pool) -> Proposals:
        """Return the questions in annotation guidelines that the pool lacks."""
        work = partial(optimizer.decompose, guidelines, pool)
        return await self._optimize(optimizer, "guidelines", 1, 1, work)

    async def _optimize(
        self, optimizer: Optimizer, name: str, number: int, total: int, work: OptimizerWork
    ) -> Proposals:
        """Run the optimizer and record its usage, even after an error."""
        context = self._author_context(optimizer, name, number, total)
        await unless_stopped(optimizer.prepare(), self.stop)
        before = optimizer.usage
        try:
            proposals = await work(context)
        finally:
            self.spending.optimizer_used(name, optimizer.usage - before)
        if proposals.cut_short is not None:
            self.go_on(f"some optimizer requests of {name} were not sent")
            raise Stopped(
                f"The optimizer did not finish ({proposals.cut_short}).",
                hint="Run the same command again to continue.",
            )
        return proposals

    def _author_context(
        self, optimizer: Optimizer, name: str, number: int, total: int
    ) -> AuthorContext:
        self.observer.part_began(name, number, max(number, total))
        self.observer.stage_entered(PROPOSING)
        self.observer.watched(partial(status_of, optimizer))
        journal = self.store.authored(self.config.cache)
        run = self.store.manifest().run_id
        price = self.settings.price
        return AuthorContext(
            known=journal.known(),
            record=partial(journal.append, run=run),
            # Failures are in the round's record; an observer would report them as checklists.
            failed=lambda name, reason: None,
            spent=self.observer.spent,
            stop=self.stop,
            budget=PricedBudget(self.budget, price) if self.budget and price else None,
            run=run,
        )


WORST_SHARE = 0.25
"""For labels, the share of cases with the largest errors; these count as mistakes."""


def failed_cases(table: CaseTable, predictions: Predictions) -> NDArray[np.intp]:
    """Return the rows judged wrongly, worst first.

    For pairs these are wrong verdicts, most confident first; for labels the largest errors.
    """
    if table.pairs:
        wrong = np.flatnonzero(predictions.verdict != table.gold)
        order = np.argsort(-predictions.confidence[wrong], kind="stable")
        return wrong[order]
    off = np.abs(predictions.outcome - table.gold)
    worst = np.argsort(-off, kind="stable")[: int(np.ceil(WORST_SHARE * len(off)))]
    return worst[off[worst] > 0.0]


def show_failures(
    table: CaseTable,
    predictions: Predictions,
    queries: Mapping[str, Query],
    responses: Mapping[tuple[str, str], Response],
) -> list[FailedCase]:
    """Return the cases judged wrongly with their texts, worst first."""
    found = []
    for row in failed_cases(table, predictions).tolist():
        case = table.cases[row]
        sides = len(case.candidates)
        found.append(
            FailedCase(
                queries[case.query_id],
                tuple(responses[case.query_id, name] for name in case.candidates),
                outcome_in_words(float(table.gold[row]), sides),
                outcome_in_words(float(predictions.outcome[row]), sides),
                # Labels are ordered by error, not by confidence.
                float(predictions.confidence[row]) if table.pairs else None,
            )
        )
    return found


SEEN = "evolve/seen"
"""Folder of the question sets on the seen cases."""


@dataclass(frozen=True, eq=False)
class PoolFit:
    """Results of a pool on the seen cases."""

    pool: Pool
    """The pool with each perspective's importance and stability."""
    kept: tuple[str, ...]
    """Ids of the selected perspectives."""
    asked: JudgedCases
    predictions: Predictions
    """Out-of-fold prediction for each case."""
    measured: OutOfFoldFigure

    @property
    def table(self) -> CaseTable:
        """Return the judge's answers."""
        return self.asked.table


@dataclass(frozen=True, eq=False)
class EvolvedPool:
    """The pool after all rounds."""

    view: PoolFit
    """Results of the whole pool."""
    rounds: tuple[Round, ...]
    stopped: str
    """Reason why no further round started."""
    joined: int
    """Number of perspectives that people added during the command and that a round used."""
    waiting: int
    """Number added too late for any round; the next command uses them."""


@dataclass(frozen=True)
class Rounds:
    """Continues a run's rounds where the last command ended."""

    context: EvolveContext
    split: CaseSplit
    history: History
    shared: SharedPool
    limit: CallLimit
    optimizer: Optimizer | None

    async def go_on(self, pool: Pool) -> EvolvedPool:
        """Run the remaining rounds; return the pool after the last."""
        done = self.history.read(self.split.digest)
        name = f"round {done[-1].round}" if done else "beginning"
        view = await self._fit(pool, name)
        added = self.shared.write(view.pool, len(done))
        joined = 0
        while True:
            why = self._why_not(done, view, added)
            if why is not None or self.optimizer is None:
                return EvolvedPool(view, tuple(done), why or "", joined, len(added))
            finished = await self._round(self.optimizer, len(done) + 1, view, added)
            if isinstance(finished, str):
                return EvolvedPool(view, tuple(done), finished, joined, len(added))
            view, record = finished
            joined += len(added)
            # Write the pool first: a recorded round must have its perspectives in the file.
            self.history.announce(record.round, _of_round(view.pool, record.round))
            added = self.shared.write(view.pool, len(done))
            self.history.append(record)
            done.append(record)

    async def _round(
        self, optimizer: Optimizer, number: int, before: PoolFit, added: Sequence[Perspective]
    ) -> tuple[PoolFit, Round] | str:
        """Return the pool after a round and its record, or the reason why it did not finish.

        `added` are the perspectives that people added since the last fit; they join the pool.
        """
        started = time.monotonic()
        mistakes = self._mistakes(before)
        proposals = await self.context.propose(optimizer, number, mistakes, before.pool)
        grown, repeated = Pool([*before.pool, *added]).add(proposals.perspectives)
        news = [each for each in grown if each.round == number]
        over = self._over(number, grown)
        if over is not None:
            return over
        before_it = self._judge_so_far()
        after = await self._fit(grown, f"round {number}")
        dropped = Counter(each.why.value for each in proposals.dropped)
        dropped["repeat"] += len(repeated)
        return after, Round(
            round=number,
            split=self.split.digest,
            pool=len(grown),
            people=people_in(grown),
            mistakes=len(mistakes),
            proposed=dict(Counter(each.origin.value for each in news)),
            dropped={why: count for why, count in dropped.items() if count},
            failed=dict(proposals.failed),
            analyses=tuple(proposals.analyses.values()),
            kept=after.kept,
            before=before.measured,
            after=after.measured,
            judge=self._judge_use(before_it),
            optimizer=priced(proposals.usage, self.context.settings.price),
            seconds=round(time.monotonic() - started, 3),
        )

    async def _fit(self, pool: Pool, name: str) -> PoolFit:
        asked = await self.context.ask(pool, self.split.seen, SEEN, name)
        self.context.observer.part_began(name, 1, 1)
        self.context.observer.stage_entered("fit")
        view = await self.context.fit(fit_pool, pool, asked, self.context.settings)
        self.context.go_on("all answers are kept")
        return view

    def _why_not(
        self, done: list[Round], view: PoolFit, added: Sequence[Perspective]
    ) -> str | None:
        """Return why no further round may start; None if one may."""
        settings = self.context.settings
        if self.optimizer is None:
            return "the config has no `evolve.optimizer`, so nothing new is proposed"
        if len(done) >= settings.rounds:
            return f"all {count_of(settings.rounds, 'round is', 'rounds are')} done"
        idle = rounds_without_gain(done, people_in(view.pool) + len(added))
        if idle >= settings.patience:
            return f"{count_of(idle, 'round', 'rounds')} in a row brought no gain"
        if not len(failed_cases(view.table, view.predictions)):
            return "no case was judged wrongly"
        return self._over(len(done) + 1, Pool([*view.pool, *added]), view)

    def _over(self, number: int, pool: Pool, before: PoolFit | None = None) -> str | None:
        """Return why a round exceeds `max_calls`; `before` is given if it has yet to propose."""
        context = self.context
        if context.settings.max_calls is None:
            return None
        left = context.count_unanswered(pool, self.split.seen, SEEN)
        if before is not None and self.optimizer is not None:
            known = context.store.authored(context.config.cache).known()
            left += self.optimizer.most_requests(number, self._mistakes(before), before.pool, known)
        return self.limit.over(f"round {number}", left, pool)

    def _mistakes(self, view: PoolFit) -> list[FailedCase]:
        queries = self.context.store.inputs.queries
        return show_failures(view.table, view.predictions, queries, self._responses())

    def _judge_so_far(self) -> tuple[int, Usage]:
        """Return the total number of questions to the judge, and their usage."""
        spending = self.context.spending
        return spending.questions, spending.total("judge")

    def _judge_use(self, before: tuple[int, Usage]) -> JudgeUse:
        """Return the judge's usage since `before`."""
        questions, used = self._judge_so_far()
        price = self.context.config.judge.price
        facts = asdict(priced(used - before[1], price))
        return JudgeUse(questions=questions - before[0], **facts)

    def _responses(self) -> dict[tuple[str, str], Response]:
        """Return the responses to the seen queries."""
        names = list(dict.fromkeys(case.query_id for case in self.split.seen))
        found = self.context.store.inputs.responses_to(names)
        return {(each.query_id, each.candidate): each for each in found}


def fit_pool(pool: Pool, asked: JudgedCases, settings: EvolveConfig) -> PoolFit:
    """Fit a pool on the judge's answers and return its out-of-fold results.

    Each fold selects its own perspectives, so no case influences the selection that judges it.
    """
    standings = weigh_perspectives(asked.table, settings)
    predictions = out_of_fold(asked.table, settings)
    return PoolFit(
        pool.weigh(standings.by_id()),
        standings.keep(settings.most_about_responses, settings.most_about_queries),
        asked,
        predictions,
        measure(asked.table, predictions),
    )


def measure(table: CaseTable, predictions: Predictions) -> OutOfFoldFigure:
    """Return the accuracy of pairs, or the rank correlation of labels, with its standard error."""
    credit = credit_of(predictions, table.gold)
    return OutOfFoldFigure(float(credit.mean()), error_of_mean(credit, table.query_ids))


def _of_round(pool: Pool, number: int) -> list[str]:
    return [each.id for each in pool if each.round == number]


def people_in(pool: Pool) -> int:
    """Return the number of perspectives that people added to a pool."""
    return sum(each.origin is PerspectiveOrigin.PERSON for each in pool)


def proposed_elsewhere(pool: Iterable[Perspective]) -> int:
    """Return the number of seeds that rounds of another run proposed.

    That run may have learned from the mistakes on queries that are held out in this one.
    """
    return sum(each.round == 0 and each.origin in PROPOSED for each in pool)


@dataclass(frozen=True)
class InitialPool:
    """The pool at the start of a command, and where it came from."""

    pool: Pool
    new_people: int
    """Number of perspectives that people added and no command has used yet."""
    elsewhere: int
    """Number of these that name a round this run has not done."""
    refused: tuple[str, ...]
    """Rejected questions from the guidelines, each with its reason."""


async def make_initial_pool(
    context: EvolveContext,
    optimizer: Optimizer | None,
    shared: SharedPool,
    limit: CallLimit,
    rounds: int,
) -> InitialPool:
    """Return the run's pool after `rounds` finished rounds; before the first, the seeds.

    Raises ConfigError, before any cost, if the pool exceeds `evolve.max_calls`.
    """
    settings = context.settings
    if shared.path.exists():
        found = shared.read(rounds)
        limit.check_pool(found.pool)
        return InitialPool(found.pool, _new_people(found.pool), found.elsewhere, ())
    pool = seed_pool(settings.seeds, formats_of(settings.answers))
    refused: tuple[str, ...] = ()
    if settings.guidelines is not None and optimizer is not None:
        text = _guidelines(settings.guidelines)
        limit.check_pool(pool, settings.attempts)
        proposals = await context.decompose(optimizer, text, pool)
        pool, _ = pool.add(proposals.perspectives)
        refused = tuple(f"{each.text} ({each.why.value})" for each in proposals.dropped)
    limit.check_pool(pool)
    return InitialPool(pool, 0, 0, refused)


def _new_people(pool: Pool) -> int:
    return sum(each.origin is PerspectiveOrigin.PERSON and each.importance is None for each in pool)


def _guidelines(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise ConfigError(
            f"Cannot read the guidelines {path}: {error.strerror}.",
            hint="Check `evolve.guidelines`: a text file, relative to the config.",
        ) from None
    except UnicodeDecodeError:
        raise ConfigError(
            f"The guidelines {path} are not text in UTF-8.", hint="Save the file as UTF-8."
        ) from None
