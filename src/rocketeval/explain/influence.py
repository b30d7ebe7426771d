"""Influence of the parts of a response on one answer: the judge is asked again without each part.

The same item is asked about the whole response, as the reference, and about the response without
each unit. These answers are no judgments: nothing here is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from rocketeval.config import PriceConfig
from rocketeval.engines.base import Engine, EngineAnswers
from rocketeval.errors import BenchmarkError, ConfigError, EngineUnavailable, RequestRejected
from rocketeval.explain.text_units import TextPiece, split_text, without
from rocketeval.grading.ask import Ask, Method, asks_items_independently
from rocketeval.grading.canaries import (
    FIRST,
    allowed_difference,
    applies,
    distance,
    single_item,
)
from rocketeval.grading.loop import calls, most_for_contact
from rocketeval.grading.plan import BYTES_PER_TOKEN
from rocketeval.hashing import content_hash
from rocketeval.items import ItemKind
from rocketeval.prices import money
from rocketeval.prompts.variants import AnalysisPrompt
from rocketeval.records import (
    Answer,
    Checklist,
    GradingTask,
    JudgeFingerprint,
    Query,
    Response,
    Usage,
)
from rocketeval.workers import run_workers

SMALLEST = 0.01
"""Smaller changes of p_yes are never called an influence, whatever they are in log-odds."""
USUAL_BYTES = (1.0, 8.0)
"""Bytes per token that the recorded usage of a judgment may plausibly show."""


@dataclass(frozen=True, slots=True)
class JudgedItem:
    """One item of a judged response."""

    query: Query
    response: Response
    checklist: Checklist
    place: int
    """Position of the item, from 0."""
    answer: Answer
    """The stored answer."""
    usage: Usage
    """What the judgment of the whole checklist used."""


@dataclass(frozen=True, slots=True)
class InfluencePlan:
    """What to ask."""

    pieces: tuple[TextPiece, ...]
    units: int
    """Units of the response, before neighbors are joined."""
    whole: GradingTask
    shortened: tuple[GradingTask, ...]
    """The item about the response without each unit, in order."""

    @property
    def tasks(self) -> tuple[GradingTask, ...]:
        """All tasks, the whole response first."""
        return (self.whole, *self.shortened)


@dataclass(frozen=True, slots=True)
class InfluenceCost:
    """The estimated cost of asking, before anything is asked."""

    requests: int
    contact: int
    """At most this many short requests more, which identify the judge."""
    units: int
    asked: int
    """Parts that are left out: the units, or fewer blocks of neighboring ones."""
    tokens: int
    """Estimated prompt tokens of the requests, without those that identify the judge."""
    cost: float | None
    """Money for all of it; None without a price."""
    currency: str


@dataclass(frozen=True, slots=True)
class PieceInfluence:
    """A part of the response, and the answer without it."""

    text: str
    unit: bool
    """False for what is never left out: blank lines and fences."""
    p_yes: float | None = None
    """The answer without it; None if the judge gave none."""
    change: float | None = None
    """How much it raises p_yes: that of the whole response minus the answer without it."""
    clear: bool = False
    """Whether the change is larger than the judge's repeatability allows."""
    inapplicable: bool = False
    """Whether the item more likely does not apply without it; then it has no answer."""


@dataclass(frozen=True, slots=True)
class AnswerInfluence:
    """The influence of each part of a response on the answer to one item."""

    pieces: tuple[PieceInfluence, ...]
    """Together they are the response."""
    units: int
    asked: int
    stored: float | None
    """p_yes in the run."""
    whole: float
    """p_yes of the whole response, asked now."""
    repeated: bool
    """Whether the two differ by no more than the judge's repeatability allows."""
    requests: int
    tokens: int
    problem: str = ""
    """Why a part has no answer; empty if all have one."""


def check_influence(method: Method, judged: JudgedItem) -> None:
    """Raise ConfigError if the item cannot be asked again about another text."""
    item = f"item {judged.place + 1} of {judged.query.id!r}"
    if not asks_items_independently(method):
        raise ConfigError(
            f"The method {method.name!r} does not ask items independently, so the prompt of {item} "
            "depends on other answers.",
            hint="Only methods such as `checklist` ask an item again about a shortened response.",
        )
    if isinstance(method.prompt, AnalysisPrompt):
        raise ConfigError(
            f"The method {method.name!r} shows the judge an analysis of the whole response, and "
            "there is none of a shortened one."
        )
    if judged.checklist.detail(judged.place).kind is ItemKind.CHECK:
        raise ConfigError(f"Code decides {item}, so there is no judge to ask.")


def plan_influence(judged: JudgedItem, method: Method) -> InfluencePlan:
    """Return the tasks; ConfigError or BenchmarkError if there is nothing to ask."""
    check_influence(method, judged)
    pieces, units = split_text(judged.response.text)
    if not units:
        raise BenchmarkError(
            f"The response of {judged.response.candidate!r} to {judged.query.id!r} is empty."
        )

    def about(text: str) -> GradingTask:
        response = replace(judged.response, text=text)
        key = content_hash("influence", judged.query.id, response.candidate, judged.place, text)
        task = method.prompt.render(judged.query, response, judged.checklist, key)
        return single_item(task, judged.place)

    places = [place for place, piece in enumerate(pieces) if piece.unit]
    shortened = tuple(about(without(pieces, place)) for place in places)
    return InfluencePlan(pieces, units, about(judged.response.text), shortened)


def estimate_cost(
    plan: InfluencePlan,
    judged: JudgedItem,
    method: Method,
    engine: Engine,
    price: PriceConfig | None,
) -> InfluenceCost:
    """Estimate the cost from the recorded usage of the judgment, without contacting the judge."""
    prompts = [task.prefix + task.suffixes[0] for task in plan.tasks]
    times = calls(engine, 1, alone=method.alone)
    tokens = round(times * sum(map(_bytes, prompts)) / _bytes_per_token(judged, method))
    requests = times * len(prompts)
    contact = most_for_contact() if hasattr(engine, "watch") else Usage()
    written = requests * int(getattr(engine, "most_written", 1))
    use = Usage(prompt_tokens=tokens, completion_tokens=written) + contact
    return InfluenceCost(
        requests=requests,
        contact=contact.completion_tokens,
        units=plan.units,
        asked=len(plan.shortened),
        tokens=tokens,
        cost=None if price is None else money(use, price),
        currency="" if price is None else price.currency,
    )


async def measure_influence(
    plan: InfluencePlan,
    stored: Answer,
    judge: JudgeFingerprint,
    ask: Ask,
    *,
    concurrency: int,
    advanced: Callable[[], None],
) -> AnswerInfluence:
    """Ask about the whole response, then without each unit.

    EngineError if the judge is unavailable, or gives no answer about the whole response.
    """
    first = await _asked(plan.whole, ask)
    advanced()
    whole, use = first.answers[0], first.usage
    if whole.p_yes is None:
        raise RequestRejected(
            "The judge gave no usable answer about the whole response: "
            f"{first.failure or whole.status}.",
            hint="There is nothing to compare shortened responses with.",
        )
    if not applies(whole):
        raise RequestRejected(
            "For the judge, this item does not apply to the response, so no sentence decides it."
        )
    answers: dict[int, Answer] = {}
    problems: list[str] = []
    waiting = list(reversed(list(enumerate(plan.shortened))))

    async def work() -> None:
        nonlocal use
        while waiting:
            place, task = waiting.pop()
            graded = await _asked(task, ask)
            answers[place] = graded.answers[0]
            use += graded.usage
            if answers[place].p_yes is None:
                problems.append(graded.failure or str(answers[place].status))
            advanced()

    await run_workers(work, min(concurrency, len(waiting)))
    allowed = allowed_difference(judge)
    repeated = not differs(stored, whole, FIRST * allowed)
    # What the same question moved by, unchanged, is no influence of a sentence.
    moved = distance(stored, whole) if repeated and stored.p_yes is not None else 0.0
    return AnswerInfluence(
        pieces=tuple(_pieces(plan, whole, answers, max(allowed, moved))),
        units=plan.units,
        asked=len(plan.shortened),
        stored=stored.p_yes,
        whole=whole.p_yes,
        repeated=repeated,
        requests=use.requests,
        tokens=use.prompt_tokens,
        problem=problems[0] if problems else "",
    )


async def _asked(task: GradingTask, ask: Ask) -> EngineAnswers:
    graded = await ask(task, {})
    if graded.unavailable:
        raise EngineUnavailable(
            f"The judge gave no answer: {graded.failure}", hint="Check the judge, and ask again."
        )
    return graded


def differs(one: Answer, other: Answer, allowed: float) -> bool:
    """Return whether two answers differ by more than `allowed` in log-odds, and visibly.

    Answers whose bounds overlap never do: each may be the other.

    >>> from rocketeval.engines.scripted import exact_answer
    >>> differs(exact_answer(0.5), exact_answer(0.6), 0.1)
    True
    >>> differs(exact_answer(0.5), exact_answer(0.52), 0.1)
    False
    >>> differs(exact_answer(0.9999), exact_answer(0.999), 0.1)
    False
    """
    if one.p_yes is None or other.p_yes is None or abs(one.p_yes - other.p_yes) < SMALLEST:
        return False
    (low, high), (other_low, other_high) = _bounds(one, one.p_yes), _bounds(other, other.p_yes)
    return distance(one, other) > allowed and (high < other_low or other_high < low)


def _bounds(answer: Answer, p_yes: float) -> tuple[float, float]:
    low = p_yes if answer.p_low is None else answer.p_low
    return low, p_yes if answer.p_high is None else answer.p_high


def _pieces(
    plan: InfluencePlan, whole: Answer, answers: dict[int, Answer], allowed: float
) -> Iterator[PieceInfluence]:
    number = 0
    for piece in plan.pieces:
        if not piece.unit:
            yield PieceInfluence(piece.text, unit=False)
            continue
        found = answers[number]
        number += 1
        if not applies(found):
            yield PieceInfluence(piece.text, unit=True, clear=True, inapplicable=True)
            continue
        change = None
        if whole.p_yes is not None and found.p_yes is not None:
            change = whole.p_yes - found.p_yes
        clear = differs(whole, found, allowed)
        yield PieceInfluence(piece.text, True, found.p_yes, change, clear)


def _bytes(text: str) -> int:
    return len(text.encode(errors="replace"))


def _bytes_per_token(judged: JudgedItem, method: Method) -> float:
    """Return the bytes per token in the judgment's own prompts, else a rough value."""
    if not judged.usage.prompt_tokens:
        return BYTES_PER_TOKEN
    task = method.prompt.render(judged.query, judged.response, judged.checklist, b"")
    size = sum(_bytes(task.prefix + task.suffixes[place]) for place in task.left())
    found = size / judged.usage.prompt_tokens
    low, high = USUAL_BYTES
    return found if low <= found <= high else BYTES_PER_TOKEN
