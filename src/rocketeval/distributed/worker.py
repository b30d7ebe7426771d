"""The judge on a cluster worker: batches of tasks in, reports with ledger rows out.

The engine, the grading method and the grading loop are those of a run on one machine.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from socket import gethostname
from typing import Any

import pyarrow as pa

from rocketeval._version import __version__
from rocketeval.config import JudgeConfig
from rocketeval.distributed.staging import (
    ID,
    RESULTS,
    JobFolder,
    failed_row,
    judged_row,
    read_tasks,
)
from rocketeval.engines.base import (
    Engine,
    EngineAnswers,
    EngineIdentity,
    RefusedPartway,
    create_engine,
    offline_identity,
    status_of,
)
from rocketeval.errors import (
    ConfigError,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    JudgeChanged,
)
from rocketeval.grading.ask import Ask
from rocketeval.grading.loop import Grading, grade
from rocketeval.observer import Observer
from rocketeval.records import Answer, Failure, GradingTask, Judgment, Status, Usage


@dataclass
class WorkerReport:
    """The activity of a worker since its last report."""

    asked: int = 0
    """Tasks sent to the judge."""
    answered: int = 0
    """Those no longer in flight."""
    retries: int = 0
    """Requests that were resent."""
    usage: Usage = field(default_factory=Usage)
    missing: Counter[Status] = field(default_factory=Counter)
    """Answers without a probability, by status."""
    failures: list[Failure] = field(default_factory=list)
    results: pa.Table | None = None
    """Rows of tasks that were judged, failed or interrupted; None if there are none."""


@dataclass(frozen=True)
class ClusterProgress:
    """The sum of all reports."""

    asked: int
    in_flight: int
    """Tasks asked and not answered, including those of workers that have died since."""
    judged: int
    failed: int
    failed_queries: int
    retries: int
    usage: Usage
    missing: Mapping[Status, int]
    failures: tuple[Failure, ...]
    """Failures since the last call of `look`."""
    error: EngineError | None
    """Why a worker gave up."""


UNREACHABLE_SECONDS = 60.0
"""How long an unreachable replica is tried last."""


@dataclass(frozen=True)
class WorkerSettings:
    """A worker's knowledge of the judge. It has no key: the worker reads the key where it runs."""

    judge: JudgeConfig
    asking: Callable[[Engine], Ask]
    """How the grading method sends a task to an engine."""
    identity: EngineIdentity
    """The identity the judge must have."""
    digest: str
    """Digest of the judge's fingerprint in hex; part of every row."""
    replicas: tuple[str, ...] = ()
    """Base URLs of servers with the same model; empty to use the judge's own URL."""
    folder: JobFolder | None = None
    """The folder that every worker must see."""
    resumed: bool = False
    """Whether an earlier command finished some of the tasks."""
    version: str = __version__
    """Version of rocketeval that runs the command."""


class WorkerReports:
    """A worker's report under construction."""

    def __init__(self) -> None:
        self.now = WorkerReport()
        self.rows: list[dict[str, Any]] = []
        """Results since the last report."""

    def take(self) -> WorkerReport:
        """Return the report so far and start the next one."""
        taken, self.now = self.now, WorkerReport()
        if self.rows:
            taken.results = pa.Table.from_pylist(self.rows, schema=RESULTS)
            self.rows = []
        return taken


class Replica:
    """One server of the judge, or the judge inside this worker."""

    def __init__(self, terms: WorkerSettings, address: str | None, reports: WorkerReports) -> None:
        self._terms = terms
        self._config = terms.judge.model_copy(update={"base_url": address})
        self._reports = reports
        self._opening = asyncio.Lock()
        self._engine: Engine | None = None
        self._retries = 0
        self._unreachable_until = 0.0
        self.busy = 0
        """Tasks in flight, or waiting to be sent."""

    @property
    def unreachable(self) -> bool:
        """Whether it was unreachable recently."""
        return time.monotonic() < self._unreachable_until

    def lost(self) -> None:
        """Try the other replicas first for a while."""
        self._unreachable_until = time.monotonic() + UNREACHABLE_SECONDS

    async def open(self) -> Engine:
        """Return the engine, after checking that it is the run's judge."""
        async with self._opening:
            if self._engine is None:
                engine = _create(self._config)
                try:
                    with _refusing():
                        self._check(await engine.identify())
                except EngineError:
                    await engine.aclose()
                    raise
                self._places = asyncio.Semaphore(self._config.concurrency or engine.in_flight)
                self._ask = self._terms.asking(engine)
                self._engine = engine
            return self._engine

    def _check(self, found: EngineIdentity) -> None:
        if not found.same_as(self._terms.identity):
            raise EngineRefused(
                f"{self._config.base_url or 'A worker'} is another judge: {found}, not "
                f"{self._terms.identity}.",
                hint="A run never mixes two judges: serve the same model, engine, version and "
                "precision on every replica.",
            )

    async def ask(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Send a task to the engine, within the concurrency limit that all calls share."""
        self.busy += 1
        try:
            async with self._places:
                self._reports.now.asked += 1
                try:
                    graded = await self._ask(task, known)
                except RefusedPartway as refused:
                    self._reports.now.usage += refused.usage
                    raise
                finally:
                    self._reports.now.answered += 1
                self._reports.now.usage += graded.usage
                return graded
        finally:
            self.busy -= 1

    async def aclose(self) -> None:
        """Release connections."""
        if self._engine is not None:
            await self._engine.aclose()

    def new_retries(self) -> int:
        """Return how many requests were resent since the last call."""
        total = status_of(self._engine).retries
        new, self._retries = total - self._retries, total
        return new


def identify(judge: JudgeConfig, replicas: tuple[str, ...]) -> EngineIdentity | EngineError:
    """Return the judge's identity as a worker sees it, or why it cannot be used.

    The first replica that answers gives the identity. An engine inside the worker identifies
    itself without loading the model if it can; each worker checks the model it loads.
    """
    return asyncio.run(_identify(judge, replicas))


async def _identify(judge: JudgeConfig, replicas: tuple[str, ...]) -> EngineIdentity | EngineError:
    error: EngineError | None = None
    for address in replicas or (judge.base_url,):
        try:
            engine = _create(judge.model_copy(update={"base_url": address}))
        except EngineRefused as refused:
            return refused
        try:
            with _refusing():
                return await offline_identity(engine)
        except EngineUnavailable as unavailable:
            error = error or unavailable
        except EngineError as refused:
            return refused
        finally:
            await engine.aclose()
    assert error is not None
    return error


def _create(judge: JudgeConfig) -> Engine:
    with _refusing():
        return create_engine(judge)


@contextmanager
def _refusing() -> Iterator[None]:
    """Turn a ConfigError that only a worker finds, such as a missing package, into a refusal."""
    try:
        yield
    except ConfigError as error:
        raise EngineRefused(error.message, hint=error.hint) from error


REPORT_SECONDS = 0.5


@dataclass
class TaskBatch:
    """The tasks of one call, and those that are judged."""

    tasks: dict[bytes, GradingTask]
    ids: dict[bytes, int]
    known: dict[bytes, dict[int, Answer]]
    judged: list[Judgment] = field(default_factory=list)

    @classmethod
    def read(cls, table: pa.Table) -> TaskBatch:
        """Return the batch in a table of tasks."""
        batch = cls({}, {}, {})
        for number, task, known in read_tasks(table):
            batch.tasks[task.key] = task
            batch.ids[task.key] = number
            if known:
                batch.known[task.key] = known
        return batch

    @cached_property
    def first(self) -> int:
        """The id that identifies the batch."""
        return min(self.ids.values())

    def left(self) -> list[GradingTask]:
        """Return the tasks that are not judged yet."""
        done = {judgment.key for judgment in self.judged}
        return [task for key, task in self.tasks.items() if key not in done]


class BatchObserver(Observer):
    """Puts the judgments of a batch into the next report as the grading loop finishes them."""

    def __init__(self, batch: TaskBatch, reports: WorkerReports, digest: str) -> None:
        self._batch = batch
        self._reports = reports
        self._digest = digest

    def judged(self, judgment: Judgment) -> None:
        """Report a judgment, and count its answers without a probability."""
        self._reports.now.missing.update(a.status for a in judgment.answers if a.p_yes is None)
        number = self._batch.ids[judgment.key]
        self._reports.rows.append(judged_row(number, judgment, self._digest))


class BatchGrader:
    """Grades one batch per call; concurrent calls share an engine and its concurrency limit.

    Results go to the job's actor with the reports. A call returns when all its results are there,
    so that Ray repeats the batches of a worker that dies, and nothing else.
    """

    def __init__(self, terms: WorkerSettings, counting: Any) -> None:
        skip_heavy_imports()
        self._terms = terms
        self._counting = counting
        self._reports = WorkerReports()
        addresses = terms.replicas or (terms.judge.base_url,)
        self._replicas = [Replica(terms, address, self._reports) for address in addresses]
        self._unfit = _unfit(terms)
        self._repeated = terms.resumed or _restarted()
        """Whether some tasks of a batch may be finished."""
        self._stop = asyncio.Event()
        self._calls = 0
        self._reporting: asyncio.Task[None] | None = None
        self._in_order = asyncio.Lock()

    async def __call__(self, table: pa.Table) -> pa.Table:
        """Grade and report every task that is not finished; return how many were asked."""
        if self._repeated and table.num_rows:
            ids = table[ID].to_numpy()
            table = table.filter(pa.array(await self._counting.unfinished.remote(ids)))
        batch = TaskBatch.read(table)
        if not batch.tasks or self._stop.is_set():
            return asked_table(0)
        async with self._reported():
            try:
                if self._unfit is not None:
                    raise self._unfit
                await self._grade(batch)
            except EngineError as error:
                # Judged tasks are paid for: report them, even from an unfinished batch.
                self._stop.set()
                await self._counting.give_up.remote(error)
        return asked_table(len(batch.tasks))

    async def aclose(self) -> None:
        """Close the engines; on a cluster, the end of the worker does that."""
        for replica in self._replicas:
            await replica.aclose()

    async def _grade(self, batch: TaskBatch) -> None:
        """Grade the batch, moving on to the next replica if one is unreachable."""
        reason = ""
        for replica in self._in_turn(batch.first):
            try:
                reason = await self._grade_by(replica, batch)
            except EngineUnavailable as error:
                reason = error.message
            if not reason or self._stop.is_set():
                return
            replica.lost()
        raise EngineUnavailable(f"Judge unreachable. Last failure: {reason}")

    async def _grade_by(self, replica: Replica, batch: TaskBatch) -> str:
        """Grade the rest of the batch; return why the replica is unreachable, if it is."""
        engine = await replica.open()
        unavailable: list[str] = []

        async def ask(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            graded = await replica.ask(task, known)
            if graded.unavailable:
                unavailable.append(graded.failure or "no answer")
            return graded

        grading = Grading()
        try:
            await grade(
                iter(batch.left()),
                engine,
                batch.judged.append,
                ask=ask,
                concurrency=self._terms.judge.concurrency or engine.in_flight,
                known=batch.known,
                observer=BatchObserver(batch, self._reports, self._terms.digest),
                stop=self._stop,
                # The driver, which sees all workers, decides whether the judge is usable.
                proven=True,
                into=grading,
            )
        except JudgeChanged:
            raise  # Its answers may be those of another judge.
        except EngineRefused:
            self._add_rows(batch, [*grading.failures, *grading.cut_off])
            raise
        self._add_rows(batch, grading.cut_off)
        if unavailable and (grading.unreachable or not grading.judged):
            return unavailable[-1]
        self._reports.now.failures += grading.failures
        self._add_rows(batch, grading.failures)
        return ""

    def _add_rows(self, batch: TaskBatch, failures: list[Failure]) -> None:
        self._reports.rows += [
            failed_row(batch.ids[failure.key], failure, self._terms.digest) for failure in failures
        ]

    def _in_turn(self, first: int) -> list[Replica]:
        """Return the replicas in the order to try: least busy first, unreachable ones last."""
        start = first % len(self._replicas)
        turned = self._replicas[start:] + self._replicas[:start]
        return sorted(turned, key=lambda replica: (replica.unreachable, replica.busy))

    @asynccontextmanager
    async def _reported(self) -> AsyncIterator[None]:
        """Report while the call runs, and once more when it ends."""
        self._calls += 1
        if self._reporting is None:
            self._reporting = asyncio.create_task(self._keep_reporting())
        try:
            yield
        finally:
            self._calls -= 1
            await self._report()

    async def _keep_reporting(self) -> None:
        while self._calls:
            await asyncio.sleep(REPORT_SECONDS)
            await self._report()
        self._reporting = None

    async def _report(self) -> None:
        # One after the other: a call must not return while its results are on their way.
        async with self._in_order:
            report = self._reports.take()
            report.retries = sum(replica.new_retries() for replica in self._replicas)
            if await self._counting.report.remote(report):
                self._stop.set()


def asked_table(rows: int) -> pa.Table:
    """Return what Ray gets for a batch: the results themselves are in the reports."""
    return pa.table({"asked": pa.array([rows], pa.int64())})


def _restarted() -> bool:
    """Return whether this process replaces one that died, whose calls Ray repeats here."""
    ray = sys.modules.get("ray")
    if ray is None or not ray.is_initialized():
        return False
    context = ray.get_runtime_context()
    return bool(context.get_actor_id() and context.was_current_actor_reconstructed)


def _unfit(terms: WorkerSettings) -> EngineRefused | None:
    """Return why this worker must not judge; None if it may."""
    here = gethostname()
    if terms.version != __version__:
        return EngineRefused(
            f"{here} runs rocketeval {__version__}, the command {terms.version}.",
            hint="Install the same version on every machine.",
        )
    if terms.folder is not None and not terms.folder.visible():
        return EngineRefused(
            f"{here} cannot see {terms.folder.path}, which contains the tasks.",
            hint="`distributed.staging` must be a folder that all machines share, or a URI in an "
            "object store.",
        )
    return None


def skip_heavy_imports() -> None:
    """Exclude everything loaded so far from garbage collection.

    Ray imports very many objects that live as long as the process; scanning them takes time.
    """
    gc.collect()
    gc.freeze()
