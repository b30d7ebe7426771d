"""Jobs on a cluster: the tasks go out, and what comes back is taken into the ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from itertools import chain

from rocketeval.config import DistributedConfig
from rocketeval.distributed.collect import Collected, collect
from rocketeval.distributed.ray_run import Cluster, Flow
from rocketeval.distributed.replica import Terms
from rocketeval.distributed.staging import Job, Staging
from rocketeval.distributed.task_rows import write_tasks
from rocketeval.errors import ClusterError, EngineError, RunMismatch
from rocketeval.hashing import combine_all
from rocketeval.records import JudgeFingerprint
from rocketeval.stages.grading_work import GradingWork
from rocketeval.stages.ray_watch import Watched

MOST_JOBS = 3
"""After so many, what is still missing is told as unfinished."""
DAMAGED = 0.1
"""More of a job than this does not get lost by accident,"""
SMALL = 8
"""unless it is only so many batches."""


@dataclass
class Outcome:
    """What came back from a cluster."""

    found: Collected = field(default_factory=Collected)
    asked: int = 0
    rows: int = 0
    """Tasks of the last job."""
    missing: int = 0
    """Of those, the ones of which nothing came back."""
    error: EngineError | None = None

    def add(self, job: Outcome) -> None:
        """Add what another job brought."""
        self.found.add(job.found)
        self.asked += job.asked
        self.rows, self.missing, self.error = job.rows, job.missing, job.error

    def facts(self) -> dict[str, int]:
        """Return counts for the manifest."""
        return {
            "asked": self.asked,
            "asked_again": max(0, self.asked - self.found.rows),
            "duplicates": self.found.duplicates,
            "torn": self.found.torn,
        }


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
class Jobs:
    """All that grading a run on a cluster takes."""

    work: GradingWork
    cluster: Cluster
    staging: Staging
    terms: Terms
    settings: DistributedConfig
    watched: Watched
    stop: asyncio.Event
    resumed: bool = False
    """Whether a job of an earlier command was gone on with."""

    async def run(self) -> Outcome:
        """Run jobs until every task is judged or failed.

        One is enough, unless its files were damaged: where a name cannot be changed in one step, as
        in an object store, a writer that is killed can leave ids in Ray's checkpoint without their
        rows.
        """
        outcome = Outcome()
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

    async def _run_one(self, failed: Collection[bytes]) -> Outcome:
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
        outcome.add(Outcome(found, self.staging.asked(), job.rows, job.rows - found.rows, error))
        await asyncio.to_thread(self.staging.clear)
        return outcome

    def _flow(self, job: Job) -> Flow:
        terms = replace(self.terms, folder=self.staging.folder(job.id))
        return Flow(self.staging, job, terms, self.settings)

    def _collect(self, job: Job) -> Collected:
        return collect(self.staging.folder(job.id), job.rows, self.work.ledger)

    def _prepare(self, failed: Collection[bytes]) -> Outcome:
        """Lay out the tasks that are left, unless a killed job did; return what another job left.

        Those that `failed` in this command are not tried twice.
        """
        job = self.staging.job()
        if job is not None and job.made_for == self._stands_for():
            waiting = self.staging.folder(job.id).written()
            self.resumed = waiting > 0
            self.work.announce(waiting)
            return Outcome()
        left = Outcome()
        if job is not None:
            left = Outcome(self._collect(job), self.staging.asked())
            self.resumed = left.found.judged > 0
            self.work.announce(left.found.judged)
        self.staging.clear()
        made_for = self._stands_for()
        job_id, folder = self.staging.new_folder()
        tasks, known = self.work.tasks(failed), self.work.known()
        rows = write_tasks(tasks, known, folder.filesystem, folder.tasks)
        if rows:
            self.staging.begin(Job(made_for, self.terms.digest, rows, job_id))
        return left

    def _stands_for(self) -> str:
        """Return what tells a job from one with another judge or other tasks."""
        finished = self.work.ledger.finished
        left = (key for key in self.work.wanted if key not in finished)
        return combine_all(chain([self.work.judge.digest], left)).hex()
