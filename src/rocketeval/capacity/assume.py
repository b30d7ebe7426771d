"""Every number that a plan for a cluster rests on: given, else measured, else a stated default."""

from __future__ import annotations

from dataclasses import dataclass, replace

from rocketeval.capacity.figure import Figure, Source
from rocketeval.capacity.losses import Losses
from rocketeval.capacity.scatter import Routing, scatter_factor

LEDGER_BYTES = (53.6, 48.3)
"""Per judgment, and per answer: perf/recorded/bytes_per_judgment.txt, numbers all different."""
SCORE_BYTES = 28.7
"""Per response: perf/recorded/bytes_per_judgment.txt."""
BYTES_PER_TOKEN = 4.0
WEIGHED = "perf/bytes_per_judgment.py, scripted engine"
CLIENT = "perf/client_cost.py: 314 us an answer alone, 78 with 8 answers a call"


@dataclass(frozen=True, slots=True)
class Given:
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
class Measured:
    """What the run itself tells; None where it does not."""

    answers: int = 0
    """Items left to ask in the run."""
    responses: int = 0
    """Responses they belong to."""
    waiting: int = 0
    """Responses whose checklist is not written yet: what they ask is not known."""
    without_checklist: int = 0
    """Responses that will have none, and are not judged."""
    rate: Figure | None = None
    no_rate: str = ""
    """Why there is none, although the judge was asked."""
    items: Figure | None = None
    prefix_tokens: Figure | None = None
    item_tokens: Figure | None = None
    calls: Figure | None = None
    batch: Figure | None = None
    in_hand: Figure | None = None
    task_bytes: Figure | None = None
    ledger_bytes: Figure | None = None
    score_bytes: Figure | None = None
    together: bool = True
    """Whether a call, or a header, keeps the items of a response on one replica."""
    routing_from: Source = "assumed"
    routed_by: str = "nothing is known of how the judge is asked"
    """What does, or why nothing does."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Every number of the model, with its source."""

    rate: Figure
    """Answers per second of one replica that sees all items of a response."""
    items: Figure
    """Per response."""
    prefix_tokens: Figure
    item_tokens: Figure
    calls: Figure
    """Per answer."""
    gpus: Figure
    """Per replica."""
    gpu_hour: Figure
    losses: Figure
    """Per replica and hour."""
    restart_minutes: Figure
    batch: Figure
    """Responses that are sent, and become durable, together."""
    in_hand: Figure
    """Batches that one replica works on."""
    checkpoint_seconds: Figure
    task_bytes: Figure
    """Per response, as are the next two."""
    ledger_bytes: Figure
    score_bytes: Figure
    call_us: Figure
    """Processor time of the client for a call, and for each answer in it."""
    answer_us: Figure
    row_us: Figure
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

    def lost(self, replicas: int) -> Losses:
        """Return how replicas are lost, in hours."""
        answers = self.batch.value * self.items.value
        return Losses(
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


def assume(given: Given, measured: Measured) -> Assumptions:
    """Return all assumptions: what is given goes before what was measured, then defaults."""
    items = measured.items or Figure(8, "paper", "items per checklist")
    prefix = measured.prefix_tokens or Figure(1000, "assumed", "instruction, query and response")
    item = measured.item_tokens or Figure(60, "assumed", "an item with its instruction")
    return Assumptions(
        rate=_told(given.rate, measured.rate, _paper_rate(measured.no_rate)),
        items=items,
        prefix_tokens=prefix,
        item_tokens=item,
        calls=measured.calls or Figure(1.0, "assumed", "one item a call: calls are not known yet"),
        gpus=_told(given.gpus, None, Figure(1, "assumed", "one GPU holds the judge")),
        gpu_hour=_told(given.gpu_hour, None, _PAPER_PRICE),
        losses=_told(given.losses, None, _LOSSES),
        restart_minutes=_told(given.restart_minutes, None, _RESTART),
        batch=_told(given.batch, measured.batch, _BATCH),
        in_hand=measured.in_hand or Figure(2, "assumed", "none of them is durable yet"),
        checkpoint_seconds=_told(given.checkpoint_seconds, None, _CHECKPOINT),
        task_bytes=measured.task_bytes or _task_bytes(items, prefix, item),
        ledger_bytes=measured.ledger_bytes or _ledger_bytes(items),
        score_bytes=measured.score_bytes or Figure(SCORE_BYTES, "measured elsewhere", WEIGHED),
        call_us=Figure(270.0, "measured elsewhere", CLIENT),
        answer_us=Figure(44.0, "measured elsewhere", CLIENT),
        row_us=Figure(130.0, "assumed", "Ray Data moving rows that do nothing; no script yet"),
        routing=given.routing or ("together" if measured.together else "random"),
        routing_from="given" if given.routing else measured.routing_from,
        routed_by="as told by --routing" if given.routing else measured.routed_by,
    )


_PAPER_RATE = Figure(
    1024 * 8 / 165,
    "paper",
    "Qwen2.5-1.5B on an A5000 (1,024 responses in 165 s, taken as 8 items each): not your judge; "
    "see --rate",
)
_PAPER_PRICE = Figure(0.36, "paper", "USD for an A5000; see --gpu-hour")
_LOSSES = Figure(0.05, "assumed", "a replica is lost every 20 hours; --losses 0 if never")
_RESTART = Figure(
    5.0, "assumed", "from a loss to a loaded model in its place; see --restart-minutes"
)
_BATCH = Figure(64, "assumed", "they become durable together; see --batch")
_CHECKPOINT = Figure(10.0, "assumed", "at most, from finished to durable; see --checkpoint-seconds")


def _told(given: float | None, measured: Figure | None, default: Figure) -> Figure:
    return Figure(given, "given") if given is not None else measured or default


def _paper_rate(why: str) -> Figure:
    """Return the published rate, with why the run's own is not taken."""
    return replace(_PAPER_RATE, note=f"{_PAPER_RATE.note}; {why}") if why else _PAPER_RATE


def _task_bytes(items: Figure, prefix: Figure, item: Figure) -> Figure:
    tokens = prefix.value + items.value * item.value
    return Figure(BYTES_PER_TOKEN * tokens, "estimated", "4 bytes a token, not compressed")


def _ledger_bytes(items: Figure) -> Figure:
    each, answer = LEDGER_BYTES
    return Figure(each + answer * items.value, "measured elsewhere", WEIGHED)
