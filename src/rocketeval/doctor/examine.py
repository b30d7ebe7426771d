"""The examination: identify the judge, ask it what is known, ask again, ask much at once.

With one item a call this is about a hundred small requests; where a call takes all items of a
response, about forty.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from rocketeval.doctor.examination import Examination, Figures
from rocketeval.doctor.gold import GOLD, GoldCase
from rocketeval.doctor.quality import GoldAnswer, measure, quality_findings
from rocketeval.doctor.repeat import compare, repeat_finding
from rocketeval.engines.base import Engine, Finding
from rocketeval.errors import EngineError, EngineUnavailable, RequestRejected
from rocketeval.grading.judge import fingerprint
from rocketeval.observing import Observer
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Answer, GradingTask, JudgeFingerprint, Usage
from rocketeval.workers import run_workers

RATE_SECONDS = 4.0
"""After this, no more responses are sent only to measure the rate."""
TOO_SLOW = 60.0
"""A judge that takes so many seconds for all items is not asked them again: a person waits."""
FULL = 1 + 4 * len(GOLD)
QUICK = 1 + len(GOLD)


async def examine(
    engine: Engine, prompt: GradingPrompt, *, quick: bool = False, observer: Observer | None = None
) -> Examination:
    """Return all that can be found out about a judge in about a hundred small requests.

    What is wrong with the judge is a finding, not an exception. `quick` leaves out what takes
    longest: repeatability and rate.
    """
    visit = _Visit(engine, prompt, observer or Observer())
    started = time.monotonic()
    try:
        await visit.identify()
        await (visit.brief() if quick else visit.whole())
    except EngineError as error:
        visit.findings.append(Finding(visit.doing, error.message, "bad", error.hint))
    return Examination(
        findings=tuple(visit.findings),
        figures=visit.figures,
        gold=tuple(visit.gold),
        fingerprint=visit.judge,
        usage=visit.spent,
        seconds=time.monotonic() - started,
    )


@dataclass
class _Visit:
    """An examination under way."""

    engine: Engine
    prompt: GradingPrompt
    observer: Observer
    findings: list[Finding] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    gold: list[GoldAnswer] = field(default_factory=list)
    judge: JudgeFingerprint | None = None
    spent: Usage = field(default_factory=Usage)
    asked: int = 0
    """Items asked so far."""
    doing: str = "judge"
    """What the next finding is about, should it go wrong."""
    salt: str = field(default_factory=lambda: secrets.token_hex(4))
    """Makes prompts that no server has in its cache."""

    async def identify(self) -> None:
        self.observer.stage_began("probe")
        self.judge = fingerprint(await self.engine.identify(), self.prompt)
        self.findings += await self.engine.findings()

    async def brief(self) -> None:
        """Ask every item once."""
        if self._answers_much_later():
            return
        self.observer.stage_began("gold items", QUICK)
        await self._latency()
        await self._quality()

    async def whole(self) -> None:
        """Ask every item once, again, and among others."""
        if self._answers_much_later():
            return
        self.observer.stage_began("gold items", FULL)
        await self._latency()
        started = time.monotonic()
        first = await self._quality()
        if self._took_too_long(time.monotonic() - started):
            return
        await self._again_alone(first)
        await self._again_together(first)

    def _answers_much_later(self) -> bool:
        if not self.engine.durable:
            return False
        self.findings.append(
            Finding(
                "gold items",
                "not asked: this engine answers hours later",
                "note",
                "Examine the same judge with `--engine openai`, if its endpoint answers at once.",
            )
        )
        return True

    def _took_too_long(self, seconds: float) -> bool:
        if seconds <= TOO_SLOW:
            return False
        told = f"not asked: {len(self.gold)} items took this judge {_short(seconds)}"
        self.findings.append(Finding("again", told, "note"))
        return True

    async def _latency(self) -> None:
        self.doing = "latency"
        case = GOLD[0]
        started = time.monotonic()
        await self._ask(case.task(self.prompt, self.salt))
        seconds, items = time.monotonic() - started, len(case.items)
        self.figures = replace(self.figures, latency_seconds=seconds, latency_items=items)
        self.findings.append(
            Finding("latency", f"{_short(seconds)} for one response with {items} items, alone")
        )

    async def _quality(self) -> list[Answer]:
        self.doing = "judgement"
        answers = await self._alone()
        asked = [(case, *pair) for case in GOLD for pair in _pairs(case)]
        self.gold = [
            GoldAnswer(case.name, item, expected, answer)
            for (case, item, expected), answer in zip(asked, answers, strict=True)
        ]
        quality = measure(self.gold)
        self.figures = replace(
            self.figures,
            items=quality.items,
            answered=quality.answered,
            right=quality.right,
            accuracy=quality.accuracy.value,
            accuracy_low=quality.accuracy.low,
            accuracy_high=quality.accuracy.high,
            auc=quality.auc,
            yes_bias=quality.yes_bias,
            no_bias=quality.no_bias,
            mass=quality.mass,
        )
        self.findings += quality_findings(quality)
        return answers

    async def _again_alone(self, first: Sequence[Answer]) -> None:
        self.doing = "again alone"
        repeat = compare(first, await self._alone())
        self.figures = replace(self.figures, repeat_alone=repeat.moved)
        self.findings.append(repeat_finding(self.doing, repeat, self._server))

    async def _again_together(self, first: Sequence[Answer]) -> None:
        self.doing = "among others"
        started = time.monotonic()
        again, others = await self._together()
        seconds = max(1e-9, time.monotonic() - started)
        rate = (len(first) + others) / seconds
        repeat = compare(first, again)
        many = min(self.engine.in_flight, 2 * len(GOLD))
        self.figures = replace(
            self.figures, repeat_together=repeat.moved, items_per_second=rate, in_flight=many
        )
        self.findings += [
            repeat_finding(self.doing, repeat, self._server),
            Finding("rate", f"{rate:.3g} items/s, responses in flight: {many}{self._size}"),
        ]

    async def _alone(self) -> list[Answer]:
        """Return the answers to all gold items, asked with nothing else in flight."""
        return [answer for case in GOLD for answer in await self._ask(case.task(self.prompt, ""))]

    async def _together(self) -> tuple[list[Answer], int]:
        """Return the same answers, asked among others in flight, and how many others there were."""
        answers: dict[int, Sequence[Answer]] = {}
        others = 0
        late = time.monotonic() + RATE_SECONDS
        waiting = iter(
            [(place, salt) for place in range(len(GOLD)) for salt in (self.salt + "+", "")]
        )

        async def work() -> None:
            nonlocal others
            for place, salt in waiting:
                if salt and time.monotonic() > late:
                    continue
                found = await self._ask(GOLD[place].task(self.prompt, salt))
                if salt:
                    others += len(found)
                else:
                    answers[place] = found

        await run_workers(work, self.engine.in_flight)
        return [answer for place in sorted(answers) for answer in answers[place]], others

    async def _ask(self, task: GradingTask) -> Sequence[Answer]:
        graded = await self.engine.grade(task, {})
        self.spent += graded.usage
        self.asked += len(task.suffixes)
        self.observer.advanced()
        if graded.failure is None:
            return graded.answers
        kind = EngineUnavailable if graded.unavailable else RequestRejected
        raise kind(
            f"a gold response could not be judged: {graded.failure}",
            hint="Fewer at once may help: lower `concurrency`."
            if self.doing == "among others"
            else "",
        )

    @property
    def _size(self) -> str:
        tokens = self.spent.prompt_tokens / max(1, self.asked)
        return f", prompts of about {round(tokens, -1):.0f} tokens" if tokens >= 5 else ""

    @property
    def _server(self) -> str:
        return self.judge.version if self.judge else ""


def _pairs(case: GoldCase) -> list[tuple[str, bool]]:
    return list(zip(case.items, case.expected, strict=True))


def _short(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
