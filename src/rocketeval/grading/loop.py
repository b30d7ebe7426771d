"""The grading loop: tasks in, judgments out, a bounded number in flight.

Also the budget that reserves the most a task can cost before the judge is asked, and the judge's
fingerprint, made from the engine and the grading prompt.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from rocketeval.budget import TEMPLATE_TOKENS, PricedBudget, Reservation, most_tokens, most_written
from rocketeval.checks.runner import CheckRunner
from rocketeval.engines.base import (
    Engine,
    EngineAnswers,
    EngineIdentity,
    RefusedPartway,
    drop_after,
    status_of,
)
from rocketeval.errors import (
    ConfigError,
    EngineError,
    EngineRefused,
    EngineUnavailable,
    JudgeChanged,
)
from rocketeval.grading.ask import Ask, each_item_independently
from rocketeval.grading.canaries import Canaries
from rocketeval.observer import Observer
from rocketeval.prompts.render import GradingPrompt, Template
from rocketeval.records import (
    ASKED_AGAIN,
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
"""The first contact sends at most this many questions, of at most this many tokens."""


def most_for_contact(template: int = TEMPLATE_TOKENS) -> Usage:
    """Return the most tokens a first contact uses, given the length of the chat template."""
    asked = CONTACT_CALLS * (CONTACT_TOKENS + template)
    return Usage(prompt_tokens=asked, completion_tokens=CONTACT_CALLS)


def calls(engine: Engine, items: int, *, alone: bool = False) -> int:
    """Return how many requests an engine makes for this many items of one response.

    `alone`: the method sends each item in its own request, even if the engine accepts several.
    """
    per_call: int | None = 1 if alone else getattr(engine, "items_per_call", 1)
    return -(-items // (per_call or max(1, items))) * requests_per_item(engine)


def requests_per_item(engine: Engine) -> int:
    """Return how often an engine asks an item: several times if it counts written answers."""
    return int(getattr(engine, "requests_per_item", 1))


class GradingBudget:
    """A budget that admits a task only if the most it can cost still fits."""

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
        self._reserved: dict[bytes, Reservation] = {}

    async def learn(self, *, contacted: bool = False, probes: Usage | None = None) -> None:
        """Measure the chat template, and count the first contact.

        `contacted` means that its cost is already reserved. It stays reserved if the engine does
        not count its `probes`.
        """
        tokens = await self._engine.tokenise(["."])
        if tokens:
            self._template = len(tokens[0])
        most = most_for_contact() if contacted else most_for_contact(self._template)
        if not contacted:
            self._budget.keep_back(most)
        if probes is not None:
            answered = min(probes.requests, probes.completion_tokens) if probes.prompt_tokens else 0
            lost = probes.requests - answered
            self._budget.settle_kept_back(most, probes, untold=lost / CONTACT_CALLS)

    async def admit(
        self, task: GradingTask, known: Mapping[int, Answer], ending: Callable[[], bool]
    ) -> bool:
        """Reserve the most the task can cost; False if it does not fit, or while `ending`."""
        reserved = await self._budget.reserve(self._most(task, known))
        if reserved is None:
            return False
        if ending():
            self._budget.settle(reserved, Usage())
            return False
        self._reserved[task.key] = reserved
        return True

    def settle(self, task: GradingTask, known: Mapping[int, Answer], graded: EngineAnswers) -> None:
        """Count what an admitted task cost."""
        self._settle(self._reserved.pop(task.key), task, known, graded)

    def _settle(
        self,
        reserved: Reservation,
        task: GradingTask,
        known: Mapping[int, Answer],
        graded: EngineAnswers,
    ) -> None:
        """Count what requests cost.

        Requests without an answer may still be billed, so they count in full. So does everything
        if the engine reports no tokens.
        """
        asked = answered = len(task.suffixes) - len(known)
        if graded.failure:
            answered -= sum(
                answer.status in NO_ANSWER
                for place, answer in enumerate(graded.answers)
                if place not in known
            )
        usage = graded.usage
        lost = max(0, usage.requests - calls(self._engine, answered, alone=self._alone))
        silent = bool(answered) and not usage.prompt_tokens
        untold = silent + lost / max(1, calls(self._engine, asked, alone=self._alone))
        self._budget.settle(reserved, usage, untold=untold)

    def within(self, ask: Ask) -> Ask:
        """Return `ask` for requests that are left out, as failed, if they do not fit.

        The same task may be asked twice at once.
        """

        async def asked(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            most = self._most(task, known)
            reserved = await self._budget.reserve(most) if self._budget.has_room(most) else None
            if reserved is None:
                return EngineAnswers.of(task, known, Usage(), "it does not fit into the budget")
            graded = await ask(task, known)
            self._settle(reserved, task, known, graded)
            return graded

        return asked

    def _most(self, task: GradingTask, known: Mapping[int, Answer]) -> Usage:
        prefix = most_tokens(task.prefix, self._template)
        asked = [task.suffixes[place] for place in task.left(known)]
        times = requests_per_item(self._engine)
        written = max(self._written, int(getattr(self._engine, "most_written", 1)))
        return Usage(
            prompt_tokens=times * sum(prefix + most_tokens(suffix, 0) for suffix in asked),
            completion_tokens=times * written * len(asked),
        )


GIVE_UP_AFTER = 16
"""Consecutive tasks, or one per worker, that find the judge unavailable before grading gives up.

A task that the judge rejects does not count, because it proves that the judge is reachable.
Otherwise a run whose last unfinished tasks are all too long for the judge could never finish.
"""
USELESS_AFTER = 8
"""Failures before the judge's first success after which the judge is considered unusable."""
USELESS_QUERIES = 3
"""The failures must cover this many queries: a single query may be too long for any judge."""
CUT_OFF = "the run was stopped before all items were answered"
THOUGHT = "the judge started to think instead of answering"
"""Failure reason of a task if all its items have this status."""


@dataclass
class Grading:
    """The result of a grading loop."""

    judged: int = 0
    spent: Usage = field(default_factory=Usage)
    """Usage of judged and failed tasks together."""
    probes: Usage = field(default_factory=Usage)
    """Usage of the requests that probed the judge before."""
    failures: list[Failure] = field(default_factory=list)
    cut_off: list[Failure] = field(default_factory=list)
    """Tasks interrupted by a stop, with the answers they got; they did not fail."""
    stopped: bool = False
    """True if the loop was asked to stop."""
    unreachable: bool = False
    """True if it gave up because too many consecutive tasks found the judge unavailable."""
    useless: bool = False
    """True if it gave up because none of the first tasks could be judged."""


def spent_in_all(grading: Grading, canaries: Canaries | None) -> Usage:
    """Return the usage of a grading, with the probes before it and the items asked again."""
    again = Usage() if canaries is None else canaries.facts.usage
    return grading.spent + grading.probes + again


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
    checks: CheckRunner | None = None,
    canaries: Canaries | None = None,
    into: Grading | None = None,
) -> Grading:
    """Grade every task in order, at most `concurrency` at once, and `record` each judgment.

    `proven` means that this judge has finished tasks before, so a failure is the task's own.
    Setting `stop`, or a refusal, starts no more tasks and gives those in flight a few seconds to
    finish; answers received by then are kept. Tasks of a durable engine are left to the next run
    at once. Tasks that do not fit into the `budget` are not started. `ask` sends a task to the
    engine; by default each item is asked independently. `checks` runs the items that code decides,
    and `canaries` asks some finished items again. `into` is the result of an earlier loop, to be
    continued; after an error it has what was done. Raises EngineRefused if the engine rejects all
    requests, and any other EngineError that the engine raises.
    """
    observer.watched(partial(status_of, engine))
    grading = into or Grading()
    if spent_in_all(grading, canaries).requests:
        observer.spent(spent_in_all(grading, canaries))
    ask = ask or each_item_independently(engine)
    failed_queries: set[str] = set()
    unavailable = 0
    refused = False

    def cut_off(task: GradingTask, graded: EngineAnswers) -> None:
        grading.spent += graded.usage
        if any(answer.status not in NO_ANSWER for answer in graded.answers):
            cut = Failure(task.key, task.query_id, task.candidate, CUT_OFF, graded.answers)
            grading.cut_off.append(cut)

    def settle(task: GradingTask, graded: EngineAnswers) -> None:
        nonlocal unavailable
        if graded.unavailable and (stop.is_set() or refused):
            cut_off(task, graded)
            return
        unavailable = unavailable + 1 if graded.unavailable else 0
        grading.unreachable = grading.unreachable or unavailable >= min(GIVE_UP_AFTER, concurrency)
        grading.spent += graded.usage
        fine = not graded.failure and _all_ok(graded.answers)
        exceeded = None if fine or graded.failure else _exceeded(graded.answers)
        reason = None if fine else graded.failure or exceeded or _silent(graded.answers)
        if reason is None:
            judgment = Judgment(
                task.key,
                task.query_id,
                task.candidate,
                graded.answers,
                graded.usage,
                task.neutralised + graded.neutralised,
            )
            record(judgment)
            grading.judged += 1
            grading.useless = False
            observer.judged(judgment)
            return
        failure = Failure(
            task.key,
            task.query_id,
            task.candidate,
            reason,
            graded.answers,
            graded.rejected,
            exceeded is not None,
        )
        grading.failures.append(failure)
        if not failure.by_check:
            failed_queries.add(failure.query_id)
        grading.useless = (
            not (proven or grading.judged)
            and len(failed_queries) >= USELESS_QUERIES
            and sum(not each.by_check for each in grading.failures) >= USELESS_AFTER
        )
        observer.spent(spent_in_all(grading, canaries))
        observer.failed(failure)

    def ending() -> bool:
        return stop.is_set() or refused or grading.unreachable or grading.useless

    async def ask_judge(task: GradingTask, had: Mapping[int, Answer]) -> EngineAnswers:
        try:
            return await ask(task, had)
        except JudgeChanged:
            raise
        except EngineError as error:
            graded = error.graded if isinstance(error, RefusedPartway) else None
            if budget:
                nothing = EngineAnswers.of(task, had, Usage(), error.message)
                budget.settle(task, had, graded or nothing)
            if graded is not None:
                cut_off(task, graded)
            if isinstance(error, RefusedPartway):
                raise EngineRefused(error.message, hint=error.hint) from None
            raise

    async def work() -> None:
        nonlocal refused
        try:
            await grade_tasks()
        except EngineError:
            refused = True
            raise

    async def grade_tasks() -> None:
        while not ending():
            task = next(tasks, None)
            if task is None:
                return
            had = known.get(task.key, {})
            if task.checks and checks is not None:
                missing = {item: one for item, one in task.checks.items() if item not in had}
                had = {**had, **await checks.run(missing)}
            if budget and not await budget.admit(task, had, ending):
                return
            graded = _all_known(task, had) or await ask_judge(task, had)
            if budget:
                budget.settle(task, had, graded)
            judged = grading.judged
            if canaries is not None and graded.failure is None:
                canaries.expect(task)
            settle(task, graded)
            if canaries is not None and grading.judged > judged:
                asked = canaries.facts.items
                await canaries.finished(task, graded.answers)
                if canaries.facts.items > asked:
                    observer.spent(spent_in_all(grading, canaries))

    await run_workers(
        work,
        concurrency,
        stop=stop,
        grace=0.0 if engine.durable else GRACE_SECONDS,
        stopping=None if engine.durable else partial(drop_after, engine),
        grace_on_error=True,
    )
    grading.stopped = stop.is_set()
    return grading


def stop_without_judge(grading: Grading, safe: int) -> None:
    """Raise an error if grading gave up on the judge."""
    if grading.unreachable:
        last = grading.failures[-1]
        raise EngineUnavailable(
            f"Judge unreachable. Last failure, {last.candidate!r} on query {last.query_id!r}: "
            f"{last.reason}",
            hint=f"{safe} judgments are safe: run the same command again to continue.",
        )
    nothing = bool(grading.failures) and not safe and not grading.stopped
    if nothing and all(each.by_check for each in grading.failures):
        last = grading.failures[-1]
        raise ConfigError(
            f"A code check exceeded its limits for all {len(grading.failures)} responses; the "
            f"last, {last.candidate!r} on query {last.query_id!r}: {last.reason}",
            hint="Correct the check, or raise method.options.check_seconds or check_megabytes, and "
            "run the same command again: the judge's answers are kept.",
        )
    if grading.useless or nothing:
        last = grading.failures[-1]
        raise EngineRefused(
            f"The judge answered none of the first {len(grading.failures)} responses; the last, "
            f"{last.candidate!r} on query {last.query_id!r}: {last.reason}",
            hint="If the prompts are too long, serve the judge with a larger context (vLLM: "
            "--max-model-len, llama.cpp: -c). If the server allows fewer `top_logprobs` or none, "
            "`rocketeval doctor` shows it.",
        )


def _all_known(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers | None:
    """Return a task's answers if all are known, as after items were only removed."""
    items = len(task.suffixes) if task.items is None else task.items
    if len(known) < items:
        return None
    return EngineAnswers(tuple(known[item] for item in range(items)), Usage())


def _all_ok(answers: tuple[Answer, ...]) -> bool:
    ok = Status.OK
    return all(answer.status is ok for answer in answers)


def _exceeded(answers: tuple[Answer, ...]) -> str | None:
    """Return which code check exceeded its limits; None if none did.

    An engine that leaves an item without an answer says so itself.
    """
    for place, answer in enumerate(answers):
        if answer.status is Status.ERROR:
            return f"item {place + 1}: the check failed: {answer.text} (see method.options)"
    return None


def _silent(answers: tuple[Answer, ...]) -> str | None:
    """Return why answers are not a judgment; None if they are one.

    An answer that a fault of the moment took away is asked again by the next command.
    """
    for place, answer in enumerate(answers):
        if answer.status is not Status.OK and answer.status in ASKED_AGAIN:
            return f"item {place + 1}: the server {ASKED_AGAIN[answer.status]}"
    thought = all(answer.status is Status.THINKING for answer in answers)
    return THOUGHT if answers and thought else None


def grading_prompt(template: Path | None) -> GradingPrompt:
    """Return the grading prompt: the packaged one, or the user's."""
    return GradingPrompt(Template.load("grade", template))


class HashedPrompt(Protocol):
    """A grading prompt, or a method with its prompt."""

    @property
    def hash(self) -> str:
        """Hex hash of everything that determines the judge's prompts."""
        ...


def fingerprint(identity: EngineIdentity, prompt: HashedPrompt) -> JudgeFingerprint:
    """Return the fingerprint: everything that can change this judge's probabilities."""
    return JudgeFingerprint(**asdict(identity), template=prompt.hash)
