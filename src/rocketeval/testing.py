"""Contract checks for engines, benchmarks and scorers, yours included; they need no pytest."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import MISSING, dataclass, fields

from rocketeval.benchmarks.base import check_benchmark
from rocketeval.engines.base import USABLE, Engine, EngineAnswers, Likelihood
from rocketeval.engines.readout import YES_NO
from rocketeval.engines.scripted import exact_answer
from rocketeval.errors import EngineRefused, RequestRejected
from rocketeval.hashing import content_hash
from rocketeval.records import Answer, GradingTask, Status
from rocketeval.scoring.base import check_scorer

ITEMS = (
    "Does the response name a city?",
    "Is the response written in verse?",
    "Does the response say Paris?",
)
TEXT = "The capital of France is Paris."
ROUNDED = 1e-3
"""Maximum of a log-probability, which may exceed zero in low precision."""
LISTED_MASS = 1.001
"""Maximum sum of listed probabilities, which may exceed one in low precision."""


@dataclass(frozen=True, slots=True)
class EngineCase:
    """An engine to check, with the parameters of the checks."""

    create: Callable[[], Engine]
    """Creates an engine; every check creates and closes its own."""
    rejected: str
    """A text that makes the engine reject a prompt, such as one that is far too long."""
    tolerance: float = 0.0
    """Allowed difference of two answers to the same prompt; real servers are rarely exact."""
    labels: tuple[str, ...] = YES_NO
    """The words it answers with, best first, as in its config."""


async def check_engine(
    create: Callable[[], Engine],
    *,
    rejected: str,
    tolerance: float = 0.0,
    labels: tuple[str, ...] = YES_NO,
) -> None:
    """Raise AssertionError, naming the broken rule, if the engine violates the contract."""
    case = EngineCase(create, rejected, tolerance, labels)
    for check in ENGINE_CHECKS:
        await check(case)


async def check_identity(case: EngineCase) -> None:
    """Check that two engines with the same config have the same identity, every time."""
    async with _engine(case) as engine, _engine(case) as other:
        first = await engine.identify()
        needed = [getattr(first, part.name) for part in fields(first) if part.default is MISSING]
        assert all(isinstance(part, str) and part for part in needed), (
            f"every part of the identity must be a text, got {first}"
        )
        assert await engine.identify() == first, "identify must return the same every time"
        assert first.same_as(await other.identify()), "equal configs must have one identity"


async def check_order(case: EngineCase) -> None:
    """Check that there is one answer per item, in checklist order."""
    async with _engine(case) as engine:
        forward = await _graded(engine, _task(case, ITEMS))
        backward = await _graded(engine, _task(case, ITEMS[::-1]))
        _assert_same(forward, backward[::-1], case, "answers must follow the order of the items")


async def check_probabilities(case: EngineCase) -> None:
    """Check that probabilities lie within their bounds, and exist only if the status says so."""
    async with _engine(case) as engine:
        for answer in await _graded(engine, _task(case, ITEMS)):
            _assert_sound(answer)


async def check_labels(case: EngineCase) -> None:
    """Check that answers on a scale of labels name the most likely one; yes/no answers do not."""
    scale = len(case.labels) > 2
    async with _engine(case) as engine:
        for answer in await _graded(engine, _task(case, ITEMS)):
            if not scale or answer.p_yes is None:
                assert answer.text is None, f"there is no label to name: {answer}"
                continue
            assert answer.text in case.labels, f"text must be one of {case.labels}: {answer}"
            logps = (answer.logp_yes, answer.logp_no)
            assert logps == (None, None), f"a scale has no yes and no: {answer}"


async def check_repeatable(case: EngineCase) -> None:
    """Check that a task gets the same answers again, alone or concurrently with others."""
    async with _engine(case) as engine:
        tasks = [
            _task(case, ITEMS, response=f"Paris, says number {number}.") for number in range(3)
        ]
        alone = [await _graded(engine, task) for task in tasks]
        together = await asyncio.gather(*(_graded(engine, task) for task in tasks))
        for one, other in zip(alone, together, strict=True):
            _assert_same(one, other, case, "the same task must get the same answers")


async def check_known_answers(case: EngineCase) -> None:
    """Check that known answers are returned unchanged and not asked again."""
    known = {0: exact_answer(0.123), 2: Answer(Status.HIDDEN, mass=0.0)}
    async with _engine(case) as engine:
        graded = await engine.grade(_task(case, ITEMS), known)
        _assert_complete(graded, len(ITEMS))
        kept = graded.answers[0] == known[0] and graded.answers[2] == known[2]
        assert kept, f"known answers must come back unchanged, got {graded.answers}"
        _assert_sound(graded.answers[1])
        everything = {**known, 1: exact_answer(0.5)}
        idle = await engine.grade(_task(case, ITEMS), everything)
        assert idle.answers == tuple(everything[item] for item in range(len(ITEMS))), (
            f"known answers must come back unchanged, got {idle.answers}"
        )
        assert idle.usage.requests == 0, "no request must be sent if every answer is known"


async def check_failure(case: EngineCase) -> None:
    """Check that a rejected item is an error with a reason, and other answers are kept."""
    items = (ITEMS[0], case.rejected, ITEMS[1], ITEMS[2])
    known = {3: exact_answer(0.123)}
    async with _engine(case) as engine:
        graded = await engine.grade(_task(case, items), known)
        assert graded.failure, "a task with a rejected item must name its failure"
        assert len(graded.answers) == len(items), "a failed task still has one answer per item"
        first, rejected, _, last = graded.answers
        assert first.status is not Status.ERROR, "the answer before the rejected item is lost"
        assert rejected == Answer(Status.ERROR), f"a rejected item must be an error: {rejected}"
        assert last == known[3], "a known answer is lost when another item fails"
        assert not graded.unavailable, "a rejected item does not make the engine unavailable"
        _assert_sound((await _graded(engine, _task(case, ITEMS)))[0])


async def check_usage(case: EngineCase) -> None:
    """Check that usage is counted."""
    async with _engine(case) as engine:
        usage = (await engine.grade(_task(case, ITEMS), {})).usage
        assert usage.requests > 0, "a graded task must count its requests"
        spent = (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens, usage.seconds)
        assert min(spent) >= 0, f"usage must not be negative: {usage}"


async def check_write(case: EngineCase) -> None:
    """Check that a prompt gets a text and its usage, unless the engine refuses to write any."""
    async with _engine(case) as engine:
        try:
            written = await engine.write("Name one city, then stop.", max_tokens=8)
        except EngineRefused:
            return
        assert isinstance(written.text, str), f"write must return text, got {written.text!r}"
        assert written.text, "write returned no text"
        assert written.usage.requests > 0, "a written text must count its requests"
        assert isinstance(written.finished, bool), "write must say whether the text is finished"
        drawn = await engine.write("Name one city.", max_tokens=8, temperature=1.0, seed=7)
        assert isinstance(drawn.text, str), f"write must return text, got {drawn.text!r}"


async def check_likelihood(case: EngineCase) -> None:
    """Check log-probabilities of a text's tokens, unless the engine refuses to give any."""
    prompt = "Name the capital of France."
    async with _engine(case) as engine:
        try:
            first = await engine.likelihood(prompt, TEXT)
        except EngineRefused:
            return
        assert first.logprobs, "a text has at least one token"
        assert all(-math.inf < logp <= ROUNDED for logp in first.logprobs), (
            f"log-probabilities must be finite and at most zero: {first.logprobs}"
        )
        assert first.usage.requests > 0, "a likelihood must count its requests"
        again = await engine.likelihood(prompt, TEXT)
        _assert_as_likely(first, again, case, "a text must be as likely again")
        more = await engine.likelihood(prompt, TEXT + " It is.")
        assert len(more.logprobs) > len(first.logprobs), "a longer text must have more tokens"
        try:
            empty = await engine.likelihood(prompt, "")
        except RequestRejected:
            return
        raise AssertionError(f"an empty text has no likelihood, got {empty}")


async def check_close(case: EngineCase) -> None:
    """Check that an engine can be closed before use, after use, and twice."""
    unused = case.create()
    await unused.aclose()
    async with _engine(case) as engine:
        await engine.grade(_task(case, ITEMS[:1]), {})
        await engine.aclose()


ENGINE_CHECKS: tuple[Callable[[EngineCase], Awaitable[None]], ...] = (
    check_identity,
    check_order,
    check_probabilities,
    check_labels,
    check_repeatable,
    check_known_answers,
    check_failure,
    check_usage,
    check_write,
    check_likelihood,
    check_close,
)


@asynccontextmanager
async def _engine(case: EngineCase) -> AsyncIterator[Engine]:
    engine = case.create()
    try:
        yield engine
    finally:
        await engine.aclose()


def _task(
    case: EngineCase, items: Sequence[str], response: str = "Paris, of course."
) -> GradingTask:
    prefix = f"Query: What is the capital of France?\nResponse: {response}\nQuestion: "
    choice = f"{', '.join(case.labels[:-1])} or {case.labels[-1]}"
    suffixes = tuple(f"{item}\nAnswer with one word, {choice}.\nAnswer:" for item in items)
    return GradingTask(
        content_hash("check", prefix, suffixes), "capital", "checked", prefix, suffixes
    )


async def _graded(engine: Engine, task: GradingTask) -> tuple[Answer, ...]:
    graded = await engine.grade(task, {})
    _assert_complete(graded, len(task.suffixes))
    return graded.answers


def _assert_complete(graded: EngineAnswers, items: int) -> None:
    assert graded.failure is None, f"a harmless task failed: {graded.failure}"
    assert len(graded.answers) == items, (
        f"{items} items must get {items} answers, got {len(graded.answers)}"
    )


def _assert_sound(answer: Answer) -> None:
    assert answer.status is not Status.ERROR, "an error without a failure"
    usable = answer.status in USABLE
    assert (answer.p_yes is not None) == usable, (
        f"a probability exists exactly where the status is ok or truncated, got {answer}"
    )
    if answer.p_yes is not None:
        assert answer.p_low is not None, f"bounds are missing: {answer}"
        assert answer.p_high is not None, f"bounds are missing: {answer}"
        assert 0.0 <= answer.p_low <= answer.p_yes <= answer.p_high <= 1.0, (
            f"p_yes must lie within its bounds, and they within 0 and 1: {answer}"
        )
    if answer.mass is not None:
        assert 0.0 <= answer.mass <= LISTED_MASS, f"mass must lie within 0 and 1: {answer}"


def _assert_same(
    one: Sequence[Answer], other: Sequence[Answer], case: EngineCase, rule: str
) -> None:
    for mine, yours in zip(one, other, strict=True):
        if mine.p_yes is None or yours.p_yes is None:
            # An inexact server may give either status near a limit.
            same = case.tolerance > 0 or mine.status is yours.status
        else:
            same = math.isclose(mine.p_yes, yours.p_yes, rel_tol=0, abs_tol=case.tolerance)
        assert same, f"{rule}: {mine} is not {yours}"


def _assert_as_likely(one: Likelihood, other: Likelihood, case: EngineCase, rule: str) -> None:
    same = len(one.logprobs) == len(other.logprobs) and all(
        math.isclose(math.exp(mine), math.exp(yours), rel_tol=0, abs_tol=case.tolerance)
        for mine, yours in zip(one.logprobs, other.logprobs, strict=True)
    )
    assert same, f"{rule}: {one.logprobs} is not {other.logprobs}"


__all__ = ["ENGINE_CHECKS", "EngineCase", "check_benchmark", "check_engine", "check_scorer"]
