"""The budget reserves the most a task can cost, then counts what it cost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from rocketeval.budget import TEMPLATE_TOKENS, Budget, PricedBudget
from rocketeval.config import PriceConfig
from rocketeval.engines.base import EngineAnswers
from rocketeval.engines.scripted import ScriptedEngine, exact_answer
from rocketeval.grading.loop import CONTACT_CALLS, CONTACT_TOKENS, GradingBudget, calls, grade
from rocketeval.observer import Observer
from rocketeval.records import Answer, GradingTask, Status, Usage

PRICE = PriceConfig(prompt=1e6, completion=1e6)
"""A price of one per token."""
TASK = GradingTask(b"key", "q", "c", "prefix ", ("é?", "two?"))
MOST = 2 * (7 + TEMPLATE_TOKENS) + 3 + 4 + 2
YES, LOST = exact_answer(0.5), Answer(Status.ERROR)


def never() -> bool:
    """Return False: the run is not ending."""
    return False


def make(engine: ScriptedEngine | None = None, limit: float = 1e6) -> tuple[Budget, GradingBudget]:
    """Return a budget and its view for grading."""
    budget = Budget(limit)
    return budget, GradingBudget(PricedBudget(budget, PRICE), engine or ScriptedEngine(), {})


@pytest.mark.parametrize(
    ("per_call", "items", "expected"),
    [(1, 5, 5), (None, 5, 1), (2, 5, 3), (64, 5, 1), (None, 0, 0), (1, 0, 0), (64, 65, 2)],
)
def test_calls_depend_on_items_per_call(per_call: int | None, items: int, expected: int) -> None:
    """None means all items in one call; an engine without the attribute sends one each."""
    engine = ScriptedEngine()
    engine.items_per_call = per_call  # type: ignore[attr-defined]
    assert calls(engine, items) == expected
    assert calls(ScriptedEngine(), items) == items


async def test_reservation_is_the_most_a_task_can_cost() -> None:
    """It covers the bytes of every prompt, the template, and one token per item."""
    _, fits = make(limit=MOST)
    assert await fits.admit(TASK, {}, never)
    _, tight = make(limit=MOST - 1)
    assert not await tight.admit(TASK, {}, never)
    _, known = make(limit=MOST / 2 + 1)
    assert await known.admit(TASK, {0: YES}, never)


@pytest.mark.parametrize(
    ("graded", "spent"),
    [
        (EngineAnswers((YES, YES), Usage(2, 100, 0, 2)), 102),
        (EngineAnswers((YES, YES), Usage(3, 100, 0, 2)), 102 + MOST / 2),
        (EngineAnswers((YES, YES), Usage(2)), MOST),
        (EngineAnswers((YES, LOST), Usage(2, 50, 0, 1), "item 2: gone"), 51 + MOST / 2),
        (EngineAnswers((LOST, LOST), Usage(4), "item 1: gone", unavailable=True), 4 * MOST / 2),
    ],
    ids=["reported", "a retry", "nothing reported", "half failed", "nobody there"],
)
async def test_retries_failures_and_missing_usage_count(
    graded: EngineAnswers, spent: float
) -> None:
    """Reported usage counts as reported, a request without an answer in full."""
    budget, limit = make()
    assert await limit.admit(TASK, {}, never)
    limit.settle(TASK, {}, graded)
    assert budget.spent == spent


async def test_independent_requests_are_not_counted_as_retries() -> None:
    """A method with one request per item does not look like retries on a batching engine."""
    engine = ScriptedEngine()
    engine.items_per_call = 64  # type: ignore[attr-defined]
    assert calls(engine, 5, alone=True) == 5
    budget = Budget(1e6)
    limit = GradingBudget(PricedBudget(budget, PRICE), engine, {}, alone=True)
    assert await limit.admit(TASK, {}, never)
    limit.settle(TASK, {}, EngineAnswers((YES, YES), Usage(2, 100, 0, 2)))
    assert budget.spent == 102


async def test_first_contact_is_reserved_and_measures_the_template() -> None:
    """The measured length of the template is reserved with every prompt."""

    class Wordy(ScriptedEngine):
        async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
            return [[0] * 2000 for _ in prompts]

    for engine, template in ((ScriptedEngine(), 1), (Wordy(), 2000)):
        contact = CONTACT_CALLS * (CONTACT_TOKENS + template + 1)
        most = MOST + 2 * (template - TEMPLATE_TOKENS)
        for room, fits in ((most, True), (most - 1, False)):
            _, limit = make(engine, contact + room)
            await limit.learn()
            assert await limit.admit(TASK, {}, never) is fits


async def test_task_waiting_for_budget_does_not_start_after_a_stop() -> None:
    """After a stop, workers that wait for budget end."""
    stop = asyncio.Event()
    engine = ScriptedEngine(delay=0.01)
    _, limit = make(engine, MOST * 1.5)

    class StopAtFirst(Observer):
        def judged(self, judgment: object) -> None:
            stop.set()

    tasks = [GradingTask(bytes([n]), f"q{n}", "c", "prefix ", ("a?", "b?")) for n in range(6)]
    async with asyncio.timeout(120):
        grading = await grade(
            iter(tasks),
            engine,
            lambda _: None,
            concurrency=4,
            known={},
            observer=StopAtFirst(),
            stop=stop,
            budget=limit,
        )
    assert grading.stopped
    assert grading.judged == 1
