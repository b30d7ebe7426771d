"""The driver: tasks go from the staging folder through judges on a cluster and back.

    read_parquet, in batches -> BatchGrader actors -> reports to the Runner -> durable blocks

The dataset runs in the Runner, an actor on the driver's node, even if the driver is a Ray client.
Workers report to the same actor, their results included, and it writes them to the staging folder.
A job whose driver died continues with the tasks that have no result there. Killing the Runner ends
the job, because it owns all other actors.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Condition, Lock
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rocketeval._version import __version__
from rocketeval.config import DistributedConfig
from rocketeval.distributed.staging import ID, JobFolder, StagedJob, Staging, ended
from rocketeval.distributed.worker import (
    BatchGrader,
    ClusterProgress,
    WorkerReport,
    WorkerSettings,
    identify,
    skip_heavy_imports,
)
from rocketeval.engines.base import EngineIdentity
from rocketeval.errors import ClusterError, EngineError, Stopped

LOOK_SECONDS = 0.5
NOTE_SECONDS = 2.0
"""Seconds between two saves of the number of tasks asked."""
CALM_SECONDS = 3.0
"""After a stop and the last answer, everything is written once nothing changes for this long."""
LOST_SECONDS = 8.0
"""After a stop, the longest wait for the next answer: workers drop their requests in half this
time, or have died."""
THREADS = 4
"""Threads of the actor that runs the dataset: one runs it, the others receive reports."""
WORKERS_PER_READER = 8
"""Each reader is a process; one keeps many workers busy."""
HELPERS = 2.0
"""Ray CPUs for work other than judging."""
SMALL_TASK = 0.25
"""Ray CPUs for reading, which mostly waits."""


@dataclass(frozen=True)
class DatasetPlan:
    """A job as it is sent to the cluster."""

    staging: Staging
    job: StagedJob
    terms: WorkerSettings
    settings: DistributedConfig

    @property
    def folder(self) -> JobFolder:
        """The folder of the job's files."""
        return self.staging.folder(self.job.id)


def run_dataset(flow: DatasetPlan, finished: NDArray[np.bool_], counting: Any) -> None:
    """Grade every staged task that is not finished."""
    import ray.data

    folder, settings = flow.folder, flow.settings
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    # The newer reader starts a process pool to read the footers of a handful of files.
    context.use_datasource_v2 = False
    # Polling the memory of every batch takes a thread each, and nobody reads the result.
    context.memory_usage_poll_interval_s = None
    least, most = settings.pool
    files, rows = folder.unfinished_tasks(finished)
    if not files:
        return
    tasks = ray.data.read_parquet(
        files,
        filesystem=folder.filesystem,
        ray_remote_args={"num_cpus": SMALL_TASK},
        concurrency=-(-most // WORKERS_PER_READER),
        # The reader cuts files into batches itself.
        override_num_blocks=-(-rows // settings.batch),
    )
    judged = tasks.map_batches(
        BatchGrader,
        fn_constructor_args=(replace(flow.terms, resumed=bool(finished.any())), counting),
        batch_size=None,
        batch_format="pyarrow",
        num_cpus=settings.cpus,
        num_gpus=settings.gpus,
        compute=ray.data.ActorPoolStrategy(
            min_size=least,
            max_size=most,
            max_concurrent_calls_per_actor=settings.calls,
            max_tasks_in_flight_per_actor=settings.calls + 1,
        ),
    )
    for _ in judged.iter_internal_ref_bundles():
        pass  # The results arrive with the reports.


BLOCK_ROWS = 4096
"""The most rows that wait to be written: 1e8 responses are 25 thousand files (perf/ray_blocks.py).
"""
BLOCK_SECONDS = 2.0
"""How long a row waits at most, so that a slow judge loses seconds of work, not a block of rows."""


class DurableBlocks:
    """The results of a job that are not written yet; safe to use from several threads.

    A batch is what a worker judges in one call; a block is what survives a crash as a whole, and
    has results of many batches and workers. It is written when it has enough rows, or when its
    oldest row has waited long enough.
    """

    def __init__(
        self,
        folder: JobFolder,
        *,
        rows: int = BLOCK_ROWS,
        seconds: float = BLOCK_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._rows = rows
        self._seconds = seconds
        self._clock = clock
        self._held: list[pa.Table] = []
        self._count = 0
        self._since = 0.0
        self._writing = 0
        self._changed = Condition()

    def add(self, results: pa.Table) -> None:
        """Add rows, and write the block if it is due.

        The caller writes, so that workers wait for a slow disk instead of filling the memory.
        """
        with self._changed:
            if not self._held:
                self._since = self._clock()
            self._held.append(results)
            self._count += results.num_rows
        self.write_if_due()

    def write_if_due(self) -> None:
        """Write the block if it has enough rows, or if its first row has waited long enough."""
        with self._changed:
            if self._count < self._rows and not self._overdue():
                return
            block = self._take()
        self._write(block)

    def write(self) -> None:
        """Write everything, and wait for the blocks that other threads are writing."""
        with self._changed:
            block = self._take()
        self._write(block)
        with self._changed:
            self._changed.wait_for(lambda: not self._writing)

    def _overdue(self) -> bool:
        return bool(self._held) and self._clock() - self._since >= self._seconds

    def _take(self) -> list[pa.Table]:
        block, self._held, self._count = self._held, [], 0
        self._writing += 1
        return block

    def _write(self, block: list[pa.Table]) -> None:
        """Write a block; if that fails, its rows wait for the next attempt."""
        try:
            if block:
                self._folder.write_results(pa.concat_tables(block))
        except BaseException:
            with self._changed:
                self._held = block + self._held
                self._count = sum(table.num_rows for table in self._held)
            raise
        finally:
            with self._changed:
                self._writing -= 1
                self._changed.notify_all()


MOST_FAILURES = 1000
"""Maximum number of failures waiting to be shown; all are counted and in the results."""


class ReportCounter:
    """A thread-safe sum of worker reports."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sum = WorkerReport()
        self._judged = self._failed = 0
        self._finished = np.zeros(0, dtype=bool)
        self._failed_queries: set[str] = set()
        self._error: EngineError | None = None
        self._stopping = False

    def begin(self, finished: NDArray[np.bool_]) -> None:
        """Start a job, of which the tasks with these ids are finished."""
        self._finished = finished

    def unfinished(self, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return which of these tasks have no result yet."""
        with self._lock:
            return ~self._finished[ids]

    def report(self, report: WorkerReport) -> bool:
        """Add a report; return whether the worker should stop."""
        with self._lock:
            self._add(report)
        return self._stopping

    def give_up(self, error: EngineError) -> None:
        """Record why a worker gave up; the first reason counts."""
        self._error = self._error or error

    def stop(self) -> None:
        """Make every worker that reports from now on start no more tasks."""
        self._stopping = True

    def look(self) -> ClusterProgress:
        """Return the sums so far."""
        with self._lock:
            failures, self._sum.failures = tuple(self._sum.failures), []
            return ClusterProgress(
                self._sum.asked,
                self._sum.asked - self._sum.answered,
                self._judged,
                self._failed,
                len(self._failed_queries),
                self._sum.retries,
                self._sum.usage,
                dict(self._sum.missing),
                failures,
                self._error,
            )

    def _add(self, report: WorkerReport) -> None:
        total = self._sum
        total.asked += report.asked
        total.answered += report.answered
        total.retries += report.retries
        total.usage += report.usage
        total.missing.update(report.missing)
        if report.results is not None:
            self._count(report.results)
        total.failures.extend(report.failures[: MOST_FAILURES - len(total.failures)])
        if len(self._failed_queries) < MOST_FAILURES:
            self._failed_queries.update(failure.query_id for failure in report.failures)

    def _count(self, results: pa.Table) -> None:
        """Count results by id, so that a task repeated after its worker died counts once."""
        results = ended(results)
        ids = results[ID].to_numpy()
        new = ~self._finished[ids]
        failed = results["failure"].is_valid().to_numpy()
        self._failed += int((new & failed).sum())
        self._judged += int((new & ~failed).sum())
        self._finished[ids] = True


class Runner(ReportCounter):
    """A Ray actor with several threads that runs a dataset and saves what its workers report."""

    def __init__(self) -> None:
        super().__init__()
        self._blocks: DurableBlocks | None = None
        import ray.data  # noqa: F401 - takes a second, while the driver stages the tasks

        skip_heavy_imports()

    def run(self, flow: DatasetPlan) -> None:
        """Run the dataset to its end; then everything is written."""
        import ray

        finished = flow.folder.finished(flow.job.rows)
        self.begin(finished)
        self._blocks = DurableBlocks(flow.folder)
        try:
            run_dataset(flow, finished.copy(), ray.get_runtime_context().current_actor)
        finally:
            self._blocks.write()

    def report(self, report: WorkerReport) -> bool:
        """Take a report and its results; return whether the worker should stop."""
        assert self._blocks is not None
        if report.results is not None:
            self._blocks.add(report.results)
        return super().report(report)

    def look(self) -> ClusterProgress:
        """Write what has waited long enough, and return the sums so far."""
        if self._blocks is not None:
            self._blocks.write_if_due()
        return super().look()

    def write(self) -> None:
        """Write all results that have arrived."""
        if self._blocks is not None:
            self._blocks.write()


def inspect_cluster(
    judge: Any, replicas: tuple[str, ...]
) -> tuple[str, EngineIdentity | EngineError]:
    """Return the version of rocketeval and the judge's identity, as a worker sees them."""
    return __version__, identify(judge, replicas)


class Cluster:
    """The connection of the grading stage to a Ray cluster."""

    def __init__(self, ray: Any, settings: DistributedConfig, *, own: bool = False) -> None:
        self._ray = ray
        self._settings = settings
        self._own = own
        """Whether this process started the cluster, so that no node will join it."""
        self.lacking = ""
        """The missing resources in words, as of the last check."""

    async def identify(self, judge: Any, stop: asyncio.Event) -> EngineIdentity:
        """Return the judge's identity, reported by a worker with the resources of an actor."""
        asking = self._ray.remote(inspect_cluster).options(
            num_cpus=self._settings.cpus, num_gpus=self._settings.gpus, max_retries=2
        )
        pending = asking.remote(judge, self._settings.replicas)
        while not await self._ready(pending):
            self.lacking = self.shortage()
            if self.lacking and self._own:
                raise ClusterError(
                    f"This machine is too small for the workers: they need {self.lacking}.",
                    hint="Lower `distributed.actors`, `cpus` or `gpus`, or name a cluster "
                    "with --on.",
                )
            if stop.is_set():
                self._ray.cancel(pending, force=True)
                raise Stopped("Stopped before the first task.")
        version, found = await self._get(pending)
        if version != __version__:
            raise ClusterError(
                f"The cluster runs rocketeval {version}, this machine {__version__}.",
                hint="Install the same version on every machine.",
            )
        if isinstance(found, EngineError):
            raise found
        return found  # type: ignore[no-any-return]

    def shortage(self) -> str:
        """Return the resources the cluster currently lacks, in words; empty if it can start."""
        settings = self._settings
        nodes = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        worker = {"CPU": settings.cpus, "GPU": settings.gpus}
        if not any(all(node.get(kind, 0) >= worker[kind] for kind in worker) for node in nodes):
            wanted = " and ".join(
                f"{amount:g} {kind}s" for kind, amount in worker.items() if amount
            )
            return f"a machine with {wanted} for each worker, of which the cluster has none"
        needed = {"CPU": cpus_needed(settings), "GPU": settings.pool[0] * settings.gpus}
        there = {kind: sum(node.get(kind, 0) for node in nodes) for kind in needed}
        return " and ".join(
            f"{amount:g} {kind}s, of which the cluster has {there[kind]:g}"
            for kind, amount in needed.items()
            if there[kind] < amount
        )

    async def run(
        self,
        runner: Any,
        flow: DatasetPlan,
        stop: asyncio.Event,
        watch: Callable[[ClusterProgress], bool],
    ) -> ClusterProgress:
        """Run the job to its end, report progress to `watch`, and return the last progress.

        If `stop` is set or a worker gives up, the job ends after the tasks in flight; the worker's
        error is raised. If `watch` returns False, the job ends at once.
        """
        earlier = flow.staging.asked()
        done = runner.run.remote(flow)
        noted = time.monotonic()
        calm = IdleWatch()
        while True:
            finished = await self._ready(done)
            progress: ClusterProgress = await self._get(runner.look.remote())
            self.lacking = "" if progress.asked else self.shortage()
            wanted = watch(progress)
            if finished or not wanted:
                break
            if stop.is_set() or progress.error:
                await self._get(runner.stop.remote())
                if calm.ended(progress):
                    break
            if time.monotonic() - noted > NOTE_SECONDS:
                flow.staging.note_asked(earlier + progress.asked)
                noted = time.monotonic()
        if not finished:
            await self._get(runner.write.remote())
        flow.staging.note_asked(earlier + progress.asked)
        if progress.error:
            raise progress.error
        if finished:
            await self._get(done)
        return progress

    @contextmanager
    def runner(self) -> Iterator[Any]:
        """Start the actor that will run a dataset, on the driver's node; it ends with the block.

        The actor starts in the background.
        """
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        here = NodeAffinitySchedulingStrategy(
            self._ray.get_runtime_context().get_node_id(), soft=False
        )
        placed = self._ray.remote(Runner).options(
            num_cpus=0, max_concurrency=THREADS, scheduling_strategy=here
        )
        runner = placed.remote()
        try:
            yield runner
        finally:
            self._ray.kill(runner)

    async def _ready(self, pending: Any) -> bool:
        ready, _ = await asyncio.to_thread(self._ray.wait, [pending], timeout=LOOK_SECONDS)
        return bool(ready)

    async def _get(self, pending: Any) -> Any:
        """Return a worker's result; raise its errors as ClusterError."""
        try:
            return await asyncio.to_thread(self._ray.get, pending)
        except self._ray.exceptions.RayError as error:
            raise _for_people(error) from None


def cpus_needed(settings: DistributedConfig) -> float:
    """Return the Ray CPUs that the smallest pool of workers and its helpers need.

    Ray CPUs are slots, not cores: judging over HTTP mostly waits.
    """
    return settings.pool[0] * settings.cpus + HELPERS


class IdleWatch:
    """Detects that nothing happens any more."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last: tuple[int, int] | None = None
        self._since = clock()

    def ended(self, progress: ClusterProgress) -> bool:
        """Return whether every task in flight is answered and written, or lost."""
        counts, now = (progress.asked, progress.judged + progress.failed), self._clock()
        if counts != self._last:
            self._last, self._since = counts, now
        return now - self._since > (LOST_SECONDS if progress.in_flight else CALM_SECONDS)


def _for_people(error: BaseException) -> ClusterError:
    text = str(error)
    if "No module named 'rocketeval'" in text:
        return ClusterError(
            "RocketEval is not installed on the cluster's machines.",
            hint="Install the same version on every machine: pip install 'rocketeval[ray]'",
        )
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return ClusterError(
        f"Ray stopped the job: {lines[-1] if lines else type(error).__name__}",
        hint="Finished judgments are safe: run the same command again to continue. Ray's own logs "
        "are in /tmp/ray/session_latest/logs on its machines.",
    )
