"""The grade stage on a Ray cluster: tasks go out, each judgment enters the ledger once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.checklists.rubric import rubric_options
from rocketeval.checks.runner import CheckRunner, CheckSettings
from rocketeval.config import DistributedConfig, RunConfig
from rocketeval.distributed.cluster import check_address, connected, need_ray, starts_here
from rocketeval.distributed.driver import BLOCK_ROWS, Cluster, DatasetPlan, cpus_needed
from rocketeval.distributed.staging import (
    ID,
    JobFolder,
    StagedJob,
    Staging,
    open_staging,
    row_to_failure,
    write_tasks,
)
from rocketeval.distributed.worker import ClusterProgress, WorkerSettings
from rocketeval.engines.base import ENGINES, create_engine
from rocketeval.errors import ClusterError, ConfigError, EngineError, RunMismatch
from rocketeval.grading.loop import (
    CUT_OFF,
    USELESS_AFTER,
    USELESS_QUERIES,
    Grading,
    fingerprint,
    stop_without_judge,
)
from rocketeval.grading.methods import create_method
from rocketeval.grading.work import GradingWork, open_grading
from rocketeval.hashing import combine_all
from rocketeval.observer import EngineStatus, Observer
from rocketeval.records import Failure, JudgeFingerprint, Usage
from rocketeval.store.ledger import ROLL_ROWS, Ledger
from rocketeval.store.manifest import GradeFacts, RayFacts
from rocketeval.store.run import RunStore
from rocketeval.store.schema import JUDGMENTS


class ClusterWatch:
    """Reports a cluster's progress to an observer."""

    def __init__(self, observer: Observer, *, proven: bool) -> None:
        self._observer = observer
        self._proven = proven
        self._judged = 0
        self._missing: dict[Any, int] = {}
        self._retries = 0
        self._failures: list[Failure] = []
        self._useless = False
        self._lacking: Callable[[], str] = str
        self.spent = Usage()
        self._before = Usage()
        self._retries_before = 0

    def begin(self, lacking: Callable[[], str], *, proven: bool) -> None:
        """Start to watch a job; `lacking` returns the resources the cluster waits for."""
        self._proven = self._proven or proven or bool(self._judged)
        self._judged, self._missing = 0, {}
        self._before, self._retries_before = self.spent, self._retries
        self._lacking = lacking
        self._observer.watched(self._pulse)

    def _pulse(self) -> EngineStatus:
        lacking = self._lacking()
        return EngineStatus(
            retries=self._retries, waiting=f"waiting for {lacking}" if lacking else ""
        )

    def __call__(self, progress: ClusterProgress) -> bool:
        """Report what is new; return whether the job should continue."""
        if progress.judged > self._judged:
            fresh = {
                status: count - self._missing.get(status, 0)
                for status, count in progress.missing.items()
            }
            self._observer.counted(progress.judged - self._judged, fresh)
            self._judged, self._missing = progress.judged, dict(progress.missing)
        self.spent = self._before + progress.usage
        self._retries = self._retries_before + progress.retries
        self._observer.spent(self.spent)
        for failure in progress.failures:
            self._failures.append(failure)
            self._observer.failed(failure)
        self._useless = (
            not (self._proven or self._judged)
            and progress.failed >= USELESS_AFTER
            and progress.failed_queries >= USELESS_QUERIES
        )
        return not self._useless

    def useless(self) -> Grading:
        """Return the grading's failures, and whether they make the judge unusable."""
        return Grading(failures=self._failures, useless=self._useless)


MOST_JOBS = 3
"""After this many jobs, tasks still missing are reported as unfinished."""
DAMAGED = 0.1
"""A larger share of missing rows than this, and more than a block, means that the staging folder
is not shared."""


STEP_ROWS = 8192
"""Rows processed together, because the files of a slow judge are small."""


@dataclass
class Collected:
    """The collected results of a job."""

    judged: int = 0
    """Judgments new to the ledger."""
    failures: dict[bytes, Failure] = field(default_factory=dict)
    cut_off: dict[bytes, Failure] = field(default_factory=dict)
    """Tasks that a stop interrupted, with the answers they got."""
    rows: int = 0
    """Tasks with a row, judged or failed."""
    duplicates: int = 0
    """Further rows of the same task, which are ignored."""
    torn: int = 0
    """Incomplete files, whose writer died; they are ignored and their tasks asked again."""

    def add(self, other: Collected) -> None:
        """Add the results of another job."""
        self.judged += other.judged
        self.failures |= other.failures
        self.cut_off |= other.cut_off
        self.rows += other.rows
        self.duplicates += other.duplicates
        self.torn += other.torn


def collect(folder: JobFolder, rows: int, ledger: Ledger) -> Collected:
    """Append the judgments of a job with this many `rows` to the ledger, each once.

    Judgments that the run no longer needs, as after its inputs changed, are kept as well.
    """
    found = Collected()
    seen = np.zeros(rows, dtype=bool)
    failures: dict[int, Failure] = {}
    held: list[pa.Table] = []
    read = 0
    for table in _gathered(folder.result_tables(), found):
        read += table.num_rows
        judged = _first_of_each(table.filter(pc.is_null(table["failure"])), seen)
        found.rows += judged.num_rows
        for row in table.filter(pc.is_valid(table["failure"])).to_pylist():
            failure = row_to_failure(row)
            if failure.reason != CUT_OFF:
                failures[row[ID]] = failure
                continue
            found.cut_off[failure.key] = failure
            read -= 1
        held.append(_new(judged, ledger))
        if sum(one.num_rows for one in held) >= ROLL_ROWS:
            found.judged += _append(held, ledger)
    found.judged += _append(held, ledger)
    # A task that failed on one worker may have been judged by another.
    left = [failure for number, failure in failures.items() if not seen[number]]
    found.failures = {failure.key: failure for failure in left}
    found.rows += len(left)
    found.duplicates = read - found.rows
    return found


def _gathered(parts: Iterable[pa.Table | None], found: Collected) -> Iterator[pa.Table]:
    """Yield the parts joined to tables of at least `STEP_ROWS` rows; count incomplete files."""
    held: list[pa.Table] = []
    rows = 0
    for part in parts:
        if part is None:
            found.torn += 1
            continue
        held.append(part)
        rows += part.num_rows
        if rows >= STEP_ROWS:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if held:
        yield pa.concat_tables(held)


def _first_of_each(table: pa.Table, seen: np.ndarray) -> pa.Table:
    """Return the rows whose id was not seen before, and mark them."""
    ids, first = np.unique(table[ID].to_numpy(), return_index=True)
    chosen = first[~seen[ids]]
    seen[ids] = True
    return table.take(pa.array(np.sort(chosen)))


def _new(table: pa.Table, ledger: Ledger) -> pa.Table:
    """Return the judgments that the ledger lacks, in its schema."""
    keys = map(bytes.fromhex, table["key"].to_pylist())
    chosen = [key not in ledger.finished for key in keys]
    return table.filter(pa.array(chosen, pa.bool_())).select(JUDGMENTS.names)


def _append(held: list[pa.Table], ledger: Ledger) -> int:
    whole = pa.concat_tables(held) if held else JUDGMENTS.empty_table()
    held.clear()
    if whole.num_rows:
        ledger.extend(whole.cast(JUDGMENTS))
    return int(whole.num_rows)


@dataclass
class ClusterOutcome:
    """The results of jobs on a cluster."""

    found: Collected = field(default_factory=Collected)
    asked: int = 0
    rows: int = 0
    """Tasks of the last job."""
    missing: int = 0
    """Those without a result."""
    error: EngineError | None = None

    def add(self, job: ClusterOutcome) -> None:
        """Add the results of another job."""
        self.found.add(job.found)
        self.asked += job.asked
        self.rows, self.missing, self.error = job.rows, job.missing, job.error

    def facts(self, cluster: str) -> RayFacts:
        """Return counts for the manifest."""
        again = max(0, self.asked - self.found.rows)
        return RayFacts(cluster, self.asked, again, self.found.duplicates, self.found.torn)


def refuse_another_judge(staging: Staging, judge: JudgeFingerprint) -> None:
    """Raise RunMismatch if a killed job of another judge has judgments that are not collected."""
    job = staging.job()
    if job is None or job.judge == judge.digest.hex():
        return
    waiting = int(staging.folder(job.id).finished(job.rows).sum())
    if waiting:
        raise RunMismatch(
            f"{waiting} judgments of another judge are in {staging.root}: its job was killed.",
            hint="Repeat the killed command to collect them, or give this run another `name`.",
        )


@dataclass
class ClusterJobs:
    """The jobs that grade a run on a cluster."""

    work: GradingWork
    cluster: Cluster
    staging: Staging
    terms: WorkerSettings
    settings: DistributedConfig
    watched: ClusterWatch
    stop: asyncio.Event
    resumed: bool = False
    """Whether a job of an earlier command was continued."""
    checks: CheckSettings = field(default_factory=CheckSettings)
    """The settings of code checks, which run on this machine."""

    async def run(self) -> ClusterOutcome:
        """Run jobs until every task is judged or failed.

        One job is enough unless files of its results are removed or damaged.
        """
        outcome = ClusterOutcome()
        for _ in range(MOST_JOBS):
            outcome.add(await self._run_one(outcome.found.failures))
            if not outcome.missing or outcome.error or self._ends_early():
                break
            most = max(DAMAGED * outcome.rows, BLOCK_ROWS)
            if not outcome.found.rows or outcome.missing > most:
                raise ClusterError(
                    f"Ray reports that everything is written, but {outcome.missing} of "
                    f"{outcome.rows} rows are missing from {self.staging.root}.",
                    hint="`distributed.staging` must be a folder that all machines share, or a URI "
                    "in an object store. The rows that were found are in the ledger.",
                )
        return outcome

    def _ends_early(self) -> bool:
        return self.stop.is_set() or self.watched.useless().useless

    async def _run_one(self, failed: Collection[bytes]) -> ClusterOutcome:
        """Run the remaining or the killed job, and collect its results."""
        with self.cluster.runner() as runner:
            outcome = await asyncio.to_thread(self._prepare, failed)
            job = self.staging.job()
            if job is None:
                return outcome
            flow = self._flow(job)
            self.watched.begin(lambda: self.cluster.lacking, proven=self.resumed)
            error: EngineError | None = None
            try:
                await self.cluster.run(runner, flow, self.stop, self.watched)
            except EngineError as given_up:
                error = given_up
        found = await asyncio.to_thread(self._collect, job)
        outcome.add(
            ClusterOutcome(found, self.staging.asked(), job.rows, job.rows - found.rows, error)
        )
        await asyncio.to_thread(self.staging.clear)
        return outcome

    def _flow(self, job: StagedJob) -> DatasetPlan:
        terms = replace(self.terms, folder=self.staging.folder(job.id))
        return DatasetPlan(self.staging, job, terms, self.settings)

    def _collect(self, job: StagedJob) -> Collected:
        return collect(self.staging.folder(job.id), job.rows, self.work.ledger)

    def _prepare(self, failed: Collection[bytes]) -> ClusterOutcome:
        """Stage the remaining tasks, unless a killed job did; return an older job's results.

        Tasks that `failed` in this command are not retried.
        """
        job = self.staging.job()
        if job is not None and job.made_for == self._job_hash():
            waiting = int(self.staging.folder(job.id).finished(job.rows).sum())
            self.resumed = waiting > 0
            self.work.announce(waiting)
            return ClusterOutcome()
        left = ClusterOutcome()
        if job is not None:
            left = ClusterOutcome(self._collect(job), self.staging.asked())
            self.resumed = left.found.judged > 0
            self.work.announce(left.found.judged)
        self.staging.clear()
        made_for = self._job_hash()
        job_id, folder = self.staging.new_folder()
        tasks, known = self.work.tasks(failed), self.work.known()
        with closing(CheckRunner(self.checks)) as checks:
            rows = write_tasks(tasks, known, folder.filesystem, folder.tasks, checks)
        if rows:
            self.staging.begin(StagedJob(made_for, self.terms.digest, rows, job_id))
        return left

    def _job_hash(self) -> str:
        """Return a hash of the judge and the remaining tasks."""
        finished = self.work.ledger.finished
        left = (key for key in self.work.wanted if key not in finished)
        return combine_all(chain([self.work.digest], left)).hex()


def check_cluster(config: RunConfig, *, own_engine: bool) -> None:
    """Raise ConfigError for settings that a cluster does not support, before money is spent."""
    need_ray()
    assert config.distributed.cluster is not None
    check_address(config.distributed.cluster)
    local = "Judge on this machine (--on local), or remove this setting."
    if own_engine:
        raise ConfigError("An engine made in Python cannot be sent to a cluster.", hint=local)
    if config.max_cost is not None:
        raise ConfigError(
            "max_cost is not supported on Ray, because many machines spend at once.",
            hint=f"{local} `rocketeval plan` estimates the cost of a run.",
        )
    if _is_queue(config):
        raise ConfigError(
            f"The engine {config.judge.engine!r} is a queue at its provider, so a cluster does not "
            "make it faster.",
            hint="Use it with --on local.",
        )


def _is_queue(config: RunConfig) -> bool:
    """Return whether the judge's work survives the process that requests it."""
    durable = getattr(ENGINES.get(config.judge.engine), "durable", None)
    if isinstance(durable, bool):
        return durable
    # Only the engine itself knows; creating it contacts nothing.
    return create_engine(config.judge, config.run_path / "engines").durable


async def grade_on_ray(
    store: RunStore, config: RunConfig, observer: Observer, stop: asyncio.Event
) -> GradeFacts:
    """Append the missing judgments to the ledger; return counts and cost of this grading."""
    place = config.distributed
    assert place.cluster is not None
    method = create_method(config)
    staging = open_staging(place.staging, store.path, store.manifest().run_id)
    observer.watched(lambda: EngineStatus(waiting=f"waiting for Ray ({place.cluster})"))
    own = starts_here(place.cluster)
    with connected(place.cluster, cpus_needed(place)) as ray:
        cluster = Cluster(ray, place, own=own)
        observer.watched(
            lambda: EngineStatus(waiting=f"waiting for {cluster.lacking or 'the first worker'}")
        )
        identity = await cluster.identify(config.judge, stop)
        judge = store.known_judge(fingerprint(identity, method), config.cache)
        refuse_another_judge(staging, judge)
        with open_grading(store, config, method, judge, observer) as work:
            terms = WorkerSettings(
                config.judge, method.asking, identity, judge.digest.hex(), place.replicas
            )
            started = time.monotonic()
            watched = ClusterWatch(observer, proven=bool(work.ledger.finished))
            jobs = ClusterJobs(work, cluster, staging, terms, place, watched, stop)
            jobs.checks = rubric_options(config).checks
            # Workers do not report the requests with which they identify their replica.
            work.spent = lambda: (watched.spent, Usage())
            outcome = await jobs.run()
            seconds = time.monotonic() - started
            found = outcome.found
            work.keep_failures([*found.cut_off.values(), *found.failures.values()])
            if outcome.error is not None:
                raise type(outcome.error)(
                    outcome.error.message,
                    hint=outcome.error.hint
                    or f"{len(work.ledger.finished)} judgments are safe: run the same command "
                    "again to continue.",
                )
            stop_without_judge(watched.useless(), len(work.ledger.finished))
    facts = work.facts(
        judged=found.judged,
        failed=len(found.failures.keys() - work.ledger.finished),
        seconds=seconds,
        # An earlier command paid for part of it.
        bill=not jobs.resumed,
    )
    return replace(facts, ray=outcome.facts(place.cluster))
