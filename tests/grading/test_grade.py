"""The grading loop: in order, bounded, stoppable, and it knows when the judge is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from rocketeval.engines.base import Engine, EngineAnswers
from rocketeval.engines.scripted import ScriptedEngine, exact_answer
from rocketeval.errors import EngineRefused, StoreError
from rocketeval.grading.loop import (
    GIVE_UP_AFTER,
    USELESS_AFTER,
    WITHOUT_PROBABILITY,
    Grading,
    grade,
)
from rocketeval.hashing import content_hash
from rocketeval.observer import Observer
from rocketeval.records import Answer, Failure, GradingTask, Judgment, Status, Usage

ITEMS = ("One?", "Two?", "Three?")


def task(number: int, text: str = "fine") -> GradingTask:
    """A task of three items."""
    key = content_hash("task", number)
    return GradingTask(key, f"q{number}", "c", f"{text} {number} ", ITEMS, neutralised=number)


class Watcher(Observer):
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def judged(self, judgment: Judgment) -> None:
        self.heard.append(f"judged {judgment.query_id}")

    def failed(self, failure: Failure) -> None:
        self.heard.append(f"failed {failure.query_id}")


class Loop:
    """A grading loop with everything it needs, ready to be run."""

    def __init__(
        self,
        tasks: Iterator[GradingTask],
        engine: Engine,
        *,
        concurrency: int = 4,
        known: Mapping[bytes, Mapping[int, Answer]] | None = None,
        proven: bool = False,
    ) -> None:
        self.proven = proven
        self.recorded: list[Judgment] = []
        self.watcher = Watcher()
        self.stop = asyncio.Event()
        self.record: Callable[[Judgment], None] = self.recorded.append
        self.known = known or {}
        self._tasks, self._engine, self._concurrency = tasks, engine, concurrency

    async def run(self) -> Grading:
        return await grade(
            self._tasks,
            self._engine,
            self.record,
            concurrency=self._concurrency,
            known=self.known,
            observer=self.watcher,
            stop=self.stop,
            proven=self.proven,
        )


class Counting(ScriptedEngine):
    """Notes the order of tasks and how many are in flight; `during` runs inside each."""

    def __init__(
        self, during: Callable[[GradingTask], None] = lambda _: None, **script: Any
    ) -> None:
        super().__init__(**script)
        self.started: list[str] = []
        self.in_flight = self.most = 0
        self._during = during

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        self.started.append(task.query_id)
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        try:
            await asyncio.sleep(0.001)
            self._during(task)
            return await super().grade(task, known)
        finally:
            self.in_flight -= 1


class Absent(ScriptedEngine):
    """Cannot be reached for the tasks whose number is in `down`."""

    def __init__(self, down: set[int]) -> None:
        super().__init__()
        self._down = {f"q{number}" for number in down}
        self.asked = 0

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        self.asked += 1
        if task.query_id not in self._down:
            return await super().grade(task, known)
        await asyncio.sleep(0)
        lost = (Answer(Status.ERROR),) * len(ITEMS)
        return EngineAnswers(lost, Usage(requests=1), "item 1: no answer", unavailable=True)


async def test_every_task_becomes_a_judgment() -> None:
    """All are recorded once, with answers, cost and what was disarmed, and the observer hears."""
    loop = Loop(map(task, range(20)), ScriptedEngine())
    grading = await loop.run()
    assert (grading.judged, grading.failures, grading.spent.requests) == (20, [], 60)
    assert [made.key for made in loop.recorded] == [task(number).key for number in range(20)]
    last = loop.recorded[-1]
    assert (last.query_id, last.candidate, last.neutralised) == ("q19", "c", 19)
    assert (len(last.answers), last.usage.requests) == (3, 3)
    assert loop.watcher.heard == [f"judged q{number}" for number in range(20)]


async def test_tasks_start_in_order_and_bounded() -> None:
    """Tasks start in the given order, never more than `concurrency` at once, but as many."""
    engine = Counting()
    await Loop(map(task, range(30)), engine, concurrency=5).run()
    assert engine.started == [f"q{number}" for number in range(30)]
    assert engine.most == 5


async def test_tasks_are_made_only_when_their_turn_comes() -> None:
    """A million tasks are never in memory: the stream is read as places become free."""
    made: list[int] = []

    def stream() -> Iterator[GradingTask]:
        for number in range(40):
            made.append(number)
            yield task(number)

    ahead: list[int] = []
    engine = Counting(lambda current: ahead.append(len(made) - int(current.query_id[1:])))
    await Loop(stream(), engine, concurrency=3).run()
    assert len(made) == 40
    assert max(ahead) <= 2 * 3


async def test_stop_finishes_what_is_in_flight() -> None:
    """After a stop the tasks in flight are finished and recorded, and no other is started."""
    engine = Counting(lambda current: loop.stop.set() if current.query_id == "q6" else None)
    loop = Loop(map(task, range(50)), engine, concurrency=4)
    grading = await loop.run()
    assert grading.stopped
    assert not grading.unreachable
    assert 7 <= len(engine.started) <= 10
    assert len(loop.recorded) == len(engine.started) == grading.judged


async def test_a_stop_before_the_start_starts_nothing() -> None:
    """A loop that is already asked to stop asks the judge nothing."""
    engine = Counting()
    loop = Loop(map(task, range(5)), engine)
    loop.stop.set()
    assert await loop.run() == Grading(stopped=True)
    assert engine.started == []


async def test_failures_are_collected_and_the_rest_goes_on() -> None:
    """A failed task is told with its reason and what was answered; the others are judged."""
    tasks = (task(number, "bad" if number in (1, 3) else "fine") for number in range(6))
    loop = Loop(tasks, ScriptedEngine(fail_on="bad"), concurrency=1)
    grading = await loop.run()
    assert grading.judged == 4
    assert [failure.query_id for failure in grading.failures] == ["q1", "q3"]
    assert grading.failures[0] == Failure(
        task(1).key, "q1", "c", "item 1: scripted to fail", (Answer(Status.ERROR),) * 3
    )
    assert loop.watcher.heard[:2] == ["judged q0", "failed q1"]
    assert not grading.unreachable


async def test_it_gives_up_when_the_judge_is_gone() -> None:
    """One task per worker without a judge ends the loop; the caller's stop is left alone."""
    engine = Absent(set(range(2, 1000)))
    loop = Loop(map(task, range(1000)), engine, concurrency=3)
    grading = await loop.run()
    assert grading.unreachable
    assert grading.judged == 2
    assert 3 <= len(grading.failures) < 3 + 3
    assert not loop.stop.is_set()
    assert not grading.stopped


async def test_one_success_starts_the_count_again() -> None:
    """A judge that comes back before the limit is not given up."""
    engine = Absent(set(range(100)) - {3, 7})
    grading = await Loop(map(task, range(100)), engine, concurrency=4).run()
    assert grading.unreachable
    assert grading.judged == 2
    assert 12 <= engine.asked < 12 + 4


async def test_many_workers_give_up_together() -> None:
    """With many in flight, a fixed number of tasks in a row without a judge is enough."""
    engine = Absent(set(range(1000)))
    grading = await Loop(map(task, range(1000)), engine, concurrency=100).run()
    assert grading.unreachable
    assert GIVE_UP_AFTER <= len(grading.failures) <= 100 + GIVE_UP_AFTER


async def test_a_judge_that_never_worked_is_not_asked_for_ever() -> None:
    """When not one of the first tasks can be judged, the judge is at fault and the loop ends."""
    loop = Loop(map(task, range(1000)), ScriptedEngine(fail_on="fine"), concurrency=2)
    grading = await loop.run()
    assert grading.useless
    assert USELESS_AFTER <= len(grading.failures) < USELESS_AFTER + 2


async def test_a_late_success_proves_the_judge() -> None:
    """Tasks in flight that succeed after the first failures show that the judge is not at fault."""

    class Slow(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            if "bad" not in task.prefix:
                await asyncio.sleep(0.02)
            return await super().grade(task, known)

    tasks = [task(number, "bad" if number < 20 else "good") for number in range(24)]
    grading = await Loop(iter(tasks), Slow(fail_on="bad"), concurrency=24).run()
    assert grading.judged == 4
    assert not grading.useless


async def test_one_query_that_is_too_long_does_not_condemn_the_judge() -> None:
    """Many candidates of one query may fail before the first success on another."""
    tasks = [replace(task(number, "bad"), query_id="long") for number in range(30)]
    loop = Loop(iter([*tasks, task(99)]), ScriptedEngine(fail_on="bad"), concurrency=2)
    grading = await loop.run()
    assert not grading.useless
    assert grading.judged == 1


async def test_answers_without_logprobs_are_no_judgment() -> None:
    """A server without log-probabilities is found out at once, and nothing is recorded."""

    class Silent(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            return EngineAnswers(
                (Answer(Status.NO_LOGPROBS),) * len(task.suffixes), Usage(requests=3)
            )

    loop = Loop(map(task, range(100)), Silent(), concurrency=1)
    grading = await loop.run()
    assert grading.useless
    assert loop.recorded == []
    assert grading.failures[0].reason == WITHOUT_PROBABILITY[Status.NO_LOGPROBS]
    assert grading.spent.requests == 3 * USELESS_AFTER


async def test_rejected_tasks_do_not_mean_that_the_judge_is_gone() -> None:
    """Any number of tasks the judge will not take, in a row, leaves the loop running to its end."""
    count = 3 * GIVE_UP_AFTER
    tasks = (task(number, "bad" if number < count else "fine") for number in range(count + 1))
    grading = await Loop(tasks, ScriptedEngine(fail_on="bad"), proven=True).run()
    assert not grading.unreachable
    assert not grading.useless
    assert len(grading.failures) == count
    assert grading.judged == 1


class Refusing(Counting):
    """Refuses to serve from the fifth task on."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        graded = await super().grade(task, known)
        if int(task.query_id[1:]) >= 4:
            raise EngineRefused("the key expired", hint="get a new one")
        return graded


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_a_refusal_surfaces_as_itself(concurrency: int) -> None:
    """The error says what to do next, also when several tasks meet it; what was judged is safe."""
    loop = Loop(map(task, range(40)), Refusing(), concurrency=concurrency)
    with pytest.raises(EngineRefused, match="the key expired"):
        await loop.run()
    assert [made.query_id for made in loop.recorded] == ["q0", "q1", "q2", "q3"]


async def test_a_full_disk_surfaces_as_itself() -> None:
    """An error of the store ends the loop too, and is not hidden in a group."""
    loop = Loop(map(task, range(40)), ScriptedEngine())

    def full(_: Judgment) -> None:
        raise StoreError("disk full")

    loop.record = full
    with pytest.raises(StoreError, match="disk full"):
        await loop.run()


async def test_a_refusal_is_told_even_among_bugs() -> None:
    """Where an engine also crashes in another task, the error for people is the one shown."""

    class Both(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            await asyncio.sleep(0)
            raise ZeroDivisionError if task.query_id == "q0" else EngineRefused("no")

    with pytest.raises(EngineRefused, match="no"):
        await Loop(map(task, range(2)), Both(), concurrency=2).run()


async def test_a_bug_is_not_swallowed() -> None:
    """An engine's own mistake is raised with its traceback, not counted as a failed task."""

    class Buggy(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught:
        await Loop(map(task, range(2)), Buggy()).run()
    assert caught.group_contains(ZeroDivisionError)


async def test_cancelling_drops_what_is_in_flight() -> None:
    """A second Ctrl-C cancels the loop: it ends at once, and finished judgments are recorded."""
    engine = Counting(lambda current: running.cancel() if current.query_id == "q5" else None)
    loop = Loop(map(task, range(50)), engine, concurrency=2)
    running = asyncio.create_task(loop.run())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert 4 <= len(loop.recorded) <= 6
    assert engine.in_flight == 0


async def test_half_answered_tasks_are_only_completed() -> None:
    """What an earlier run was answered comes back unchanged; only the missing item is asked."""
    earlier = {0: exact_answer(0.111), 2: exact_answer(0.333)}
    engine = ScriptedEngine(lambda *_: 0.5)
    loop = Loop(map(task, range(2)), engine, known={task(1).key: earlier})
    await loop.run()
    assert engine.items_asked == 3 + 1
    assert [answer.p_yes for answer in loop.recorded[1].answers] == [0.111, 0.5, 0.333]


async def test_a_failure_keeps_its_answers_for_the_next_run() -> None:
    """Fail in the middle, go on from there: together no item is asked twice."""
    broken = ScriptedEngine(fail_on="Three?")
    first = await Loop(iter([task(0)]), broken).run()
    kept = {
        place: answer
        for place, answer in enumerate(first.failures[0].answers)
        if answer.status is not Status.ERROR
    }
    assert sorted(kept) == [0, 1]
    mended = ScriptedEngine()
    loop = Loop(iter([task(0)]), mended, known={task(0).key: kept})
    await loop.run()
    assert (broken.items_asked, mended.items_asked) == (2, 1)
    whole = (await ScriptedEngine().grade(task(0), {})).answers
    assert loop.recorded[0].answers == whole


async def test_what_failures_cost_is_told_too() -> None:
    """All that an observer hears of adds up to what the loop has spent."""

    class Ledger(Observer):
        def __init__(self) -> None:
            self.sum = Usage()

        def judged(self, judgment: Judgment) -> None:
            self.sum += judgment.usage

        def spent(self, usage: Usage) -> None:
            self.sum = usage

    observer = Ledger()
    loop = Loop(map(task, range(6)), Absent({1, 3, 5}))
    loop.watcher = observer  # type: ignore[assignment]
    grading = await loop.run()
    assert len(grading.failures) == 3
    assert grading.spent.requests == 3 + sum(each.usage.requests for each in loop.recorded)
    assert observer.sum == grading.spent
