"""What a task may cost is set aside before, and what it did cost is counted after."""

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
"""One for a token."""
TASK = GradingTask(b"key", "q", "c", "prefix ", ("é?", "two?"))
MOST = 2 * (7 + TEMPLATE_TOKENS) + 3 + 4 + 2
YES, LOST = exact_answer(0.5), Answer(Status.ERROR)


def never() -> bool:
    """The run is not ending."""
    return False


def make(engine: ScriptedEngine | None = None, limit: float = 1e6) -> tuple[Budget, GradingBudget]:
    """A budget and its view by a judge."""
    budget = Budget(limit)
    return budget, GradingBudget(PricedBudget(budget, PRICE), engine or ScriptedEngine(), {})


@pytest.mark.parametrize(
    ("per_call", "items", "expected"),
    [(1, 5, 5), (None, 5, 1), (2, 5, 3), (64, 5, 1), (None, 0, 0), (1, 0, 0), (64, 65, 2)],
)
def test_calls_follow_the_engines_own_number(
    per_call: int | None, items: int, expected: int
) -> None:
    """None is all items of a response in one call; an engine that says nothing asks one each."""
    engine = ScriptedEngine()
    engine.items_per_call = per_call  # type: ignore[attr-defined]
    assert calls(engine, items) == expected
    assert calls(ScriptedEngine(), items) == items


async def test_exactly_the_most_a_task_can_cost_is_set_aside() -> None:
    """Bytes of every prompt, the template, and a token written for every item."""
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
    ids=["told", "a retry", "nothing told", "half failed", "nobody there"],
)
async def test_retries_failures_and_silence_count(graded: EngineAnswers, spent: float) -> None:
    """What is told counts as told; a request without an answer as the most it can have cost."""
    budget, limit = make()
    assert await limit.admit(TASK, {}, never)
    limit.settle(TASK, {}, graded)
    assert budget.spent == spent


async def test_items_asked_alone_are_calls_of_their_own_whatever_the_engine_could_take() -> None:
    """A method that asks one by one does not look like retries on an engine that takes several."""
    engine = ScriptedEngine()
    engine.items_per_call = 64  # type: ignore[attr-defined]
    assert calls(engine, 5, alone=True) == 5
    budget = Budget(1e6)
    limit = GradingBudget(PricedBudget(budget, PRICE), engine, {}, alone=True)
    assert await limit.admit(TASK, {}, never)
    limit.settle(TASK, {}, EngineAnswers((YES, YES), Usage(2, 100, 0, 2)))
    assert budget.spent == 102


async def test_first_contact_leaves_less_room_and_tells_how_long_the_template_is() -> None:
    """Whether shorter or longer than thought, the template is set aside with every prompt."""

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


async def test_a_task_that_waited_for_room_does_not_start_once_the_run_is_ending() -> None:
    """Asked to stop, workers that wait for money go home, and none waits for ever."""
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
