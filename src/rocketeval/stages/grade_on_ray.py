"""grade, on a Ray cluster: the tasks go out, judgments come back, each of them once."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from rocketeval.config import RunConfig
from rocketeval.distributed.cluster import check_address, connected, need_ray, starts_here
from rocketeval.distributed.ray_run import Cluster, cpus_needed
from rocketeval.distributed.replica import Terms
from rocketeval.distributed.staging import open_staging
from rocketeval.engines.base import ENGINES, create_engine
from rocketeval.errors import ConfigError
from rocketeval.grading.judge import fingerprint
from rocketeval.grading.methods.table import create_method
from rocketeval.observing import Observer, Pulse
from rocketeval.stages.grading_work import open_grading, stop_without_judge
from rocketeval.stages.ray_jobs import Jobs, refuse_another_judge
from rocketeval.stages.ray_watch import Watched
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
    own = starts_here(place.cluster)
    with connected(place.cluster, cpus_needed(place)) as ray:
        cluster = Cluster(ray, place, own=own)
        observer.watched(
            lambda: Pulse(waiting=f"waiting for {cluster.lacking or 'the first worker'}")
        )
        identity = await cluster.identify(config.judge, stop)
        judge = fingerprint(identity, method)
        refuse_another_judge(staging, judge)
        with open_grading(store, config, method, judge, observer) as work:
            terms = Terms(config.judge, method.asking, identity, judge.digest.hex(), place.replicas)
            started = time.monotonic()
            watched = Watched(observer, proven=bool(work.ledger.finished))
            jobs = Jobs(work, cluster, staging, terms, place, watched, stop)
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
    return {**facts, "ray": {"on": place.cluster, **outcome.facts()}}
