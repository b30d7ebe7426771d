"""The grading loop: tasks in, judgments out, a bounded number in flight.

What grading a task can cost at most, set aside before the judge is asked.
Who judges: an engine and a grading prompt, and the fingerprint of the two.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rocketeval.budget import TEMPLATE_TOKENS, PricedBudget, most_tokens, most_written
from rocketeval.engines.base import (
    Engine,
    EngineAnswers,
    EngineIdentity,
    drop_after,
    status_of,
)
from rocketeval.grading.ask import Ask, each_item_alone
from rocketeval.observer import Observer
from rocketeval.prompts.render import GradingPrompt, Template
from rocketeval.records import (
    NO_ANSWER,
    Answer,
    Failure,
    GradingTask,
    JudgeFingerprint,
    Judgment,
    Status,
    Usage,
)
from rocketeval.workers import GRACE_SECONDS, run_workers

CONTACT_CALLS = 24
CONTACT_TOKENS = 256
"""To find out how a judge can be asked, it gets at most so many questions of so many tokens."""


def most_for_contact(template: int = TEMPLATE_TOKENS) -> Usage:
    """Return the most that a judge's first contact uses, with a chat template of so many tokens."""
    asked = CONTACT_CALLS * (CONTACT_TOKENS + template)
    return Usage(prompt_tokens=asked, completion_tokens=CONTACT_CALLS)


def calls(engine: Engine, items: int, *, alone: bool = False) -> int:
    """Return how many requests an engine makes for so many items of one response.

    `alone`: the method asks each item by itself, however many the engine could take at once.
    """
    per_call: int | None = 1 if alone else getattr(engine, "items_per_call", 1)
    return -(-items // (per_call or max(1, items)))


class GradingBudget:
    """Admits a task only if the most it can cost still fits."""

    def __init__(
        self,
        budget: PricedBudget,
        engine: Engine,
        extra_body: Mapping[str, Any],
        written: int = 1,
        *,
        alone: bool = False,
    ) -> None:
        self._budget = budget
        self._engine = engine
        self._alone = alone
        self._written = most_written(written, extra_body)
        self._template = TEMPLATE_TOKENS
        self._reserved: dict[bytes, float] = {}

    async def learn(self, *, contacted: bool = False) -> None:
        """Ask how long the chat template is, and leave room for the first contact.

        `contacted` says that room was left for it already.
        """
        told = await self._engine.tokenise(["."])
        if told:
            self._template = len(told[0])
        if not contacted:
            self._budget.keep_back(most_for_contact(self._template))

    async def admit(
        self, task: GradingTask, known: Mapping[int, Answer], ending: Callable[[], bool]
    ) -> bool:
        """Set aside what the task can cost; False when there is no room, or while `ending`."""
        reserved = await self._budget.reserve(self._most(task, known))
        if reserved is None:
            return False
        if ending():
            self._budget.settle(reserved, Usage())
            return False
        self._reserved[task.key] = reserved
        return True

    def settle(self, task: GradingTask, known: Mapping[int, Answer], graded: EngineAnswers) -> None:
        """Count what the task cost.

        Requests that brought no answer may be on the bill all the same, so they count in full, as
        does everything when the engine tells no tokens.
        """
        asked = answered = len(task.suffixes) - len(known)
        if graded.failure:
            answered -= sum(answer.status in NO_ANSWER for answer in graded.answers)
        told = graded.usage
        lost = max(0, told.requests - calls(self._engine, answered, alone=self._alone))
        silent = bool(answered) and not told.prompt_tokens
        untold = silent + lost / max(1, calls(self._engine, asked, alone=self._alone))
        self._budget.settle(self._reserved.pop(task.key), told, untold=untold)

    def _most(self, task: GradingTask, known: Mapping[int, Answer]) -> Usage:
        prefix = most_tokens(task.prefix, self._template)
        asked = [s for place, s in enumerate(task.suffixes) if place not in known]
        return Usage(
            prompt_tokens=sum(prefix + most_tokens(suffix, 0) for suffix in asked),
            completion_tokens=self._written * len(asked),
        )


GIVE_UP_AFTER = 16
"""Tasks in a row that found the judge unavailable, or one per worker; then it is gone.

A task that the judge rejects proves that it is there, so it does not count: otherwise a run whose
last unfinished tasks are all too long for the judge could never get past them.
"""
USELESS_AFTER = 8
"""Failures before a judge's first success ever, on several queries; then the judge is at fault."""
USELESS_QUERIES = 3
"""On so many different queries: a single one may be too long for any judge."""
CUT_OFF = "it was stopped before all items were answered"
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
    cut_off: list[Failure] = field(default_factory=list)
    """Tasks that a stop ended half way, with the answers they got; they did not fail."""
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
    Setting `stop` starts no more tasks and gives those in flight a few seconds to finish; what
    they were answered by then is kept. Those of a durable engine are left to the next run at once.
    What does not fit into the `budget` is not started. `ask` is how a task is put to the engine;
    each item alone when absent.
    Raises EngineRefused when the engine will not serve us at all.
    """
    observer.watched(partial(status_of, engine))
    grading = Grading()
    ask = ask or each_item_alone(engine)
    failed_queries: set[str] = set()
    unavailable = 0

    def settle(task: GradingTask, graded: EngineAnswers) -> None:
        nonlocal unavailable
        if graded.unavailable and stop.is_set():
            grading.spent += graded.usage
            if any(answer.status not in NO_ANSWER for answer in graded.answers):
                cut = Failure(task.key, task.query_id, task.candidate, CUT_OFF, graded.answers)
                grading.cut_off.append(cut)
            return
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
        failure = Failure(
            task.key, task.query_id, task.candidate, reason, graded.answers, graded.rejected
        )
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

    await run_workers(
        work,
        concurrency,
        stop=stop,
        grace=0.0 if engine.durable else GRACE_SECONDS,
        stopping=None if engine.durable else partial(drop_after, engine),
    )
    grading.stopped = stop.is_set()
    return grading


def _all_known(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers | None:
    """Return a task's answers when none is left to ask, as after items were only removed."""
    items = len(task.suffixes) if task.items is None else task.items
    if len(known) < items:
        return None
    return EngineAnswers(tuple(known[item] for item in range(items)), Usage())


def _silent(answers: tuple[Answer, ...]) -> str | None:
    """Return why answers without a single probability are no judgment; None if they are one."""
    statuses = {answer.status for answer in answers}
    return WITHOUT_PROBABILITY.get(statuses.pop()) if len(statuses) == 1 else None


def grading_prompt(template: Path | None) -> GradingPrompt:
    """Return the packaged grading prompt, or the user's own."""
    return GradingPrompt(Template.load("grade", template))


class HashedPrompt(Protocol):
    """A grading prompt, or a method with its prompt."""

    @property
    def hash(self) -> str:
        """Hex hash of all that decides what the judge is asked."""
        ...


def fingerprint(identity: EngineIdentity, prompt: HashedPrompt) -> JudgeFingerprint:
    """Return everything that can change this judge's probabilities."""
    return JudgeFingerprint(**asdict(identity), template=prompt.hash)
