"""grade, on a Ray cluster: the tasks go out, judgments come back, each of them once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from rocketeval.config import RunConfig
from rocketeval.distributed.cluster import check_address, connected, need_ray
from rocketeval.distributed.collect import Collected, collect
from rocketeval.distributed.counting import Progress
from rocketeval.distributed.judging import Terms
from rocketeval.distributed.ray_run import Cluster, Flow, cpus_needed
from rocketeval.distributed.staging import Job, Staging, open_staging
from rocketeval.distributed.task_rows import write_tasks
from rocketeval.engines.base import ENGINES, create_engine
from rocketeval.errors import ConfigError, EngineError
from rocketeval.grading.grade import USELESS_AFTER, USELESS_QUERIES, Grading
from rocketeval.grading.judge import fingerprint
from rocketeval.grading.methods.table import create_method
from rocketeval.hashing import combine
from rocketeval.observing import Observer, Pulse
from rocketeval.records import Failure, Usage
from rocketeval.stages.grading_work import GradingWork, open_grading, stop_without_judge
from rocketeval.store.run import RunStore


def check_place(config: RunConfig, *, own_engine: bool) -> None:
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
) -> dict[str, Any]:
    """Append the missing judgments to the ledger; return counts and cost of this grading."""
    place = config.distributed
    assert place.cluster is not None
    method = create_method(config)
    staging = open_staging(place.staging, store.path, store.manifest()["run_id"])
    observer.watched(lambda: Pulse(waiting=f"waiting for Ray ({place.cluster})"))
    with connected(place.cluster, cpus_needed(place)) as ray:
        cluster = Cluster(ray, place)
        identity = await cluster.identify(config.judge, stop)
        judge = fingerprint(identity, method)
        with open_grading(store, config, method, judge, observer) as work:
            terms = Terms(config.judge, method.asking, identity, judge.digest.hex(), place.replicas)
            started = time.monotonic()
            watched = Watched(observer, proven=bool(work.ledger.finished))
            outcome = await _graded(work, cluster, Flow(staging, terms, place), watched, stop)
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
        failed=len(outcome.found.failures),
        spent=watched.spent,
        seconds=seconds,
    )
    return {**facts, "ray": {"on": place.cluster, **outcome.facts()}}


class Watched:
    """Tells an observer how far a cluster is."""

    def __init__(self, observer: Observer, *, proven: bool) -> None:
        self._observer = observer
        self._proven = proven
        self._judged = 0
        self._missing: dict[Any, int] = {}
        self._retries = 0
        self._failures: list[Failure] = []
        self._useless = False
        self._shortage = ""
        self.spent = Usage()

    def wait_for(self, shortage: str) -> None:
        """Say what the cluster lacks, until the first task is asked all the same."""
        self._shortage = shortage
        self._observer.watched(self._pulse)

    def _pulse(self) -> Pulse:
        lacking = f"waiting for {self._shortage}" if self._shortage else ""
        return Pulse(retries=self._retries, waiting=lacking)

    def __call__(self, progress: Progress) -> bool:
        """Tell what is new; return whether it is worth going on."""
        if progress.asked:
            self._shortage = ""
        if progress.judged > self._judged:
            fresh = {
                status: count - self._missing.get(status, 0)
                for status, count in progress.missing.items()
            }
            self._observer.counted(progress.judged - self._judged, fresh)
            self._judged, self._missing = progress.judged, dict(progress.missing)
        self.spent, self._retries = progress.usage, progress.retries
        self._observer.spent(progress.usage)
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


class Outcome:
    """What came back from a cluster."""

    def __init__(self, found: Collected, asked: int, error: EngineError | None) -> None:
        self.found = found
        self.asked = asked
        self.error = error

    def facts(self) -> dict[str, int]:
        """Return counts for the manifest."""
        return {
            "asked": self.asked,
            "asked_again": max(0, self.asked - self.found.rows),
            "duplicates": self.found.duplicates,
            "torn": self.found.torn,
        }


async def _graded(
    work: GradingWork, cluster: Cluster, flow: Flow, watched: Watched, stop: asyncio.Event
) -> Outcome:
    """Run the job that is left, and take in what it brings; a job that was killed is resumed."""
    staging = flow.staging
    earlier = _prepare(work, staging)
    job = staging.job()
    if job is None:
        return Outcome(earlier, 0, None)
    error: EngineError | None = None
    watched.wait_for(cluster.shortage())
    try:
        await cluster.run(flow, stop, watched)
    except EngineError as given_up:
        error = given_up
    found = collect(staging, job.rows, work.ledger, work.wanted)
    asked = staging.asked()
    staging.clear()
    found.judged += earlier.judged
    found.failures = {**earlier.failures, **found.failures}
    return Outcome(found, asked, error)


def _prepare(work: GradingWork, staging: Staging) -> Collected:
    """Lay out the tasks that are left, unless a killed job did; return what another job left."""
    job = staging.job()
    if job is not None and job.made_for == _stands_for(work):
        work.announce(staging.written())
        return Collected()
    left = Collected()
    if job is not None:
        left = collect(staging, job.rows, work.ledger, work.wanted)
    staging.clear()
    made_for = _stands_for(work)
    rows = write_tasks(work.tasks(), work.known(), staging.filesystem, staging.tasks)
    if rows:
        staging.begin(Job(made_for, rows))
    return left


def _stands_for(work: GradingWork) -> str:
    """Return what tells a job from one with another judge or other tasks."""
    return combine(work.judge.digest, *sorted(work.unfinished())).hex()
