"""grade, on a Ray cluster: tasks go out, judgments come back into the ledger, each once."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

from rocketeval.config import DistributedConfig, RunConfig
from rocketeval.distributed.cluster import check_address, connected, need_ray, starts_here
from rocketeval.distributed.driver import Cluster, DatasetPlan, cpus_needed
from rocketeval.distributed.staging import (
    Collected,
    StagedJob,
    Staging,
    collect,
    open_staging,
    write_tasks,
)
from rocketeval.distributed.worker import ClusterProgress, WorkerSettings
from rocketeval.engines.base import ENGINES, create_engine
from rocketeval.errors import ClusterError, ConfigError, EngineError, RunMismatch
from rocketeval.grading.loop import USELESS_AFTER, USELESS_QUERIES, Grading, fingerprint
from rocketeval.grading.methods import create_method
from rocketeval.grading.work import GradingWork, open_grading, stop_without_judge
from rocketeval.hashing import combine_all
from rocketeval.observer import EngineStatus, Observer
from rocketeval.records import Failure, JudgeFingerprint, Usage
from rocketeval.store.manifest import GradeFacts, RayFacts
from rocketeval.store.run import RunStore


class ClusterWatch:
    """Tells an observer how far a cluster is."""

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
        """Hear of a job from its beginning; `lacking` tells what the cluster waits for."""
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
        """Tell what is new; return whether it is worth going on."""
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
        """Return how grading ended, as far as the judge is to blame."""
        return Grading(failures=self._failures, useless=self._useless)


MOST_JOBS = 3
"""After so many, what is still missing is told as unfinished."""
DAMAGED = 0.1
"""More of a job than this does not get lost by accident,"""
SMALL = 8
"""unless it is only so many batches."""


@dataclass
class ClusterOutcome:
    """What came back from a cluster."""

    found: Collected = field(default_factory=Collected)
    asked: int = 0
    rows: int = 0
    """Tasks of the last job."""
    missing: int = 0
    """Of those, the ones of which nothing came back."""
    error: EngineError | None = None

    def add(self, job: ClusterOutcome) -> None:
        """Add what another job brought."""
        self.found.add(job.found)
        self.asked += job.asked
        self.rows, self.missing, self.error = job.rows, job.missing, job.error

    def facts(self, cluster: str) -> RayFacts:
        """Return counts for the manifest."""
        again = max(0, self.asked - self.found.rows)
        return RayFacts(cluster, self.asked, again, self.found.duplicates, self.found.torn)


def refuse_another_judge(staging: Staging, judge: JudgeFingerprint) -> None:
    """Raise RunMismatch if another judge's job was killed and its judgments wait to be taken in."""
    job = staging.job()
    if job is None or job.judge == judge.digest.hex():
        return
    waiting = staging.folder(job.id).written()
    if waiting:
        raise RunMismatch(
            f"{waiting} judgments of another judge wait in {staging.root}: its job was killed.",
            hint="Run the command again that was killed to take them in, or give this run another "
            "`name`.",
        )


@dataclass
class ClusterJobs:
    """All that grading a run on a cluster takes."""

    work: GradingWork
    cluster: Cluster
    staging: Staging
    terms: WorkerSettings
    settings: DistributedConfig
    watched: ClusterWatch
    stop: asyncio.Event
    resumed: bool = False
    """Whether a job of an earlier command was gone on with."""

    async def run(self) -> ClusterOutcome:
        """Run jobs until every task is judged or failed.

        One is enough, unless its files were damaged: where a name cannot be changed in one step, as
        in an object store, a writer that is killed can leave ids in Ray's checkpoint without their
        rows.
        """
        outcome = ClusterOutcome()
        for _ in range(MOST_JOBS):
            outcome.add(await self._run_one(outcome.found.failures))
            if not outcome.missing or outcome.error or self._ends_early():
                break
            if outcome.missing > max(DAMAGED * outcome.rows, SMALL * self.settings.batch):
                raise ClusterError(
                    f"Ray says that all is written, but of {outcome.rows} rows "
                    f"{outcome.missing} are not in {self.staging.root}.",
                    hint="`distributed.staging` must be a folder that all machines share, or a URI "
                    "in an object store. What was found is in the ledger.",
                )
        return outcome

    def _ends_early(self) -> bool:
        return self.stop.is_set() or self.watched.useless().useless

    async def _run_one(self, failed: Collection[bytes]) -> ClusterOutcome:
        """Run the job that is left, or was killed, and take in what it brings."""
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
        """Lay out the tasks that are left, unless a killed job did; return what another job left.

        Those that `failed` in this command are not tried twice.
        """
        job = self.staging.job()
        if job is not None and job.made_for == self._stands_for():
            waiting = self.staging.folder(job.id).written()
            self.resumed = waiting > 0
            self.work.announce(waiting)
            return ClusterOutcome()
        left = ClusterOutcome()
        if job is not None:
            left = ClusterOutcome(self._collect(job), self.staging.asked())
            self.resumed = left.found.judged > 0
            self.work.announce(left.found.judged)
        self.staging.clear()
        made_for = self._stands_for()
        job_id, folder = self.staging.new_folder()
        tasks, known = self.work.tasks(failed), self.work.known()
        rows = write_tasks(tasks, known, folder.filesystem, folder.tasks)
        if rows:
            self.staging.begin(StagedJob(made_for, self.terms.digest, rows, job_id))
        return left

    def _stands_for(self) -> str:
        """Return what tells a job from one with another judge or other tasks."""
        finished = self.work.ledger.finished
        left = (key for key in self.work.wanted if key not in finished)
        return combine_all(chain([self.work.digest], left)).hex()


def check_cluster(config: RunConfig, *, own_engine: bool) -> None:
    """Raise ConfigError for what cannot be done on a cluster, before anything is paid for."""
    need_ray()
    assert config.distributed.cluster is not None
    check_address(config.distributed.cluster)
    local = "Judge on this machine (--on local), or leave it out."
    if own_engine:
        raise ConfigError("An engine made in Python cannot be sent to a cluster.", hint=local)
    if config.max_cost is not None:
        raise ConfigError(
            "max_cost cannot be kept on Ray: many machines spend at once.",
            hint=f"{local} `rocketeval plan` says what a run costs.",
        )
    if _is_queue(config):
        raise ConfigError(
            f"The engine {config.judge.engine!r} is a queue at its provider: there is nothing to "
            "spread over machines.",
            hint="Use it with --on local.",
        )


def _is_queue(config: RunConfig) -> bool:
    """Whether the judge's work outlives the process that asks for it."""
    durable = getattr(ENGINES.get(config.judge.engine), "durable", None)
    if isinstance(durable, bool):
        return durable
    # Only an engine itself knows, and it is made without contacting anyone.
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
            outcome = await jobs.run()
            seconds = time.monotonic() - started
            work.keep_failures(outcome.found.failures.values())
    if outcome.error is not None:
        raise type(outcome.error)(
            outcome.error.message,
            hint=outcome.error.hint
            or f"{len(work.ledger.finished)} judgments are safe: run the same command again to "
            "go on.",
        )
    stop_without_judge(watched.useless(), len(work.ledger.finished))
    facts = work.facts(
        judged=outcome.found.judged,
        failed=len(outcome.found.failures.keys() - work.ledger.finished),
        spent=watched.spent,
        seconds=seconds,
        # An earlier command paid for a part.
        bill=not jobs.resumed,
    )
    return replace(facts, ray=outcome.facts(place.cluster))
