"""One amount of work on a cluster: replicas, hours, money, bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rocketeval.capacity.assume import Assumptions
from rocketeval.capacity.losses import Rework, simulate
from rocketeval.capacity.storage import Storage, store

MOST_STEPS = 30
"""When replicas are added until the deadline holds in the simulation, too."""


@dataclass(frozen=True, slots=True)
class Size:
    """What so many answers take."""

    answers: float
    responses: float
    replicas: int
    """That have work: a batch stays on one of them."""
    idle: int
    """Given beyond these: in no other figure."""
    scatter: float
    """How many times the tokens of the best routing are computed."""
    hours: float
    """If no replica is lost."""
    gpu_hours: float
    money: float
    rework: Rework
    """How long it takes with losses, simulated."""
    extra_hours: float
    """Because of losses: on average, and what 95 % of the simulated runs do not exceed."""
    extra_hours_95: float
    extra_money: float
    extra_money_95: float
    deadline_met: bool | None
    """In 95 % of the simulated runs; None without a deadline."""
    client_cores: float
    """To keep the replicas that have work busy."""
    storage: Storage


def size_for(
    assumed: Assumptions,
    answers: float,
    *,
    responses: float | None = None,
    replicas: int | None = None,
    deadline: float | None = None,
    seed: int = 0,
) -> Size:
    """Return what `answers` take with so many replicas, or with as many as the deadline needs."""
    asked = answers / assumed.items.value if responses is None else responses
    # A batch stays on one replica: one more than there are batches would do nothing.
    most = max(1, math.ceil(asked / assumed.batch.value))
    if replicas is None:
        needed = 1 if deadline is None else least_replicas(assumed, answers, deadline, most)
        chosen, rework = _enough(assumed, answers, needed, most, deadline, seed)
    else:
        chosen = min(replicas, most)
        rework = _rework(assumed, answers, chosen, seed)
    hours = assumed.replica_hours(answers, chosen) / chosen
    hourly = chosen * assumed.gpus.value * assumed.gpu_hour.value
    extra, extra_95 = _more(rework.hours, hours), _more(rework.hours_95, hours)
    return Size(
        answers=answers,
        responses=asked,
        replicas=chosen,
        idle=0 if replicas is None else replicas - chosen,
        scatter=assumed.scatter(chosen),
        hours=hours,
        gpu_hours=hours * chosen * assumed.gpus.value,
        money=hours * hourly,
        rework=rework,
        extra_hours=extra,
        extra_hours_95=extra_95,
        extra_money=extra * hourly,
        extra_money_95=extra_95 * hourly,
        deadline_met=None if deadline is None else rework.hours_95 <= deadline,
        client_cores=answers / (hours * 3600.0) * assumed.client_us / 1e6 if hours else 0.0,
        storage=store(
            asked,
            per_task=assumed.task_bytes.value,
            per_judgment=assumed.ledger_bytes.value,
            per_score=assumed.score_bytes.value,
            batch=assumed.batch.value,
        ),
    )


def _more(longer: float, hours: float) -> float:
    """Return the difference, without the dust of a mean over equal numbers."""
    return longer - hours if longer > hours * (1.0 + 1e-9) else 0.0


def least_replicas(assumed: Assumptions, answers: float, deadline: float, most: int) -> int:
    """Return the fewest replicas that are done in time if none is lost; `most` if none are."""
    low, high = 1, most
    while low < high:
        middle = (low + high) // 2
        # More replicas are never slower, also when they scatter the items more.
        if assumed.replica_hours(answers, middle) / middle <= deadline:
            high = middle
        else:
            low = middle + 1
    return low


def _enough(
    assumed: Assumptions, answers: float, start: int, most: int, deadline: float | None, seed: int
) -> tuple[int, Rework]:
    """Return `start` replicas, or more until the deadline holds although some are lost.

    They grow by how late the last fleet was: about the fewest, not the very fewest.
    """
    replicas, rework = start, _rework(assumed, answers, start, seed)
    for _ in range(MOST_STEPS):
        if deadline is None or rework.hours_95 <= deadline or replicas >= most:
            break
        grown = math.ceil(replicas * rework.hours_95 / deadline)
        replicas = min(most, max(replicas + 1, grown))
        rework = _rework(assumed, answers, replicas, seed)
    return replicas, rework


def _rework(assumed: Assumptions, answers: float, replicas: int, seed: int) -> Rework:
    work = assumed.replica_hours(answers, replicas)
    return simulate(work, replicas, assumed.lost(replicas), seed)
