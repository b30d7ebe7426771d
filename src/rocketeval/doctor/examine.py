"""The examination of a judge: identity, accuracy, repeatability and speed.

It sends about a hundred small requests, or about forty if one holds all items of a response.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from typing import Any

from rocketeval.config import PriceConfig, RunConfig
from rocketeval.doctor.forecast import (
    AtOnce,
    GoldTimes,
    RunForecast,
    RunSize,
    TimedTask,
    in_words,
    measure_run,
    predict,
)
from rocketeval.doctor.quality import GOLD, GoldAnswer, GoldCase, measure, quality_findings
from rocketeval.engines.base import Engine, EngineFinding, ask_engine
from rocketeval.errors import EngineError, EngineUnavailable, RequestRejected, RocketEvalError
from rocketeval.grading.loop import fingerprint
from rocketeval.observer import Observer
from rocketeval.prices import priced
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Answer, GradingTask, JudgeFingerprint, Usage
from rocketeval.text import count_of
from rocketeval.workers import run_workers

SCHEMA = 2
"""Version of `to_json`; raised when a key changes its meaning or is removed."""


class DoctorVerdict(StrEnum):
    """Overall result of an examination."""

    READY = "ready"
    CARE = "usable with care"
    UNUSABLE = "do not use"


@dataclass(frozen=True, slots=True)
class DoctorFigures:
    """Measured figures; None if not measured."""

    items: int | None = None
    """Reference items that were asked."""
    answered: int | None = None
    """Reference items that got a probability."""
    right: int | None = None
    accuracy: float | None = None
    """At a threshold of 0.5; a missing answer counts as wrong."""
    accuracy_low: float | None = None
    """Lower end of the 95% interval, from resampled responses."""
    accuracy_high: float | None = None
    auc: float | None = None
    yes_bias: float | None = None
    """Share of no items that were answered yes."""
    no_bias: float | None = None
    """Share of yes items that were answered no."""
    mass: float | None = None
    """Mean P(yes)+P(no)."""
    latency_seconds: float | None = None
    """One response with `latency_items` items, nothing else in flight, nothing cached."""
    latency_items: int | None = None
    items_per_second: float | None = None
    """With `in_flight` concurrent responses, half of them new to the server."""
    in_flight: int | None = None
    repeat_alone: float | None = None
    """Largest difference of p_yes between two passes with nothing else in flight."""
    repeat_together: float | None = None
    """Largest difference of p_yes between a pass alone and one with others in flight."""


@dataclass(frozen=True, slots=True)
class Examination:
    """The result of examining a judge."""

    findings: Sequence[EngineFinding]
    figures: DoctorFigures
    gold: Sequence[GoldAnswer]
    """Every reference item with its first answer."""
    fingerprint: JudgeFingerprint | None
    """None if the judge could not be identified."""
    usage: Usage
    """Usage of the reference items, without the engine's probe."""
    seconds: float
    """Total wall time."""
    run: RunForecast | None = None
    """Predicted time of the config's run; None if there is no run or no prediction."""

    @property
    def verdict(self) -> DoctorVerdict:
        """Unusable with a bad finding, usable with care with a note that has advice, else ready."""
        if any(finding.level == "bad" for finding in self.findings):
            return DoctorVerdict.UNUSABLE
        return DoctorVerdict.CARE if self.reasons else DoctorVerdict.READY

    @property
    def reasons(self) -> list[EngineFinding]:
        """The findings behind the verdict; empty if the judge is ready."""
        bad = [finding for finding in self.findings if finding.level == "bad"]
        return bad or [
            finding for finding in self.findings if finding.level == "note" and finding.advice
        ]

    def to_json(self, price: PriceConfig | None = None) -> dict[str, object]:
        """Return the JSON document; keys are stable within a `schema`."""
        judge = self.fingerprint
        return {
            "schema": SCHEMA,
            "verdict": self.verdict.name.lower(),
            "reasons": [finding.name.strip() for finding in self.reasons],
            "judge": None if judge is None else judge.parts,
            "findings": [
                {"name": f.name.strip(), "message": f.told, "level": f.level, "advice": f.advice}
                for f in self.findings
            ],
            "figures": asdict(self.figures),
            **({} if self.run is None else {"run": asdict(self.run)}),
            "reference_items": [_item_row(gold) for gold in self.gold],
            "usage": asdict(priced(self.usage, price)),
            "seconds": round(self.seconds, 3),
        }


def _item_row(gold: GoldAnswer) -> Mapping[str, Any]:
    return {
        "case": gold.case,
        "item": gold.item,
        "expected": "yes" if gold.expected else "no",
        "p_yes": gold.answer.p_yes,
        "mass": gold.answer.mass,
        "status": str(gold.answer.status),
    }


UNSEEN = 0.001
"""Smaller changes of p_yes never show in a score."""
MUCH = 0.1
"""If p_yes changes by more, single answers are unreliable."""
_WHY = {
    "llama": "llama.cpp: an answer depends on the state of its cache",
    "vllm": "in low precision, an answer depends on the rest of its batch",
}
_ANY = "in low precision, an answer depends on the rest of its batch and on caches"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Two passes over the same items, compared."""

    moved: float | None
    """Largest difference of p_yes; None if no item was answered twice."""
    vanished: int
    """Items that had a probability in only one of the two passes."""


def compare(first: Sequence[Answer], again: Sequence[Answer]) -> Repeat:
    """Compare two passes over the same items."""
    pairs = [(one.p_yes, other.p_yes) for one, other in zip(first, again, strict=True)]
    moves = [abs(one - other) for one, other in pairs if one is not None and other is not None]
    vanished = sum((one is None) != (other is None) for one, other in pairs)
    return Repeat(max(moves, default=None), vanished)


def repeat_finding(name: str, repeat: Repeat, server: str) -> EngineFinding:
    """Return the finding about a repetition; `server` is the engine's version."""
    if repeat.moved is None:
        return EngineFinding(name, "no item was answered twice", "note")
    once = count_of(repeat.vanished, "item", "items")
    lost = f"; {once} answered only once" if repeat.vanished else ""
    if repeat.moved == 0:
        return EngineFinding(name, f"identical to the last bit{lost}")
    message = f"p_yes changes by up to {repeat.moved:.2g}{lost}"
    if repeat.moved < UNSEEN:
        return EngineFinding(name, message)
    if repeat.moved <= MUCH:
        message = f"{message}: close candidates may swap ranks ({_why(server)})"
        return EngineFinding(name, message, "note")
    advice = (
        "Close candidates will swap ranks when judged again: keep `ranking.tie_margin` wide, or "
        "serve the judge in higher precision."
    )
    return EngineFinding(name, f"{message} ({_why(server)})", "note", advice)


def _why(server: str) -> str:
    return next((why for name, why in _WHY.items() if server.startswith(name)), _ANY)


RATE_SECONDS = 4.0
"""Seconds after which no more responses are sent only to measure the rate."""
TOO_SLOW = 60.0
"""Seconds for all items above which they are not repeated, because a person is waiting."""
FULL = 1 + 4 * len(GOLD)
QUICK = 1 + len(GOLD)
BRIEF_SECONDS = 30.0
"""Time budget for measuring the gain of concurrency with a slow judge."""
REFERENCE_ITEMS = "reference items"
CONCURRENT = "repeat concurrent"
LONG_RUN = (
    "Try a few queries first (`rocketeval run --limit 3`), use a smaller or faster judge, or "
    "serve it on more or faster machines."
)


async def examine(
    engine: Engine,
    prompt: GradingPrompt,
    *,
    quick: bool = False,
    observer: Observer | None = None,
    run: RunConfig | None = None,
) -> Examination:
    """Examine a judge; its problems become findings, not exceptions.

    `quick` skips repeatability and rate. With the config of a `run`, also predict its time.
    """
    visit = _Examiner(engine, prompt, observer or Observer(), run)
    started = time.monotonic()
    try:
        await visit.identify()
        await visit.measure_run()
        await visit.ask(quick=quick)
        await visit.predict()
    except EngineError as error:
        visit.findings.append(EngineFinding(visit.doing, error.message, "bad", error.hint))
    return Examination(
        findings=tuple(visit.findings),
        figures=visit.figures,
        gold=tuple(visit.gold),
        fingerprint=visit.judge,
        usage=visit.spent,
        seconds=time.monotonic() - started,
        run=visit.forecast,
    )


@dataclass
class _Examiner:
    """An examination in progress."""

    engine: Engine
    prompt: GradingPrompt
    observer: Observer
    run: RunConfig | None = None
    findings: list[EngineFinding] = field(default_factory=list)
    figures: DoctorFigures = field(default_factory=DoctorFigures)
    gold: list[GoldAnswer] = field(default_factory=list)
    judge: JudgeFingerprint | None = None
    spent: Usage = field(default_factory=Usage)
    asked: int = 0
    """Items asked so far."""
    doing: str = "judge"
    """Name of the finding if the current step fails."""
    salt: str = field(default_factory=lambda: secrets.token_hex(4))
    """Text that makes prompts no server has cached."""
    size: RunSize | None = None
    """The work that is left in the run."""
    again: float | None = None
    """Seconds of the first reference response when it was repeated."""
    at_once: AtOnce | None = None
    forecast: RunForecast | None = None

    async def identify(self) -> None:
        self.observer.stage_began("probe")
        self.judge = fingerprint(await self.engine.identify(), self.prompt)
        self.findings += await self.engine.findings()

    async def measure_run(self) -> None:
        """Measure the work of the run; a run that cannot be read becomes a finding."""
        if self.run is None or self.engine.durable:
            return
        try:
            self.size = await measure_run(self.run, self.engine)
        except RocketEvalError as error:
            # No advice: this is not about the judge, and `run` reports it with a hint.
            message = f"not predicted: {error.message}"
            self.findings.append(EngineFinding("run time", message, "note"))

    async def ask(self, *, quick: bool) -> None:
        """Ask every item once and, unless `quick`, again alone and concurrently."""
        if self._answers_much_later() or self._answers_from_a_record():
            return
        self.observer.stage_began(REFERENCE_ITEMS, QUICK if quick else FULL)
        await self._latency()
        started = time.monotonic()
        first = await self._quality()
        if quick:
            return
        if self._is_too_slow(time.monotonic() - started):
            await self._few_at_once()
            return
        await self._again_alone(first)
        await self._again_together(first)

    def _answers_much_later(self) -> bool:
        if not self.engine.durable:
            return False
        self.findings.append(
            EngineFinding(
                REFERENCE_ITEMS,
                "not asked: this engine answers hours later",
                "note",
                "Check the same judge with `--engine openai`, if its endpoint answers directly.",
            )
        )
        return True

    def _answers_from_a_record(self) -> bool:
        if self.judge is None or self.judge.engine != "recorded":
            return False
        message = "not asked: the recorded answers cover only the example benchmark"
        self.findings.append(EngineFinding(REFERENCE_ITEMS, message, "note"))
        return True

    def _is_too_slow(self, seconds: float) -> bool:
        if seconds <= TOO_SLOW:
            return False
        message = f"not measured: {len(self.gold)} items took this judge {_short(seconds)}"
        self.findings.append(EngineFinding("repeat", message, "note"))
        return True

    async def _latency(self) -> None:
        self.doing = "latency"
        case = GOLD[0]
        started = time.monotonic()
        await self._ask(case.task(self.prompt, self.salt))
        seconds, items = time.monotonic() - started, len(case.items)
        self.figures = replace(self.figures, latency_seconds=seconds, latency_items=items)
        self.findings.append(
            EngineFinding(
                "latency", f"{_short(seconds)} for one response with {items} items, alone"
            )
        )

    async def _quality(self) -> list[Answer]:
        self.doing = "accuracy"
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
            auc=quality.auc.value if quality.auc else None,
            yes_bias=quality.yes_bias,
            no_bias=quality.no_bias,
            mass=quality.mass,
        )
        self.findings += quality_findings(quality)
        return answers

    async def _again_alone(self, first: Sequence[Answer]) -> None:
        self.doing = "repeat alone"
        repeat = compare(first, await self._alone(again=True))
        self.figures = replace(self.figures, repeat_alone=repeat.moved)
        self.findings.append(repeat_finding(self.doing, repeat, self._server))

    async def _again_together(self, first: Sequence[Answer]) -> None:
        self.doing = CONCURRENT
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
            EngineFinding(
                "rate", f"{rate:.3g} items/s with {many} responses in flight{self._size}"
            ),
        ]

    async def _alone(self, *, again: bool = False) -> list[Answer]:
        """Return the answers to all reference items, asked with nothing else in flight."""
        answers: list[Answer] = []
        for place, case in enumerate(GOLD):
            started = time.monotonic()
            answers += await self._ask(case.task(self.prompt, ""))
            if again and place == 0:
                self.again = time.monotonic() - started
        return answers

    async def _together(self) -> tuple[list[Answer], int]:
        """Return the same answers, asked with others in flight, and the number of other items."""
        answers: dict[int, Sequence[Answer]] = {}
        others = 0
        timed: list[TimedTask] = []
        late = time.monotonic() + RATE_SECONDS
        waiting = iter(
            [(place, salt) for place in range(len(GOLD)) for salt in (self.salt + "+", "")]
        )

        async def work() -> None:
            nonlocal others
            for place, salt in waiting:
                if salt and time.monotonic() > late:
                    continue
                began = time.monotonic()
                found = await self._ask(GOLD[place].task(self.prompt, salt))
                timed.append(TimedTask(place, bool(salt), time.monotonic() - began))
                if salt:
                    others += len(found)
                else:
                    answers[place] = found

        started = time.monotonic()
        await run_workers(work, self.engine.in_flight)
        self.at_once = AtOnce(timed, time.monotonic() - started)
        return [answer for place in sorted(answers) for answer in answers[place]], others

    async def _few_at_once(self) -> None:
        """Ask a slow judge a few short responses concurrently, to measure the gain."""
        latency = self.figures.latency_seconds
        if self.size is None or self.engine.in_flight == 1 or latency is None:
            return
        self.doing = CONCURRENT
        each = latency * len(GOLD[1].items) / len(GOLD[0].items)
        many = min(self.engine.in_flight, len(GOLD) - 1, max(2, int(BRIEF_SECONDS / each)))
        waiting = iter(range(1, many + 1))
        timed: list[TimedTask] = []

        async def work() -> None:
            for place in waiting:
                began = time.monotonic()
                await self._ask(GOLD[place].task(self.prompt, self.salt + "+"))
                timed.append(TimedTask(place, True, time.monotonic() - began))

        started = time.monotonic()
        await run_workers(work, many)
        self.at_once = AtOnce(timed, time.monotonic() - started)

    async def predict(self) -> None:
        """Predict the time of the run; a long run turns the latency finding into a note."""
        alone, run = self.figures.latency_seconds, self.size
        if run is None or not run.responses or alone is None:
            return
        times = GoldTimes(alone, self.again, self.at_once)
        self.forecast = await predict(self.engine, self.prompt, run, times, self._in_flight)
        place = next(n for n, found in enumerate(self.findings) if found.name == "latency")
        message = f"{self.findings[place].told}; this run: {in_words(self.forecast)}"
        found = EngineFinding("latency", message)
        if self.forecast.long:
            found = replace(found, level="note", advice=LONG_RUN)
        self.findings[place] = found

    @property
    def _in_flight(self) -> int:
        wanted = self.run.judge.concurrency if self.run else None
        return wanted or self.engine.in_flight

    async def _ask(self, task: GradingTask) -> Sequence[Answer]:
        graded = await ask_engine(self.engine, task, {})
        self.spent += graded.usage
        self.asked += len(task.suffixes)
        self.observer.advanced()
        if graded.failure is None:
            return graded.answers
        kind = EngineUnavailable if graded.unavailable else RequestRejected
        fewer = "Fewer concurrent requests may help: lower `concurrency`."
        message = f"a reference response could not be judged: {graded.failure}"
        raise kind(message, hint=fewer if self.doing == CONCURRENT else "")

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
