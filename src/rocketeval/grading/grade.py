"""The grading loop: tasks in, judgments out, a bounded number in flight."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from rocketeval.engines.base import Engine, Graded, pulse_of
from rocketeval.grading.budget import GradingBudget
from rocketeval.grading.methods.base import Ask, each_item_alone
from rocketeval.observing import Observer
from rocketeval.records import Answer, Failure, GradingTask, Judgment, Status, Usage
from rocketeval.workers import run_workers

GIVE_UP_AFTER = 16
"""Tasks in a row that found the judge unavailable, or one per worker; then it is gone.

A task that the judge rejects proves that it is there, so it does not count: otherwise a run whose
last unfinished tasks are all too long for the judge could never get past them.
"""
USELESS_AFTER = 8
"""Failures before a judge's first success ever, on several queries; then the judge is at fault."""
USELESS_QUERIES = 3
"""On so many different queries: a single one may be too long for any judge."""
WITHOUT_PROBABILITY = {
    Status.NO_LOGPROBS: "the server sent no log-probabilities",
    Status.UNSOUND: "what the server sent are not log-probabilities",
    Status.THINKING: "the judge began to think instead of answering",
}
"""What makes a task fail when it is true of every item."""


@dataclass
class Grading:
    """How a grading loop ended."""

    judged: int = 0
    spent: Usage = field(default_factory=Usage)
    """What judged and failed tasks cost together."""
    failures: list[Failure] = field(default_factory=list)
    stopped: bool = False
    """True when it was asked to stop."""
    gone: bool = False
    """True when it gave up because too many tasks in a row found no judge."""
    useless: bool = False
    """True when it gave up because not one of the first tasks could be judged."""


async def grade(
    tasks: Iterator[GradingTask],
    engine: Engine,
    record: Callable[[Judgment], None],
    *,
    ask: Ask | None = None,
    concurrency: int,
    known: Mapping[bytes, Mapping[int, Answer]],
    observer: Observer,
    stop: asyncio.Event,
    proven: bool = False,
    budget: GradingBudget | None = None,
) -> Grading:
    """Grade every task in order, at most `concurrency` at once, and `record` each judgment.

    `proven` says that this judge has finished tasks before, so a failure is the task's own.
    Setting `stop` lets the tasks in flight finish and starts no more; a durable engine's tasks are
    left to the next run. What does not fit into the `budget` is not started. `ask` is how a task
    is put to the engine; each item alone when absent.
    Raises EngineRefused when the engine will not serve us at all.
    """
    observer.watched(partial(pulse_of, engine))
    grading = Grading()
    ask = ask or each_item_alone(engine)
    failed_queries: set[str] = set()
    unavailable = 0

    def settle(task: GradingTask, graded: Graded) -> None:
        nonlocal unavailable
        unavailable = unavailable + 1 if graded.unavailable else 0
        grading.gone = grading.gone or unavailable >= min(GIVE_UP_AFTER, concurrency)
        grading.spent += graded.usage
        reason = graded.failure or _silent(graded.answers)
        if reason is None:
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
            grading.useless = False
            observer.judged(judgment)
            return
        failure = Failure(task.key, task.query_id, task.candidate, reason, graded.answers)
        grading.failures.append(failure)
        failed_queries.add(failure.query_id)
        grading.useless = (
            not (proven or grading.judged)
            and len(failed_queries) >= USELESS_QUERIES
            and len(grading.failures) >= USELESS_AFTER
        )
        observer.spent(grading.spent)
        observer.failed(failure)

    def ending() -> bool:
        return stop.is_set() or grading.gone or grading.useless

    async def work() -> None:
        while not ending():
            task = next(tasks, None)
            if task is None:
                return
            told = known.get(task.key, {})
            if budget and not await budget.admit(task, told, ending):
                return
            graded = _all_known(task, told) or await ask(task, told)
            if budget:
                budget.settle(task, told, graded)
            settle(task, graded)

    await run_workers(work, concurrency, drop_at=stop if engine.durable else None)
    grading.stopped = stop.is_set()
    return grading


def _all_known(task: GradingTask, known: Mapping[int, Answer]) -> Graded | None:
    """Return a task's answers when none is left to ask, as after items were only removed."""
    items = len(task.suffixes) if task.items is None else task.items
    if len(known) < items:
        return None
    return Graded(tuple(known[item] for item in range(items)), Usage())


def _silent(answers: tuple[Answer, ...]) -> str | None:
    """Return why answers without a single probability are no judgment; None if they are one."""
    statuses = {answer.status for answer in answers}
    return WITHOUT_PROBABILITY.get(statuses.pop()) if len(statuses) == 1 else None
