"""How large a cluster a run needs, how long it takes and what it costs: arithmetic, no network.

figure.py      a number and where it comes from
assume.py      every number the model rests on: given, else measured, else a stated default
scatter.py     what it costs when the items of a response are spread over replicas
losses.py      what replicas that are lost cost, simulated and in closed form
storage.py     bytes and object-store writes
size.py        one amount of work: replicas, hours, money, bytes
capacity.py    the run itself and round amounts of work, side by side


A plan for a cluster: the run itself, and round amounts of work, side by side.
One amount of work on a cluster: replicas, hours, money, bytes.
Bytes that a distributed run leaves, and the writes an object store sees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rocketeval.capacity.assume import (
    ROUTINGS,
    Assumptions,
    CapacityOptions,
    MeasuredRun,
    Rework,
    Routing,
    assume,
    simulate,
)

TASKS_PER_FILE = 20_000
JUDGMENTS_PER_PART = 50_000
PUTS_PER_BLOCK = 2
"""A batch of results is one object, and the checkpoint that names it another."""


@dataclass(frozen=True, slots=True)
class Storage:
    """What a run takes on a disk or in an object store."""

    task_bytes: float
    """Prompts, as Parquet: what workers read."""
    ledger_bytes: float
    """Judgments. The blocks that workers write hold the same again until they are collected."""
    score_bytes: float
    disk_bytes: float
    """All of these at once, blocks included."""
    puts: int
    """Objects written, if all of it lies in an object store."""


def store(
    responses: float, *, per_task: float, per_judgment: float, per_score: float, batch: float
) -> Storage:
    """Return the storage of a run whose batches become durable one by one."""
    tasks, ledger, scores = (responses * each for each in (per_task, per_judgment, per_score))
    files = math.ceil(responses / TASKS_PER_FILE) + math.ceil(responses / JUDGMENTS_PER_PART)
    return Storage(
        task_bytes=tasks,
        ledger_bytes=ledger,
        score_bytes=scores,
        disk_bytes=tasks + 2 * ledger + scores,
        puts=PUTS_PER_BLOCK * math.ceil(responses / batch) + files + bool(responses),
    )


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


ANSWERS = tuple(10**power for power in range(6, 11))
"""Round amounts of work: a million answers to ten thousand million."""
FLEETS = (1, 2, 4, 8, 32, 256)
"""For which the cost of scattering is shown."""
DAY = 24.0


@dataclass(frozen=True, slots=True)
class Capacity:
    """What a run, and more of its kind, take on a cluster."""

    deadline: float | None
    """Hours; None when the number of replicas is given."""
    deadline_given: bool
    this_run: Size | None
    """None when nothing is known to be left to ask."""
    waiting: int
    """Responses of the run that wait for a checklist, and are in no row."""
    without_checklist: int
    """Responses of the run that will have none, and are in no row."""
    sizes: tuple[Size, ...]
    scatter: dict[Routing, dict[int, float]]
    """How many times the tokens of the best routing are computed, by replicas."""
    seed: int
    assumed: Assumptions


def plan_capacity(given: CapacityOptions, measured: MeasuredRun) -> Capacity:
    """Return what the run and round amounts of work take."""
    assumed = assume(given, measured)
    deadline = given.hours
    if deadline is None and given.replicas is None:
        deadline = DAY

    def size(answers: float, responses: float | None = None) -> Size:
        return size_for(
            assumed,
            answers,
            responses=responses,
            replicas=given.replicas,
            deadline=deadline,
            seed=given.seed,
        )

    return Capacity(
        deadline=deadline,
        deadline_given=given.hours is not None,
        this_run=size(measured.answers, measured.responses) if measured.answers else None,
        waiting=measured.waiting,
        without_checklist=measured.without_checklist,
        sizes=tuple(map(size, ANSWERS)),
        scatter={
            routing: {fleet: assumed.scatter(fleet, routing) for fleet in FLEETS}
            for routing in ROUTINGS
        },
        seed=given.seed,
        assumed=assumed,
    )
