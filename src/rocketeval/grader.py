"""A grader: scores of single responses, with every judged answer kept in a file.

Tests, scorers of other frameworks and rewards all use it. An answer that is in the file costs
nothing, even without a judge: a test suite runs offline from the file that an earlier run wrote.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any, TypeVar

from rocketeval.api import Judge, as_judge, as_query, as_text, checklist_items
from rocketeval.config import JudgeConfig, RunConfig, parse_config
from rocketeval.engines.base import Engine, EngineAnswers, create_engine, status_of
from rocketeval.errors import EngineError, EngineRefused, EngineUnavailable, RequestRejected
from rocketeval.hashing import combine, content_hash
from rocketeval.observer import EngineStatus
from rocketeval.records import (
    ASKED_AGAIN,
    Answer,
    Checklist,
    GradingTask,
    JudgeFingerprint,
    Query,
    Response,
    Status,
    Turn,
    Usage,
)
from rocketeval.scoring.rubric import GradedItem, score_of
from rocketeval.store.answer_file import AnswerFile

if TYPE_CHECKING:
    from rocketeval.checks.runner import CheckRunner
    from rocketeval.grading.ask import Method

__all__ = ["GradedItem", "Grader", "ResponseGrade", "ResponseToGrade"]

T = TypeVar("T")
Items = Sequence[str | Mapping[str, object]] | Checklist
"""Checklist items as texts or objects, or a checklist."""
PLACE = {"base_url", "api_key_env", "timeout", "patience", "concurrency", "session_header"}
"""Judge settings that may differ between machines that use the same judge."""
NEVER_KEPT = frozenset({Status.ERROR, *ASKED_AGAIN})
"""Statuses of replies that are no answers; the item is asked again."""
_log = logging.getLogger("rocketeval.grader")


@dataclass(frozen=True, slots=True)
class ResponseGrade:
    """The answers about one response, and its score from 0 to 1."""

    query: Query
    response: Response
    items: tuple[GradedItem, ...]
    """In checklist order."""
    score: float | None
    """Mean of the items' values by weight; None if no item has an answer."""
    low: float | None
    """Lower bound of the score, from the bounds of the answers."""
    high: float | None
    judge: JudgeFingerprint | None
    """None if code checks decided every item."""
    checklist: bytes
    """Hash of the checklist as scored."""
    usage: Usage = field(default_factory=Usage)
    """What this call spent; zero if every answer was reused."""
    reused: int = 0
    """Answers from the file."""

    @property
    def judged_by(self) -> str:
        """Name of the judge, or "code checks"."""
        return "code checks" if self.judge is None else self.judge.model

    @property
    def failed(self) -> tuple[GradedItem, ...]:
        """Items whose answer is more likely bad than good."""
        return tuple(item for item in self.items if item.passed is False)

    @property
    def unanswered(self) -> tuple[GradedItem, ...]:
        """Items without a usable answer."""
        return tuple(item for item in self.items if item.passed is None)


@dataclass(frozen=True, slots=True)
class ResponseToGrade:
    """One response to grade, as a caller gives it."""

    query: str | Query
    response: str | Response
    checklist: Items
    history: Sequence[Turn | Mapping[str, object]] = ()
    """Turns, or objects with `role` and `content`."""
    reference: str | None = None
    system: str | None = None
    context: str | Sequence[str] | None = None
    """Passages; a text is one passage."""
    about: str = ""
    """What is judged, for people who read the answer file; default: the start of the query."""

    def parts(self) -> tuple[Query, Response, Checklist]:
        """Return the records of this grading; ConfigError names what is wrong."""
        query = self.query
        if not isinstance(query, Query):
            query = as_query(query, self.history, self.reference, self.system, self.context)
        response = self.response
        if not isinstance(response, Response):
            response = Response(query.id, "response", as_text(response, "response"))
        checklist = self.checklist
        if not isinstance(checklist, Checklist):
            checklist = Checklist.from_items(query.id, checklist_items(checklist, "checklist"))
        return query, response, checklist


@dataclass(frozen=True, slots=True)
class _Found:
    """The answers to a task."""

    answers: tuple[Answer, ...]
    judge: JudgeFingerprint | None
    usage: Usage = field(default_factory=Usage)
    """What was spent now."""
    reused: int = 0


class Grader:
    """Scores responses with a judge and a checklist; answers in `answers` are reused.

    >>> import rocketeval
    >>> grader = Grader(rocketeval.ScriptedEngine(lambda prefix, item: 0.8))
    >>> graded = grader.grade("1 + 1?", "2", ["Is it right?", "Is it short?"])
    >>> graded.score, len(graded.failed), graded.usage.requests
    (0.8, 0, 2)
    >>> grader.grade("1 + 1?", "2", ["Is it short?"]).usage.requests
    0
    >>> grader.close()

    `judge` is a model name, a `Judge` or an engine. `answers` is the file of judged answers, shared
    by any number of processes; without it answers are kept in memory. With `offline`, the judge is
    never contacted and an answer that is not in the file is an error. `functions` names code checks
    of your own, `timeout` limits the seconds per response, `most_answers` the answers in memory.

    Works from synchronous code, from any event loop, and from many threads at once.
    """

    def __init__(
        self,
        judge: str | Judge | Engine,
        base_url: str | None = None,
        *,
        answers: Path | str | None = None,
        offline: bool = False,
        functions: Mapping[str, str] | None = None,
        timeout: float | None = None,
        most_answers: int | None = None,
    ) -> None:
        self.judge = as_judge(judge, base_url)
        self.offline = offline
        self.timeout = timeout
        self.spent = Usage()
        """What all calls spent."""
        self.reused = 0
        """Answers reused by all calls."""
        self.asked = 0
        """Items asked by all calls."""
        self._file = AnswerFile(None if answers is None else Path(answers), most_answers)
        self._config: RunConfig = parse_config(
            {
                "benchmark": {"path": "."},
                "judge": self.judge.settings,
                "method": {"options": {"functions": dict(functions or {})}},
            }
        )
        self._loop = _LoopThread()
        self._engine: Engine | None = None
        self._fingerprint: JudgeFingerprint | None = None
        self._contacted = False
        self._at_once: asyncio.Semaphore | None = None
        self._contacting: asyncio.Lock | None = None
        self._pending: dict[bytes, asyncio.Future[ResponseGrade]] = {}
        self._made: tuple[Method, CheckRunner] | None = None

    def grade(
        self,
        query: str | Query,
        response: str | Response,
        checklist: Items,
        *,
        history: Sequence[Turn | Mapping[str, object]] = (),
        reference: str | None = None,
        system: str | None = None,
        context: str | Sequence[str] | None = None,
    ) -> ResponseGrade:
        """Return the graded response; EngineError if the judge cannot answer."""
        one = ResponseToGrade(query, response, checklist, history, reference, system, context)
        return self.submit(one).result()

    async def grade_async(self, grading: ResponseToGrade) -> ResponseGrade:
        """Return the graded response, awaited in any event loop."""
        return await asyncio.wrap_future(self.submit(grading))

    def grade_all(self, gradings: Iterable[ResponseToGrade]) -> list[ResponseGrade | EngineError]:
        """Return the graded responses in order; an error in the place of one that failed."""
        return [_outcome(one) for one in [self.submit(grading) for grading in gradings]]

    def submit(self, grading: ResponseToGrade) -> Future[ResponseGrade]:
        """Start grading a response and return its future."""
        query, response, checklist = grading.parts()
        about = grading.about or query.text[:60]
        return self._loop.submit(traced(self._within(query, response, checklist, about)))

    @property
    def kept(self) -> int:
        """Answers in memory, at most `most_answers`."""
        return self._file.answers

    @property
    def status(self) -> EngineStatus:
        """Current status of the judge's engine, such as retried requests by reason."""
        return status_of(self._engine)

    def identify(self) -> JudgeFingerprint:
        """Return the judge, from the answer file if it is there; else the judge is contacted."""
        return self._loop.submit(self._identity()).result()

    def close(self) -> None:
        """Cancel responses in work, and close the judge; a later call contacts it again."""
        made, self._made = self._made, None
        if made is not None:
            made[1].close()
        engine, self._engine = self._engine, None
        self._loop.close(engine)
        self._contacted, self._contacting, self._at_once = False, None, None

    def __enter__(self) -> Grader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def _within(
        self, query: Query, response: Response, checklist: Checklist, about: str
    ) -> ResponseGrade:
        work = self._grade(query, response, checklist, about)
        if self.timeout is None:
            return await work
        try:
            return await asyncio.wait_for(work, self.timeout)
        except TimeoutError:
            raise EngineUnavailable(
                f"No answer within {self.timeout:g} s.", hint="Raise `timeout`, or check the judge."
            ) from None

    def _means(self) -> tuple[Method, CheckRunner]:
        """Return the grading method and the runner of code checks."""
        from rocketeval.checklists.rubric import rubric_options
        from rocketeval.checks.runner import CheckRunner
        from rocketeval.grading.methods import create_method

        if self._made is None:
            runner = CheckRunner(rubric_options(self._config).checks)
            self._made = create_method(self._config), runner
        return self._made

    async def _grade(
        self, query: Query, response: Response, checklist: Checklist, about: str
    ) -> ResponseGrade:
        from rocketeval.checklists.rubric import bind_checklist, rubric_options
        from rocketeval.prompts.render import shown_checklist, shown_query, shown_response

        bound = bind_checklist(checklist, query, rubric_options(self._config))
        shown = shown_response(response, context="context" in bound.uses)
        key = combine(shown_query(query, bound.uses), shown, shown_checklist(bound))
        while key in self._pending:
            # The same response is being graded: its answers will be in the file.
            await asyncio.wait([self._pending[key]])
        own = self._pending[key] = asyncio.get_running_loop().create_future()
        try:
            method, runner = self._means()
            task = method.prompt.render(query, response, bound, key)
            decided = await runner.run(task.checks)
            found = await self._answers(task, decided, about)
        finally:
            del self._pending[key]
            own.cancel()
        details = bound.every_detail
        rows = zip(bound.items, details, found.answers, strict=True)
        items = tuple(GradedItem(*row) for row in rows)
        score, low, high = score_of(items)
        return ResponseGrade(
            query,
            response,
            items,
            score,
            low,
            high,
            found.judge,
            bound.scoring_hash,
            found.usage,
            found.reused,
        )

    async def _answers(
        self, task: GradingTask, decided: Mapping[int, Answer], about: str
    ) -> _Found:
        """Return all answers to a task; EngineError if the judge gave some of them no answer."""
        wanted = task.left(decided)
        hashes = {place: _prompt_hash(task, place) for place in wanted}
        if not wanted:
            return _Found(EngineAnswers.of(task, decided, Usage()).answers, None)
        judge = await self._identity()
        known = self._known(judge, hashes)
        if len(known) < len(wanted):
            judge = await self._contact(task, len(wanted) - len(known))
            known = self._known(judge, hashes)
        found = EngineAnswers.of(task, {**decided, **known}, Usage())
        if len(known) < len(wanted):
            found = await self._ask(task, {**decided, **known})
            fresh = {
                hashes[place]: found.answers[place]
                for place in wanted
                if place not in known and found.answers[place].status not in NEVER_KEPT
            }
            self._file.add(judge, fresh, found.usage, about)
            self.spent += found.usage
            self.asked += len(fresh)
        self.reused += len(known)
        if found.failure is not None:
            raise _failed(found, about)
        return _Found(found.answers, judge, found.usage, len(known))

    def _known(self, judge: JudgeFingerprint, hashes: Mapping[int, str]) -> dict[int, Answer]:
        places = list(hashes)
        found = self._file.find(judge, [hashes[place] for place in places])
        kept = {at: answer for at, answer in found.items() if answer.status not in NEVER_KEPT}
        return {places[at]: answer for at, answer in kept.items()}

    async def _ask(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        assert self._engine is not None
        assert self._at_once is not None
        async with self._at_once:
            return await self._means()[0].asking(self._engine)(task, known)

    async def _identity(self) -> JudgeFingerprint:
        """Return the judge; contact it only if the answer file does not know it."""
        if self._fingerprint is None and self.judge.engine is None:
            self._fingerprint = self._file.judge(self._asked_as())
        if self._fingerprint is None:
            if self.offline and self.judge.engine is None:
                raise EngineRefused(
                    f"Offline, and {self._file.path} has no answers of {self._config.judge.model}.",
                    hint="Run once with the judge, then keep the file.",
                )
            self._fingerprint = await self._identify()
        return self._fingerprint

    async def _contact(self, task: GradingTask, missing: int) -> JudgeFingerprint:
        """Return the judge after checking, once, that it is the one in the answer file."""
        if self.offline:
            raise EngineRefused(
                f"Offline: {missing} of {len(task.suffixes)} items have no recorded answer.",
                hint=f"Run once with the judge, then keep {self._file.path or 'the answer file'}.",
            )
        before = self._fingerprint
        now = await self._identify()
        if before is not None and before.changes(now):
            changed = ", ".join(before.changes(now))
            _log.warning(
                "The judge %s changed (%s): answers of the former one are not reused.",
                now.model,
                changed,
            )
        self._fingerprint = now
        return now

    async def _identify(self) -> JudgeFingerprint:
        from rocketeval.grading.loop import fingerprint

        if self._contacting is None:
            self._contacting = asyncio.Lock()
        async with self._contacting:
            if self._contacted and self._fingerprint is not None:
                return self._fingerprint
            engine = self._engine
            if engine is None:
                config = JudgeConfig.model_validate(self.judge.settings)
                engine = self._engine = self.judge.engine or create_engine(config)
            identity = await engine.identify()
            found = fingerprint(identity, self._means()[0]).known_as(self._file.judges)
            self._at_once = asyncio.Semaphore(self._config.judge.concurrency or engine.in_flight)
            self._contacted = True
            self._fingerprint = found
            self._file.add_judge(self._asked_as(), found)
            return found

    def _asked_as(self) -> str:
        from rocketeval.grading.stage import NOT_ASKED_WITH

        settings = self._config.judge.model_dump(mode="json", exclude=NOT_ASKED_WITH | PLACE)
        return content_hash(settings, self._means()[0].hash).hex()


def traced(work: Coroutine[Any, Any, ResponseGrade]) -> Coroutine[Any, Any, ResponseGrade]:
    """Return `work` as a span of OpenTelemetry if its SDK is in use, under the caller's span.

    Nothing is exported unless the program has set up a tracer.
    """
    if "opentelemetry.sdk.trace" not in sys.modules:
        return work
    return _in_span(work, import_module("opentelemetry.context").get_current())


async def _in_span(work: Coroutine[Any, Any, ResponseGrade], parent: Any) -> ResponseGrade:
    tracer = import_module("opentelemetry.trace").get_tracer("rocketeval")
    with tracer.start_as_current_span("rocketeval.grade", context=parent) as span:
        span.set_attribute("gen_ai.evaluation.name", "rocketeval.checklist")
        graded = await work
        if graded.score is not None:
            span.set_attribute("gen_ai.evaluation.score.value", graded.score)
        if graded.judge is not None:
            span.set_attribute("gen_ai.request.model", graded.judge.model)
        span.set_attribute("rocketeval.items", len(graded.items))
        span.set_attribute("rocketeval.answers.reused", graded.reused)
        span.set_attribute("rocketeval.judge.requests", graded.usage.requests)
        return graded


def _prompt_hash(task: GradingTask, place: int) -> str:
    """Return the identity of an item's prompt and of the words it may be answered with."""
    labels = task.labels_of(place)
    words = () if labels is None else (list(labels.words), labels.na)
    return content_hash("prompt", task.prefix + task.suffixes[place], *words).hex()


def _failed(found: EngineAnswers, about: str) -> EngineError:
    kind = EngineUnavailable if found.unavailable else RequestRejected
    return kind(f"The judge gave no answer about {about!r}: {found.failure}")


def _outcome(one: Future[ResponseGrade]) -> ResponseGrade | EngineError:
    try:
        return one.result()
    except EngineError as error:
        return error


async def _end_work(engine: Engine | None) -> None:
    """Cancel all other tasks of this loop, wait until they have ended, and close the engine."""
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)
    if engine is not None:
        await engine.aclose()


class _LoopThread:
    """An event loop in a thread of its own, started with the first work."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: asyncio.AbstractEventLoop | None = None
        self._thread: Thread | None = None

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run a coroutine in the loop and return its future."""
        with self._lock:
            if self._running is None:
                self._running = asyncio.new_event_loop()
                self._thread = Thread(
                    target=self._running.run_forever, name="rocketeval", daemon=True
                )
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._running)

    def close(self, engine: Engine | None) -> None:
        """Cancel the work that is not done, close the engine, and end the loop."""
        with self._lock:
            loop, self._running = self._running, None
        if loop is not None and self._thread is not None:
            asyncio.run_coroutine_threadsafe(_end_work(engine), loop).result()
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join()
            loop.close()
