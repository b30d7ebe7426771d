"""The grading loop: tasks in, judgments out, a bounded number in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from rocketeval.engines.base import Engine, Graded
from rocketeval.errors import RocketEvalError
from rocketeval.observing import Observer
from rocketeval.records import Answer, Failure, GradingTask, Judgment

GIVE_UP_AFTER = 16
"""Tasks in a row that found the judge unavailable; then it is gone.

A task that the judge rejects proves that it is there, so it does not count: otherwise a run whose
last unfinished tasks are all too long for the judge could never get past them.
"""


@dataclass
class Grading:
    """How a grading loop ended."""

    judged: int = 0
    failures: list[Failure] = field(default_factory=list)
    stopped: bool = False
    """True when it was asked to stop."""
    gone: bool = False
    """True when it gave up because too many tasks in a row found no judge."""


async def grade(
    tasks: Iterator[GradingTask],
    engine: Engine,
    record: Callable[[Judgment], None],
    *,
    concurrency: int,
    known: Mapping[bytes, Mapping[int, Answer]],
    observer: Observer,
    stop: asyncio.Event,
) -> Grading:
    """Grade every task in order, at most `concurrency` at once, and `record` each judgment.

    Setting `stop` lets the tasks in flight finish and starts no more. Raises EngineRefused
    when the engine will not serve us at all.
    """
    grading = Grading()
    unavailable = 0

    def settle(task: GradingTask, graded: Graded) -> None:
        nonlocal unavailable
        unavailable = unavailable + 1 if graded.unavailable else 0
        grading.gone = grading.gone or unavailable >= GIVE_UP_AFTER
        if graded.failure is None:
            judgment = Judgment(
                task.key,
                task.query_id,
                task.candidate,
                graded.answers,
                graded.usage,
                task.neutralised,
            )
            record(judgment)
            grading.judged += 1
            observer.judged(judgment)
            return
        failure = Failure(task.key, task.query_id, task.candidate, graded.failure, graded.answers)
        grading.failures.append(failure)
        observer.failed(failure)

    async def work() -> None:
        while not (stop.is_set() or grading.gone):
            task = next(tasks, None)
            if task is None:
                return
            settle(task, await engine.grade(task, known.get(task.key, {})))

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except ExceptionGroup as errors:
        raise _for_people(errors) from None
    grading.stopped = stop.is_set()
    return grading


def _for_people(errors: ExceptionGroup[Exception]) -> Exception:
    """Return the first error that says what to do next, else the whole group."""
    ours = (error for error in errors.exceptions if isinstance(error, RocketEvalError))
    return next(ours, errors)
