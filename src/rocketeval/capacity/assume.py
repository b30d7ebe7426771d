"""Every number that a plan for a cluster rests on: given, else measured, else a stated default.

A number that says where it comes from.
What it costs that replicas are lost and come back: rework, simulated and in closed form.
What it costs when the items of one response are spread over replicas.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from rocketeval.errors import ConfigError

Source = Literal["given", "measured", "estimated", "paper", "measured elsewhere", "assumed"]
"""Given: on the command line or in the config. Measured: in this run or of its own files.
Estimated: from this run, by a rule of thumb. Paper: as published for RocketEval. Measured
elsewhere: by a script of this repository on another machine. Assumed: nobody measured it."""


@dataclass(frozen=True, slots=True)
class CapacityFigure:
    """One number that a plan rests on."""

    value: float
    source: Source
    note: str = ""
    """How it was measured, or what it stands for."""


TRIALS = 200
"""Runs that are simulated, unless each of them is long."""
FEWEST_TRIALS = 20
MOST_DRAWS = 20_000
"""Lives of replicas drawn in one trial: of a larger fleet, a part with its part of the work."""
ALL_DRAWS = 10_000_000
LEAST_USEFUL = 0.05
"""Below this share of useful time, a plan would be about something else than judging."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ReplicaLosses:
    """How replicas are lost; all times in hours."""

    per_hour: float
    """Losses of one replica per hour that it is up."""
    restart: float
    """From a loss until a replica works in its place."""
    in_flight: float
    """Work of the batches in hand: all of it is sent again."""
    checkpoint: float
    """From finished to durable, at most: what was done since the last checkpoint is sent again."""

    @property
    def useful(self) -> float:
        """The share of paid time that becomes finished work, in the long run.

        A life of exponential length X, of which min(X, batch + U * checkpoint) is lost, is
        followed by a restart: the mean of what is kept over the mean of the cycle.
        """
        batch, since = self.per_hour * self.in_flight, self.per_hour * self.checkpoint
        kept = math.exp(-batch) * (-math.expm1(-since) / since if since else 1.0)
        return kept / (1.0 + self.per_hour * self.restart)


@dataclass(frozen=True, slots=True)
class Rework:
    """How long a fleet takes although replicas are lost; hours, over simulated runs."""

    hours: float
    """Mean."""
    hours_95: float
    """95 % of the simulated runs took no longer."""
    standard_error: float
    """Of the mean, from simulating no more runs than this."""
    losses: float
    """Replicas lost in one run, on average."""
    resent_share: float
    """Work that was done again, of all work, on average."""
    trials: int
    replicas_simulated: int
    """Fewer than the fleet's: the rest is taken to do as well, which overstates the spread."""


def expected_hours(work: float, replicas: int, losses: ReplicaLosses) -> float:
    """Return the hours that `work` replica-hours take in the long run, in closed form.

    >>> expected_hours(100.0, 4, ReplicaLosses(0.0, 0.1, 0.1, 0.1))
    25.0
    """
    return work / (replicas * losses.useful)


def simulate(work: float, replicas: int, losses: ReplicaLosses, seed: int) -> Rework:
    """Return how long `work` replica-hours take `replicas` that are lost now and then."""
    if losses.useful < LEAST_USEFUL:
        raise ConfigError(
            f"Replicas are lost so often that {losses.useful:.1%} of their time would be of use.",
            hint="Check the losses per hour, the restart time, the batch and the checkpoint.",
        )
    if not losses.per_hour or not work:
        always = work / replicas
        return Rework(always, always, 0.0, 0.0, 0.0, 0, replicas)
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
    """Return how many lives of a replica are drawn at a time; more are drawn if they end early."""
    return math.ceil(losses + 4.0 * math.sqrt(losses)) + 3


def _one_run(
    work: float, replicas: int, lives: int, losses: ReplicaLosses, rng: np.random.Generator
) -> tuple[float, int, float]:
    """Return hours, losses and lost replica-hours of one simulated run."""
    up: Floats = np.empty((replicas, 0))
    lost: Floats = np.empty((replicas, 0))
    while True:
        # Lives are only ever added: drawing a run anew would favour the quick ones.
        more = rng.exponential(1.0 / losses.per_hour, (replicas, lives))
        risk = losses.in_flight + losses.checkpoint * rng.random((replicas, lives))
        up, lost = np.hstack([up, more]), np.hstack([lost, np.minimum(risk, more)])
        found = _finish(work, up, lost, losses.restart)
        if found is not None:
            return found


def _finish(
    work: float, up: Floats, lost: Floats, restart: float
) -> tuple[float, int, float] | None:
    """Return when the work is done, as `_one_run` does; None if the lives drawn end before."""
    replicas, lives = up.shape
    deaths = np.cumsum(up, axis=1) + restart * np.arange(lives)
    births = deaths[:, :-1] + restart
    times = np.concatenate([[0.0], deaths.ravel(), births.ravel()])
    # What changes at each time: how many replicas work, and what is taken back.
    slopes = np.repeat([float(replicas), -1.0, 1.0], [1, deaths.size, births.size])
    drops = np.concatenate([[0.0], lost.ravel(), np.zeros(births.size)])
    known = times <= deaths[:, -1].min()
    order = np.argsort(times[known], kind="stable")
    times, slopes, drops = (column[known][order] for column in (times, slopes, drops))
    working = np.cumsum(slopes)
    gained = np.cumsum(working[:-1] * np.diff(times))
    taken = np.cumsum(drops)
    # Finished just before each time but the first.
    before = gained - taken[:-1]
    done = np.flatnonzero(before >= work)
    if not done.size:
        return None
    last = int(done[0])
    finished = (gained[last - 1] if last else 0.0) - taken[last]
    hours = times[last] + (work - finished) / working[last]
    return float(hours), int(np.count_nonzero(slopes[: last + 1] < 0)), float(taken[last])


Routing = Literal["together", "random", "round-robin"]
"""Together: one call per response, or a session header that the router heeds. Random: each item
goes anywhere, as with least-loaded routers that do not see the prefix. Round-robin: in turn."""
ROUTINGS: tuple[Routing, ...] = get_args(Routing)


def replicas_touched(routing: Routing, items: float, replicas: int) -> float:
    """Return how many of the replicas see the prefix of one response, on average.

    >>> [replicas_touched(routing, 8, 4) for routing in ROUTINGS]
    [1.0, 3.599..., 4.0]
    """
    if routing == "together" or items <= 1:
        return 1.0
    if routing == "round-robin":
        return float(min(items, replicas))
    return float(replicas * (1.0 - (1.0 - 1.0 / replicas) ** items))


def scatter_factor(
    routing: Routing, items: float, prefix_tokens: float, item_tokens: float, replicas: int
) -> float:
    """Return how many times the tokens of the best routing have to be computed.

    >>> round(scatter_factor("random", 8, prefix_tokens=1000, item_tokens=60, replicas=4), 1)
    2.8
    """
    own = items * item_tokens
    touched = replicas_touched(routing, items, replicas)
    whole = prefix_tokens + own
    return (touched * prefix_tokens + own) / whole if whole else 1.0


LEDGER_BYTES = (53.6, 48.3)
"""Per judgment, and per answer: perf/recorded/bytes_per_judgment.txt, numbers all different."""
SCORE_BYTES = 28.7
"""Per response: perf/recorded/bytes_per_judgment.txt."""
BYTES_PER_TOKEN = 4.0
WEIGHED = "perf/bytes_per_judgment.py, scripted engine"
CLIENT = "perf/client_cost.py: 314 us an answer alone, 78 with 8 answers a call"


@dataclass(frozen=True, slots=True)
class CapacityOptions:
    """What the command line says; None where it says nothing."""

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
    """What the run itself tells; None where it does not."""

    answers: int = 0
    """Items left to ask in the run."""
    responses: int = 0
    """Responses they belong to."""
    waiting: int = 0
    """Responses whose checklist is not written yet: what they ask is not known."""
    without_checklist: int = 0
    """Responses that will have none, and are not judged."""
    rate: CapacityFigure | None = None
    no_rate: str = ""
    """Why there is none, although the judge was asked."""
    items: CapacityFigure | None = None
    prefix_tokens: CapacityFigure | None = None
    item_tokens: CapacityFigure | None = None
    calls: CapacityFigure | None = None
    batch: CapacityFigure | None = None
    in_hand: CapacityFigure | None = None
    task_bytes: CapacityFigure | None = None
    ledger_bytes: CapacityFigure | None = None
    score_bytes: CapacityFigure | None = None
    together: bool = True
    """Whether a call, or a header, keeps the items of a response on one replica."""
    routing_from: Source = "assumed"
    routed_by: str = "nothing is known of how the judge is asked"
    """What does, or why nothing does."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Every number of the model, with its source."""

    rate: CapacityFigure
    """Answers per second of one replica that sees all items of a response."""
    items: CapacityFigure
    """Per response."""
    prefix_tokens: CapacityFigure
    item_tokens: CapacityFigure
    calls: CapacityFigure
    """Per answer."""
    gpus: CapacityFigure
    """Per replica."""
    gpu_hour: CapacityFigure
    losses: CapacityFigure
    """Per replica and hour."""
    restart_minutes: CapacityFigure
    batch: CapacityFigure
    """Responses that are sent, and become durable, together."""
    in_hand: CapacityFigure
    """Batches that one replica works on."""
    checkpoint_seconds: CapacityFigure
    task_bytes: CapacityFigure
    """Per response, as are the next two."""
    ledger_bytes: CapacityFigure
    score_bytes: CapacityFigure
    call_us: CapacityFigure
    """Processor time of the client for a call, and for each answer in it."""
    answer_us: CapacityFigure
    row_us: CapacityFigure
    """Processor time of Ray Data for a response."""
    routing: Routing
    routing_from: Source
    routed_by: str

    def scatter(self, replicas: int, routing: Routing | None = None) -> float:
        """Return how many times the tokens of the best routing are computed."""
        return scatter_factor(
            routing or self.routing,
            self.items.value,
            self.prefix_tokens.value,
            self.item_tokens.value,
            replicas,
        )

    def replica_hours(self, answers: float, replicas: int) -> float:
        """Return the work of `answers`, spread over so many replicas, if none is lost."""
        return answers / self.rate.value / 3600.0 * self.scatter(replicas)

    def lost(self, replicas: int) -> ReplicaLosses:
        """Return how replicas are lost, in hours."""
        answers = self.batch.value * self.items.value
        return ReplicaLosses(
            per_hour=self.losses.value,
            restart=self.restart_minutes.value / 60.0,
            in_flight=self.replica_hours(self.in_hand.value * answers, replicas),
            checkpoint=self.checkpoint_seconds.value / 3600.0,
        )

    @property
    def client_us(self) -> float:
        """Processor time of the client's side for one answer, in microseconds."""
        row = self.row_us.value / self.items.value
        return self.answer_us.value + self.calls.value * self.call_us.value + row


def assume(given: CapacityOptions, measured: MeasuredRun) -> Assumptions:
    """Return all assumptions: what is given goes before what was measured, then defaults."""
    items = measured.items or CapacityFigure(8, "paper", "items per checklist")
    prefix = measured.prefix_tokens or CapacityFigure(
        1000, "assumed", "instruction, query and response"
    )
    item = measured.item_tokens or CapacityFigure(60, "assumed", "an item with its instruction")
    return Assumptions(
        rate=_told(given.rate, measured.rate, _paper_rate(measured.no_rate)),
        items=items,
        prefix_tokens=prefix,
        item_tokens=item,
        calls=measured.calls
        or CapacityFigure(1.0, "assumed", "one item a call: calls are not known yet"),
        gpus=_told(given.gpus, None, CapacityFigure(1, "assumed", "one GPU holds the judge")),
        gpu_hour=_told(given.gpu_hour, None, _PAPER_PRICE),
        losses=_told(given.losses, None, _LOSSES),
        restart_minutes=_told(given.restart_minutes, None, _RESTART),
        batch=_told(given.batch, measured.batch, _BATCH),
        in_hand=measured.in_hand or CapacityFigure(2, "assumed", "none of them is durable yet"),
        checkpoint_seconds=_told(given.checkpoint_seconds, None, _CHECKPOINT),
        task_bytes=measured.task_bytes or _task_bytes(items, prefix, item),
        ledger_bytes=measured.ledger_bytes or _ledger_bytes(items),
        score_bytes=measured.score_bytes
        or CapacityFigure(SCORE_BYTES, "measured elsewhere", WEIGHED),
        call_us=CapacityFigure(270.0, "measured elsewhere", CLIENT),
        answer_us=CapacityFigure(44.0, "measured elsewhere", CLIENT),
        row_us=CapacityFigure(
            130.0, "assumed", "Ray Data moving rows that do nothing; no script yet"
        ),
        routing=given.routing or ("together" if measured.together else "random"),
        routing_from="given" if given.routing else measured.routing_from,
        routed_by="as told by --routing" if given.routing else measured.routed_by,
    )


_PAPER_RATE = CapacityFigure(
    1024 * 8 / 165,
    "paper",
    "Qwen2.5-1.5B on an A5000 (1,024 responses in 165 s, taken as 8 items each): not your judge; "
    "see --rate",
)
_PAPER_PRICE = CapacityFigure(0.36, "paper", "USD for an A5000; see --gpu-hour")
_LOSSES = CapacityFigure(0.05, "assumed", "a replica is lost every 20 hours; --losses 0 if never")
_RESTART = CapacityFigure(
    5.0, "assumed", "from a loss to a loaded model in its place; see --restart-minutes"
)
_BATCH = CapacityFigure(64, "assumed", "they become durable together; see --batch")
_CHECKPOINT = CapacityFigure(
    10.0, "assumed", "at most, from finished to durable; see --checkpoint-seconds"
)


def _told(
    given: float | None, measured: CapacityFigure | None, default: CapacityFigure
) -> CapacityFigure:
    return CapacityFigure(given, "given") if given is not None else measured or default


def _paper_rate(why: str) -> CapacityFigure:
    """Return the published rate, with why the run's own is not taken."""
    return replace(_PAPER_RATE, note=f"{_PAPER_RATE.note}; {why}") if why else _PAPER_RATE


def _task_bytes(
    items: CapacityFigure, prefix: CapacityFigure, item: CapacityFigure
) -> CapacityFigure:
    tokens = prefix.value + items.value * item.value
    return CapacityFigure(BYTES_PER_TOKEN * tokens, "estimated", "4 bytes a token, not compressed")


def _ledger_bytes(items: CapacityFigure) -> CapacityFigure:
    each, answer = LEDGER_BYTES
    return CapacityFigure(each + answer * items.value, "measured elsewhere", WEIGHED)
