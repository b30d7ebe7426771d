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
"""Failures in a row, with no success between them, that mean the judge is gone."""


@dataclass
class Grading:
    """How a grading loop ended."""

    judged: int = 0
    failures: list[Failure] = field(default_factory=list)
    stopped: bool = False
    """True when it was asked to stop before the last task."""
    gone: bool = False
    """True when it gave up because too many tasks failed in a row."""


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
    in_a_row = 0

    def settle(task: GradingTask, graded: Graded) -> None:
        nonlocal in_a_row
        if graded.failure is None:
            in_a_row = 0
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
        in_a_row += 1
        failure = Failure(task.key, task.query_id, task.candidate, graded.failure, graded.answers)
        grading.failures.append(failure)
        observer.failed(failure)

    async def work() -> None:
        for task in tasks:
            settle(task, await engine.grade(task, known.get(task.key, {})))
            if in_a_row >= GIVE_UP_AFTER:
                grading.gone = True
                stop.set()
            if stop.is_set():
                return

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(concurrency):
                group.create_task(work())
    except* RocketEvalError as errors:
        raise errors.exceptions[0] from None
    grading.stopped = stop.is_set()
    return grading
