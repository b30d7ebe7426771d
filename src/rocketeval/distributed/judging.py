"""The judge on a cluster's worker: batches of tasks in, rows of the ledger out.

The engine, the way to ask it and the grading loop are those of a run on one machine.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cached_property
from socket import gethostname
from typing import Any

import pyarrow as pa

from rocketeval._version import __version__
from rocketeval.distributed.replica import Replica, Reports, Terms
from rocketeval.distributed.task_rows import RESULTS, failed_row, judged_row, read_tasks
from rocketeval.engines.base import (
    Graded,
)
from rocketeval.errors import EngineError, EngineRefused, EngineUnavailable
from rocketeval.grading.grade import grade
from rocketeval.observing import Observer
from rocketeval.records import Answer, Failure, GradingTask, Judgment

REPORT_SECONDS = 0.5


@dataclass
class Batch:
    """The tasks of one call, and what came of them."""

    tasks: dict[bytes, GradingTask]
    ids: dict[bytes, int]
    known: dict[bytes, dict[int, Answer]]
    judged: list[Judgment] = field(default_factory=list)
    failed: dict[bytes, Failure] = field(default_factory=dict)

    @classmethod
    def read(cls, table: pa.Table) -> Batch:
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
        """The id that stands for the batch."""
        return min(self.ids.values())

    @property
    def counts(self) -> tuple[int, int]:
        """How many tasks are judged, and how many failed."""
        return len(self.judged), len(self.failed)

    def left(self) -> list[GradingTask]:
        """Return the tasks that are not judged yet."""
        done = {judgment.key for judgment in self.judged}
        return [task for key, task in self.tasks.items() if key not in done]

    def judge(self, judgment: Judgment) -> None:
        """Keep a judgment."""
        self.judged.append(judgment)

    def fail(self, failures: Iterable[Failure]) -> None:
        """Keep failures."""
        self.failed |= {failure.key: failure for failure in failures}

    def rows(self, digest: str) -> Iterator[dict[str, Any]]:
        """Yield what is to be kept."""
        for judgment in self.judged:
            yield judged_row(self.ids[judgment.key], judgment, digest)
        for key, failure in self.failed.items():
            yield failed_row(self.ids[key], failure, digest)


class Told(Observer):
    """Counts the judgments of a batch as the grading loop tells them."""

    def __init__(self, batch: Batch, reports: Reports) -> None:
        self._batch = batch
        self._reports = reports

    def judged(self, judgment: Judgment) -> None:
        """Count a judgment, and its answers without a probability."""
        report = self._reports.now
        report.missing.update(a.status for a in judgment.answers if a.p_yes is None)
        report.batches[self._batch.first] = self._batch.counts


class JudgeBatches:
    """Grades a batch a call; several calls at once share an engine and its places."""

    def __init__(self, terms: Terms, counting: Any) -> None:
        spare_imports()
        self._terms = terms
        self._counting = counting
        self._reports = Reports()
        addresses = terms.replicas or (terms.judge.base_url,)
        self._replicas = [Replica(terms, address, self._reports) for address in addresses]
        self._unfit = _unfit(terms)
        self._stop = asyncio.Event()
        self._calls = 0
        self._reporting: asyncio.Task[None] | None = None

    async def __call__(self, table: pa.Table) -> pa.Table:
        """Return one row for every task that was judged or failed."""
        batch = Batch.read(table)
        if not batch.tasks or self._stop.is_set():
            return RESULTS.empty_table()
        async with self._reported():
            try:
                if self._unfit is not None:
                    raise self._unfit
                await self._grade(batch)
            except EngineError as error:
                # What is judged is paid for: it goes back, also from a batch that cannot be ended.
                self._stop.set()
                await self._counting.give_up.remote(error)
        return pa.Table.from_pylist(list(batch.rows(self._terms.digest)), schema=RESULTS)

    async def aclose(self) -> None:
        """Release what the engines hold; on a cluster, the worker's end does."""
        for replica in self._replicas:
            await replica.aclose()

    async def _grade(self, batch: Batch) -> None:
        """Grade the batch, by the next replica where one is gone."""
        reason = ""
        for replica in self._in_turn(batch.first):
            try:
                reason = await self._grade_by(replica, batch)
            except EngineUnavailable as error:
                reason = error.message
            if not reason or self._stop.is_set():
                return
            replica.lost()
        raise EngineUnavailable(f"The judge is gone; the last task: {reason}")

    async def _grade_by(self, replica: Replica, batch: Batch) -> str:
        """Grade what is left of the batch; return why the replica counts as gone, if it does."""
        engine = await replica.open()
        unavailable: list[str] = []

        async def ask(task: GradingTask, known: Mapping[int, Answer]) -> Graded:
            graded = await replica.ask(task, known)
            if graded.unavailable:
                unavailable.append(graded.failure or "no answer")
            return graded

        grading = await grade(
            iter(batch.left()),
            engine,
            batch.judge,
            ask=ask,
            concurrency=self._terms.judge.concurrency or engine.in_flight,
            known=batch.known,
            observer=Told(batch, self._reports),
            stop=self._stop,
            # Whether a judge is of any use is seen by the driver, who hears of all workers.
            proven=True,
        )
        if unavailable and (grading.gone or not grading.judged):
            return unavailable[-1]
        batch.fail(grading.failures)
        self._reports.now.failures += grading.failures
        self._reports.now.batches[batch.first] = batch.counts
        return ""

    def _in_turn(self, first: int) -> list[Replica]:
        """Return the replicas to try: the least busy first, those that were gone last."""
        start = first % len(self._replicas)
        turned = self._replicas[start:] + self._replicas[:start]
        return sorted(turned, key=lambda replica: (replica.gone, replica.busy))

    @asynccontextmanager
    async def _reported(self) -> AsyncIterator[None]:
        """Report while the call runs, and once more at its end."""
        self._calls += 1
        if self._reporting is None:
            self._reporting = asyncio.create_task(self._keep_reporting())
        try:
            yield
        finally:
            self._calls -= 1
            await self._tell()

    async def _keep_reporting(self) -> None:
        while self._calls:
            await asyncio.sleep(REPORT_SECONDS)
            await self._tell()
        self._reporting = None

    async def _tell(self) -> None:
        report = self._reports.take()
        report.retries = sum(replica.new_retries() for replica in self._replicas)
        if await self._counting.report.remote(report):
            self._stop.set()


def _unfit(terms: Terms) -> EngineRefused | None:
    """Return why this worker may not judge."""
    here = gethostname()
    if terms.version != __version__:
        return EngineRefused(
            f"{here} runs rocketeval {__version__}, the command {terms.version}.",
            hint="Install the same version on every machine.",
        )
    if terms.folder is not None and not terms.folder.visible():
        return EngineRefused(
            f"{here} does not see {terms.folder.path}, where the tasks are.",
            hint="`distributed.staging` must be a folder that all machines share, or a URI in an "
            "object store.",
        )
    return None


def spare_imports() -> None:
    """Let garbage collection skip what the process has loaded, which stays for its lifetime.

    Ray brings very many objects along, and going through them again and again takes time.
    """
    gc.collect()
    gc.freeze()
