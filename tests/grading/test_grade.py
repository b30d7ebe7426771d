"""The grading loop: ordered, bounded, stoppable, and it detects an unreachable judge."""

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
    Grading,
    grade,
)
from rocketeval.hashing import content_hash
from rocketeval.observer import Observer
from rocketeval.records import Answer, Failure, GradingTask, Judgment, Status, Usage

ITEMS = ("One?", "Two?", "Three?")


def task(number: int, text: str = "fine") -> GradingTask:
    """Return a task with three items."""
    key = content_hash("task", number)
    return GradingTask(key, f"q{number}", "c", f"{text} {number} ", ITEMS, neutralised=number)


class Watcher(Observer):
    """Records the observed events."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def judged(self, judgment: Judgment) -> None:
        self.heard.append(f"judged {judgment.query_id}")

    def failed(self, failure: Failure) -> None:
        self.heard.append(f"failed {failure.query_id}")


class Loop:
    """A grading loop with everything it needs."""

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
    """Records the order of tasks and the number in flight; `during` runs inside each."""

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
    """Is unreachable for the tasks whose number is in `down`."""

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
    """All are recorded once with answers, usage and neutralizations, and observed."""
    loop = Loop(map(task, range(20)), ScriptedEngine())
    grading = await loop.run()
    assert (grading.judged, grading.failures, grading.spent.requests) == (20, [], 60)
    assert [made.key for made in loop.recorded] == [task(number).key for number in range(20)]
    last = loop.recorded[-1]
    assert (last.query_id, last.candidate, last.neutralised) == ("q19", "c", 19)
    assert (len(last.answers), last.usage.requests) == (3, 3)
    assert loop.watcher.heard == [f"judged q{number}" for number in range(20)]


async def test_tasks_start_in_order_within_the_limit() -> None:
    """Tasks start in the given order, with at most and up to `concurrency` at once."""
    engine = Counting()
    await Loop(map(task, range(30)), engine, concurrency=5).run()
    assert engine.started == [f"q{number}" for number in range(30)]
    assert engine.most == 5


async def test_tasks_are_created_lazily() -> None:
    """The stream is read as slots become free, so tasks are never all in memory."""
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


async def test_stop_finishes_tasks_in_flight() -> None:
    """After a stop, tasks in flight are finished and recorded, and no other starts."""
    engine = Counting(lambda current: loop.stop.set() if current.query_id == "q6" else None)
    loop = Loop(map(task, range(50)), engine, concurrency=4)
    grading = await loop.run()
    assert grading.stopped
    assert not grading.unreachable
    assert 7 <= len(engine.started) <= 10
    assert len(loop.recorded) == len(engine.started) == grading.judged


async def test_stop_before_the_start_asks_nothing() -> None:
    """A loop that is already stopped sends no request."""
    engine = Counting()
    loop = Loop(map(task, range(5)), engine)
    loop.stop.set()
    assert await loop.run() == Grading(stopped=True)
    assert engine.started == []


async def test_failures_do_not_stop_other_tasks() -> None:
    """A failure is reported with its reason and answers; the others are judged."""
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


async def test_unreachable_judge_ends_the_loop() -> None:
    """One unavailable task per worker ends the loop; the caller's stop is unchanged."""
    engine = Absent(set(range(2, 1000)))
    loop = Loop(map(task, range(1000)), engine, concurrency=3)
    grading = await loop.run()
    assert grading.unreachable
    assert grading.judged == 2
    assert 3 <= len(grading.failures) < 3 + 3
    assert not loop.stop.is_set()
    assert not grading.stopped


async def test_success_resets_the_failure_count() -> None:
    """A judge that comes back before the limit is not given up."""
    engine = Absent(set(range(100)) - {3, 7})
    grading = await Loop(map(task, range(100)), engine, concurrency=4).run()
    assert grading.unreachable
    assert grading.judged == 2
    assert 12 <= engine.asked < 12 + 4


async def test_many_workers_share_the_failure_limit() -> None:
    """With many in flight, a fixed number of consecutive failures ends the loop."""
    engine = Absent(set(range(1000)))
    grading = await Loop(map(task, range(1000)), engine, concurrency=100).run()
    assert grading.unreachable
    assert GIVE_UP_AFTER <= len(grading.failures) <= 100 + GIVE_UP_AFTER


async def test_judge_that_never_worked_ends_the_loop() -> None:
    """If none of the first tasks can be judged, the loop ends."""
    loop = Loop(map(task, range(1000)), ScriptedEngine(fail_on="fine"), concurrency=2)
    grading = await loop.run()
    assert grading.useless
    assert USELESS_AFTER <= len(grading.failures) < USELESS_AFTER + 2


async def test_late_success_proves_the_judge() -> None:
    """Tasks in flight that succeed after the first failures keep the loop running."""

    class Slow(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            if "bad" not in task.prefix:
                await asyncio.sleep(0.02)
            return await super().grade(task, known)

    tasks = [task(number, "bad" if number < 20 else "good") for number in range(24)]
    grading = await Loop(iter(tasks), Slow(fail_on="bad"), concurrency=24).run()
    assert grading.judged == 4
    assert not grading.useless


async def test_one_too_long_query_does_not_end_the_loop() -> None:
    """Many candidates of one query may fail before the first success on another."""
    tasks = [replace(task(number, "bad"), query_id="long") for number in range(30)]
    loop = Loop(iter([*tasks, task(99)]), ScriptedEngine(fail_on="bad"), concurrency=2)
    grading = await loop.run()
    assert not grading.useless
    assert grading.judged == 1


async def test_answers_without_logprobs_are_failures() -> None:
    """A server without log-probabilities is detected, and nothing is recorded."""

    class Silent(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            return EngineAnswers(
                (Answer(Status.NO_LOGPROBS),) * len(task.suffixes), Usage(requests=3)
            )

    loop = Loop(map(task, range(100)), Silent(), concurrency=1)
    grading = await loop.run()
    assert grading.useless
    assert loop.recorded == []
    assert "no log-probabilities" in grading.failures[0].reason
    assert grading.spent.requests == 3 * USELESS_AFTER


async def test_rejected_tasks_do_not_make_the_judge_unreachable() -> None:
    """Any number of consecutive rejections leaves the loop running to its end."""
    count = 3 * GIVE_UP_AFTER
    tasks = (task(number, "bad" if number < count else "fine") for number in range(count + 1))
    grading = await Loop(tasks, ScriptedEngine(fail_on="bad"), proven=True).run()
    assert not grading.unreachable
    assert not grading.useless
    assert len(grading.failures) == count
    assert grading.judged == 1


class Refusing(Counting):
    """Refuses from the fifth task on."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        graded = await super().grade(task, known)
        if int(task.query_id[1:]) >= 4:
            raise EngineRefused("the key expired", hint="get a new one")
        return graded


@pytest.mark.parametrize("concurrency", [1, 8])
async def test_refusal_is_raised_unchanged(concurrency: int) -> None:
    """The error keeps its hint even if several tasks raise it; judgments are safe."""
    loop = Loop(map(task, range(40)), Refusing(), concurrency=concurrency)
    with pytest.raises(EngineRefused, match="the key expired"):
        await loop.run()
    assert [made.query_id for made in loop.recorded] == ["q0", "q1", "q2", "q3"]


async def test_full_disk_is_raised_unchanged() -> None:
    """A StoreError ends the loop and is not hidden in a group."""
    loop = Loop(map(task, range(40)), ScriptedEngine())

    def full(_: Judgment) -> None:
        raise StoreError("disk full")

    loop.record = full
    with pytest.raises(StoreError, match="disk full"):
        await loop.run()


async def test_refusal_takes_precedence_over_bugs() -> None:
    """If an engine also crashes in another task, the user sees the refusal."""

    class Both(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            await asyncio.sleep(0)
            raise ZeroDivisionError if task.query_id == "q0" else EngineRefused("no")

    with pytest.raises(EngineRefused, match="no"):
        await Loop(map(task, range(2)), Both(), concurrency=2).run()


@pytest.mark.parametrize(
    "wrong",
    [
        Answer(Status.OK, 1.7, 1.7, 1.7, 1.0),
        Answer(Status.OK),
        Answer(Status.SAMPLED, float("nan"), 0.0, 1.0),
        Answer(Status.OK, 0.5, 0.5, 0.5, p_na=-0.2),
    ],
)
async def test_answer_without_a_probability_names_the_engine(wrong: Answer) -> None:
    """An engine's value outside 0 to 1 is no judgment: the loop ends with one error."""

    class Plugin(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            graded = await super().grade(task, known)
            if task.query_id in ("q0", "q1"):
                return graded
            return replace(graded, answers=(*graded.answers[:2], wrong))

    loop = Loop(map(task, range(8)), Plugin())
    with pytest.raises(EngineRefused, match=r"engine Plugin answered item 3 with .* between 0 and"):
        await loop.run()
    assert [made.query_id for made in loop.recorded] == ["q0", "q1"]


async def test_bug_is_raised() -> None:
    """An engine's bug is raised with its traceback, not counted as a failed task."""

    class Buggy(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught:
        await Loop(map(task, range(2)), Buggy()).run()
    assert caught.group_contains(ZeroDivisionError)


async def test_cancelling_drops_tasks_in_flight() -> None:
    """A second Ctrl-C ends the loop at once, and finished judgments are recorded."""
    engine = Counting(lambda current: running.cancel() if current.query_id == "q5" else None)
    loop = Loop(map(task, range(50)), engine, concurrency=2)
    running = asyncio.create_task(loop.run())
    with pytest.raises(asyncio.CancelledError):
        await running
    assert 4 <= len(loop.recorded) <= 6
    assert engine.in_flight == 0


async def test_interrupted_tasks_ask_only_missing_items() -> None:
    """Earlier answers come back unchanged; only the missing item is asked."""
    earlier = {0: exact_answer(0.111), 2: exact_answer(0.333)}
    engine = ScriptedEngine(lambda *_: 0.5)
    loop = Loop(map(task, range(2)), engine, known={task(1).key: earlier})
    await loop.run()
    assert engine.items_asked == 3 + 1
    assert [answer.p_yes for answer in loop.recorded[1].answers] == [0.111, 0.5, 0.333]


async def test_failure_keeps_its_answers_for_the_next_run() -> None:
    """A task that fails in the middle continues there: no item is asked twice."""
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


async def test_cost_of_failures_is_reported() -> None:
    """The observed usage adds up to what the loop has spent."""

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
