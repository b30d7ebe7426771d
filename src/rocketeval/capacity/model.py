"""The capacity model: replicas, time and cost of a run on a cluster, without network access.

Every number comes from the command line, else from measurements of the run, else from a stated
default.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from rocketeval.errors import ConfigError

Source = Literal["given", "measured", "estimated", "paper", "measured elsewhere", "assumed"]
"""Given: on the command line or in the config. Measured: in this run or its files. Estimated: from
this run, by a rule of thumb. Paper: published for RocketEval. Measured elsewhere: by a script of
this repository on another machine. Assumed: not measured."""
Routing = Literal["together", "random", "round-robin"]
"""Together: one request per response, or a session header that the router honors. Random: each item
goes to any replica, as with least-loaded routers that ignore the prefix. Round-robin: in turn."""
ROUTINGS: tuple[Routing, ...] = get_args(Routing)
Floats = npt.NDArray[np.float64]

TRIALS, FEWEST_TRIALS, MOST_DRAWS, ALL_DRAWS = 200, 20, 20_000, 10_000_000
"""Maximum and minimum number of simulated runs; maximum draws of replica lifetimes, per run and in
total."""
LEAST_USEFUL = 0.05
"""Minimum share of useful time; below it, losses dominate."""
MOST_STEPS = 30
"""Maximum number of times that replicas are added to meet the deadline."""
TASKS_PER_FILE, JUDGMENTS_PER_PART, ROWS_PER_BLOCK = 20_000, 50_000, 4096
"""Rows per object; a slow judge's blocks have fewer, because they are written by time."""
BLOCK_SECONDS = 2.0
"""Time after which a block is written, however few rows it has."""
ANSWERS, FLEETS, DAY = tuple(10**power for power in range(6, 11)), (1, 2, 4, 8, 32, 256), 24.0
"""Amounts of work, numbers of replicas in the scatter table, and the default deadline in hours."""
LEDGER_BYTES = (53.6, 48.3)
"""Bytes per judgment and per answer: perf/recorded/bytes_per_judgment.txt, all numbers distinct."""
WEIGHED = "perf/bytes_per_judgment.py, scripted engine"
CLIENT = "perf/client_cost.py: 314 us per answer alone, 78 with 8 answers per request"


@dataclass(frozen=True, slots=True)
class CapacityFigure:
    """One assumption of a plan, with its source and a note."""

    value: float
    source: Source
    note: str = ""


@dataclass(frozen=True, slots=True)
class CapacityOptions:
    """Options of the command line; None if absent."""

    rate: float | None = None
    hours: float | None = None
    replicas: int | None = None
    gpu_hour: float | None = None
    gpus: int | None = None
    routing: Routing | None = None
    losses: float | None = None
    restart_minutes: float | None = None
    batch: int | None = None
    checkpoint_seconds: float | None = None
    seed: int = 0


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """Measurements of the run."""

    answers: int = 0
    """Items left to ask, about `responses`."""
    responses: int = 0
    waiting: int = 0
    """Responses whose checklist is not written yet."""
    without_checklist: int = 0
    """Responses that will have no checklist and are not judged."""
    figures: Mapping[str, CapacityFigure] = field(default_factory=dict)
    """Measured values of `Assumptions`, by name."""
    together: bool = True
    """True if one request, or a header, keeps the items of a response on one replica."""
    routing_from: Source = "assumed"
    routed_by: str = "it is not known how the judge is asked"
    """Reason for `together`."""


@dataclass(frozen=True, slots=True)
class ReplicaLosses:
    """Loss rate of replicas, and the work lost with each; all times in hours."""

    per_hour: float
    restart: float
    in_flight: float
    """Work of the replica's batches, all of which is resent."""
    checkpoint: float
    """Maximum time between checkpoints; work since the last one is resent."""

    @property
    def useful(self) -> float:
        """Share of paid time that becomes finished work.

        Of an exponential lifetime X, min(X, batch + U * checkpoint) is lost, followed by a restart.
        """
        batch, since = self.per_hour * self.in_flight, self.per_hour * self.checkpoint
        kept = math.exp(-batch) * (-math.expm1(-since) / since if since else 1.0)
        return kept / (1.0 + self.per_hour * self.restart)


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """Every number of the model with its source; defaults apply if nothing else is known."""

    rate: CapacityFigure = CapacityFigure(
        1024 * 8 / 165,
        "paper",
        "Qwen2.5-1.5B on an A5000 (1,024 responses in 165 s, assuming 8 items each), not your "
        "judge; see --rate",
    )
    """Answers per second of one replica that gets all items of a response."""
    items: CapacityFigure = CapacityFigure(8, "paper", "items per checklist")
    prefix_tokens: CapacityFigure = CapacityFigure(
        1000, "assumed", "instruction, query and response"
    )
    item_tokens: CapacityFigure = CapacityFigure(60, "assumed", "an item with its instruction")
    calls: CapacityFigure = CapacityFigure(
        1.0, "assumed", "one item per request: requests are not known yet"
    )
    """Requests per answer."""
    gpus: CapacityFigure = CapacityFigure(1, "assumed", "one GPU holds the judge")
    gpu_hour: CapacityFigure = CapacityFigure(0.36, "paper", "USD for an A5000; see --gpu-hour")
    losses: CapacityFigure = CapacityFigure(
        0.05, "assumed", "a replica is lost every 20 hours; --losses 0 if never"
    )
    """Per replica and hour."""
    restart_minutes: CapacityFigure = CapacityFigure(
        5.0, "assumed", "from a loss to a loaded replacement; see --restart-minutes"
    )
    batch: CapacityFigure = CapacityFigure(
        64, "assumed", "a lost replica resends at most its batches; see --batch"
    )
    """Responses per batch; a replica has `in_hand` batches."""
    in_hand: CapacityFigure = CapacityFigure(2, "assumed", "not finished yet")
    checkpoint_seconds: CapacityFigure = CapacityFigure(
        10.0, "assumed", "longest time from finished to saved; see --checkpoint-seconds"
    )
    task_bytes: CapacityFigure = CapacityFigure(0.0, "estimated", "4 bytes per token, uncompressed")
    """Bytes per response, like the next two; this and the next are derived from the tokens."""
    ledger_bytes: CapacityFigure = CapacityFigure(0.0, "measured elsewhere", WEIGHED)
    score_bytes: CapacityFigure = CapacityFigure(28.7, "measured elsewhere", WEIGHED)
    call_us: CapacityFigure = CapacityFigure(270.0, "measured elsewhere", CLIENT)
    """Client CPU time per request and per answer, and Ray's per response."""
    answer_us: CapacityFigure = CapacityFigure(44.0, "measured elsewhere", CLIENT)
    row_us: CapacityFigure = CapacityFigure(
        130.0, "assumed", "Ray Data with idle rows; no script yet"
    )
    routing: Routing
    routing_from: Source
    routed_by: str

    def scatter(self, replicas: int, routing: Routing | None = None) -> float:
        """Return the computed tokens relative to the best routing."""
        lengths = self.items.value, self.prefix_tokens.value, self.item_tokens.value
        return scatter_factor(routing or self.routing, *lengths, replicas)

    def replica_hours(self, answers: float, replicas: int) -> float:
        """Return the work of `answers` on this many replicas, without losses."""
        return answers / self.rate.value / 3600.0 * self.scatter(replicas)

    def lost(self, replicas: int) -> ReplicaLosses:
        """Return the losses of replicas, in hours."""
        answers = self.batch.value * self.items.value
        return ReplicaLosses(
            per_hour=self.losses.value,
            restart=self.restart_minutes.value / 60.0,
            in_flight=self.replica_hours(self.in_hand.value * answers, replicas),
            checkpoint=self.checkpoint_seconds.value / 3600.0,
        )

    @property
    def client_us(self) -> float:
        """Client CPU time per answer, in microseconds."""
        row = self.row_us.value / self.items.value
        return self.answer_us.value + self.calls.value * self.call_us.value + row


def assume(given: CapacityOptions, measured: MeasuredRun) -> Assumptions:
    """Return all assumptions: given values override measured ones, which override defaults."""
    options = ((name, getattr(given, name)) for name in CapacityOptions.__slots__)
    chosen = {
        name: CapacityFigure(value, "given")
        for name, value in options
        if value is not None and isinstance(getattr(Assumptions, name, None), CapacityFigure)
    }
    figures = {**measured.figures, **chosen}
    found = Assumptions(
        **figures,
        routing=given.routing or ("together" if measured.together else "random"),
        routing_from="given" if given.routing else measured.routing_from,
        routed_by="set by --routing" if given.routing else measured.routed_by,
    )
    items, (each, answer) = found.items.value, LEDGER_BYTES
    tokens = found.prefix_tokens.value + items * found.item_tokens.value
    estimates = {"task_bytes": 4.0 * tokens, "ledger_bytes": each + answer * items}
    left = {
        name: replace(getattr(found, name), value=value)
        for name, value in estimates.items()
        if name not in figures
    }
    return replace(found, **left)


def published_rate(why: str) -> CapacityFigure:
    """Return the published rate, with the reason why the run's rate is not used."""
    return replace(Assumptions.rate, note=f"{Assumptions.rate.note}; {why}")


def replicas_touched(routing: Routing, items: float, replicas: int) -> float:
    """Return the mean number of replicas that compute the prefix of one response."""
    if routing == "together" or items <= 1:
        return 1.0
    if routing == "round-robin":
        return float(min(items, replicas))
    return float(replicas * (1.0 - (1.0 - 1.0 / replicas) ** items))


def scatter_factor(
    routing: Routing, items: float, prefix_tokens: float, item_tokens: float, replicas: int
) -> float:
    """Return the computed tokens relative to the best routing.

    >>> round(scatter_factor("random", 8, prefix_tokens=1000, item_tokens=60, replicas=4), 1)
    2.8
    """
    own = items * item_tokens
    spread = replicas_touched(routing, items, replicas) * prefix_tokens
    return (spread + own) / (prefix_tokens + own) if prefix_tokens + own else 1.0


@dataclass(frozen=True, slots=True)
class Rework:
    """Time of a fleet with losses, in hours, over simulated runs."""

    hours: float
    """Mean, with its `standard_error`; 95% of the runs took at most `hours_95`."""
    hours_95: float
    standard_error: float
    losses: float
    """Mean number of replicas lost per run."""
    resent_share: float
    trials: int
    replicas_simulated: int
    """Size of the simulated part of the fleet; a part overstates the spread."""


def expected_hours(work: float, replicas: int, losses: ReplicaLosses) -> float:
    """Return the expected hours of `work` replica-hours, in closed form."""
    return work / (replicas * losses.useful)


def simulate(work: float, replicas: int, losses: ReplicaLosses, seed: int) -> Rework:
    """Simulate `work` replica-hours on `replicas` with losses."""
    if losses.useful < LEAST_USEFUL:
        raise ConfigError(
            f"Replicas are lost so often that only {losses.useful:.1%} of their time is useful.",
            hint="Check the losses per hour, the restart time, the batch and the checkpoint.",
        )
    if not losses.per_hour or not work:
        return Rework(work / replicas, work / replicas, 0.0, 0.0, 0.0, 0, replicas)
    lives = _lives(losses.per_hour * expected_hours(work, replicas, losses))
    fleet = max(1, min(replicas, MOST_DRAWS // lives))
    trials = max(FEWEST_TRIALS, min(TRIALS, ALL_DRAWS // (fleet * lives)))
    share = work * fleet / replicas
    rng = np.random.default_rng(seed)
    runs = np.array([_one_run(share, fleet, lives, losses, rng) for _ in range(trials)])
    hours = runs[:, 0]
    return Rework(
        hours=float(hours.mean()),
        hours_95=float(np.quantile(hours, 0.95)),
        standard_error=float(hours.std(ddof=1) / math.sqrt(trials)),
        losses=float(runs[:, 1].mean() * replicas / fleet),
        resent_share=float(runs[:, 2].mean() / share),
        trials=trials,
        replicas_simulated=fleet,
    )


def _lives(losses: float) -> int:
    """Return the number of lifetimes per replica to draw at a time."""
    return math.ceil(losses + 4.0 * math.sqrt(losses)) + 3


def _one_run(
    work: float, replicas: int, lives: int, losses: ReplicaLosses, rng: np.random.Generator
) -> tuple[float, int, float]:
    """Return hours, losses and lost replica-hours of one simulated run."""
    up: Floats = np.empty((replicas, 0))
    lost: Floats = np.empty((replicas, 0))
    found = None
    while found is None:
        # Only add lifetimes: redrawing a run would favor short ones.
        more = rng.exponential(1.0 / losses.per_hour, (replicas, lives))
        risk = losses.in_flight + losses.checkpoint * rng.random((replicas, lives))
        up, lost = np.hstack([up, more]), np.hstack([lost, np.minimum(risk, more)])
        found = _finish(work, up, lost, losses.restart)
    return found


def _finish(
    work: float, up: Floats, lost: Floats, restart: float
) -> tuple[float, int, float] | None:
    """Return the result of `_one_run`; None if the lifetimes end before the work."""
    replicas, lives = up.shape
    deaths = np.cumsum(up, axis=1) + restart * np.arange(lives)
    births = deaths[:, :-1] + restart
    times = np.concatenate([[0.0], deaths.ravel(), births.ravel()])
    # Changes at each time: the number of working replicas, and the lost work.
    slopes = np.repeat([float(replicas), -1.0, 1.0], [1, deaths.size, births.size])
    drops = np.concatenate([[0.0], lost.ravel(), np.zeros(births.size)])
    known = times <= deaths[:, -1].min()
    order = np.argsort(times[known], kind="stable")
    times, slopes, drops = (column[known][order] for column in (times, slopes, drops))
    working = np.cumsum(slopes)
    gained = np.cumsum(working[:-1] * np.diff(times))
    taken = np.cumsum(drops)
    # Work finished just before each time except the first.
    done = np.flatnonzero(gained - taken[:-1] >= work)
    if not done.size:
        return None
    last = int(done[0])
    finished = (gained[last - 1] if last else 0.0) - taken[last]
    hours = times[last] + (work - finished) / working[last]
    return float(hours), int(np.count_nonzero(slopes[: last + 1] < 0)), float(taken[last])


@dataclass(frozen=True, slots=True)
class Storage:
    """Bytes on disk, and objects written if an object store holds everything."""

    task_bytes: float
    ledger_bytes: float
    score_bytes: float
    disk_bytes: float
    """Total, with the ledger twice: blocks of results are merged later."""
    puts: int


def store(assumed: Assumptions, responses: float, hours: float) -> Storage:
    """Return the storage of a run of this many hours that saves block by block."""
    each = (assumed.task_bytes, assumed.ledger_bytes, assumed.score_bytes)
    tasks, ledger, scores = (responses * figure.value for figure in each)
    files = math.ceil(responses / TASKS_PER_FILE) + math.ceil(responses / JUDGMENTS_PER_PART)
    by_time = min(responses, hours * 3600.0 / BLOCK_SECONDS)
    blocks = math.ceil(max(responses / ROWS_PER_BLOCK, by_time))
    puts = blocks + files + bool(responses)
    return Storage(tasks, ledger, scores, tasks + 2 * ledger + scores, puts)


@dataclass(frozen=True, slots=True)
class Size:
    """The estimate for a number of answers."""

    answers: float
    responses: float
    replicas: int
    """Replicas with work; further ones are `idle` and not counted in other figures."""
    idle: int
    scatter: float
    hours: float
    """Hours, GPU hours and money without losses."""
    gpu_hours: float
    money: float
    rework: Rework
    extra_hours: float
    """Extra due to losses: mean, and 95% quantile of the simulated runs."""
    extra_hours_95: float
    extra_money: float
    extra_money_95: float
    deadline_met: bool | None
    """True if 95% of the simulated runs meet it; None without a deadline."""
    client_cores: float
    storage: Storage


def size_for(
    assumed: Assumptions, given: CapacityOptions, answers: float, responses: float | None = None
) -> Size:
    """Estimate `answers` with the given replicas, or as many as the deadline needs."""
    asked = answers / assumed.items.value if responses is None else responses
    # A batch stays on one replica, so more replicas than batches would be idle.
    most = max(1, math.ceil(asked / assumed.batch.value))
    deadline = given.hours
    chosen = 1 if deadline is None else least_replicas(assumed, answers, deadline, most)
    if given.replicas is not None:
        chosen = min(given.replicas, most)

    def rework_of(fleet: int) -> Rework:
        work = assumed.replica_hours(answers, fleet)
        return simulate(work, fleet, assumed.lost(fleet), given.seed)

    rework = rework_of(chosen)
    for _ in range(MOST_STEPS if given.replicas is None else 0):
        if deadline is None or rework.hours_95 <= deadline or chosen >= most:
            break
        # Grow in proportion to the delay: close to the minimum, not exactly.
        chosen = min(most, max(chosen + 1, math.ceil(chosen * rework.hours_95 / deadline)))
        rework = rework_of(chosen)
    hours = assumed.replica_hours(answers, chosen) / chosen
    hourly = chosen * assumed.gpus.value * assumed.gpu_hour.value
    # The mean of equal numbers may differ from them by rounding.
    extra, extra_95 = (
        longer - hours if longer > hours * (1.0 + 1e-9) else 0.0
        for longer in (rework.hours, rework.hours_95)
    )
    return Size(
        answers=answers,
        responses=asked,
        replicas=chosen,
        idle=0 if given.replicas is None else given.replicas - chosen,
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
        storage=store(assumed, asked, hours),
    )


def least_replicas(assumed: Assumptions, answers: float, deadline: float, most: int) -> int:
    """Return the fewest replicas that meet the deadline without losses; else `most`."""
    # More replicas are never slower, even if they scatter items more.
    return 1 + bisect_left(
        range(1, most),
        True,
        key=lambda fleet: assumed.replica_hours(answers, fleet) / fleet <= deadline,
    )


@dataclass(frozen=True, slots=True)
class Capacity:
    """The estimate for a run, and for larger ones of its kind, on a cluster."""

    deadline: float | None
    """Hours; None if the number of replicas is given."""
    deadline_given: bool
    this_run: Size | None
    """None if no known item is left to ask."""
    waiting: int
    without_checklist: int
    sizes: tuple[Size, ...]
    scatter: dict[Routing, dict[int, float]]
    """Computed tokens relative to the best routing, by routing and replicas."""
    seed: int
    assumed: Assumptions


def plan_capacity(given: CapacityOptions, measured: MeasuredRun) -> Capacity:
    """Estimate the run and round amounts of work."""
    assumed, deadline_given = assume(given, measured), given.hours is not None
    if given.hours is None and given.replicas is None:
        given = replace(given, hours=DAY)
    size = partial(size_for, assumed, given)
    return Capacity(
        deadline=given.hours,
        deadline_given=deadline_given,
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
