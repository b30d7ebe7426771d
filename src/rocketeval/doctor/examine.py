"""The examination: identify the judge, ask it what is known, ask again, ask much at once.

With one item a call this is about a hundred small requests; where a call takes all items of a
response, about forty.
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
from rocketeval.engines.base import Engine, EngineFinding
from rocketeval.errors import EngineError, EngineUnavailable, RequestRejected, RocketEvalError
from rocketeval.grading.loop import fingerprint
from rocketeval.observer import Observer
from rocketeval.prices import priced
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Answer, GradingTask, JudgeFingerprint, Usage
from rocketeval.workers import run_workers

SCHEMA = 1
"""Of `to_json`; raised when a name in it changes its meaning or goes."""


class DoctorVerdict(StrEnum):
    """Whether the judge will do."""

    READY = "ready"
    CARE = "usable with care"
    UNUSABLE = "do not use"


@dataclass(frozen=True, slots=True)
class DoctorFigures:
    """What was measured; None where it was not."""

    items: int | None = None
    """Items with known answers that were asked."""
    answered: int | None = None
    """Of these, how many got a probability."""
    right: int | None = None
    accuracy: float | None = None
    """At 0.5; a missing answer is not a right one."""
    accuracy_low: float | None = None
    """Lower end of the 95 % Wilson interval."""
    accuracy_high: float | None = None
    auc: float | None = None
    yes_bias: float | None = None
    """Share of the items to be answered no that were answered yes."""
    no_bias: float | None = None
    """Share of the items to be answered yes that were answered no."""
    mass: float | None = None
    """Mean P(yes)+P(no)."""
    latency_seconds: float | None = None
    """One response with `latency_items` items, nothing else in flight, nothing cached."""
    latency_items: int | None = None
    items_per_second: float | None = None
    """With `in_flight` responses at once, half of them new to the server."""
    in_flight: int | None = None
    repeat_alone: float | None = None
    """Largest difference of p_yes between two times with nothing else in flight."""
    repeat_together: float | None = None
    """Largest difference of p_yes between alone and among others in flight."""


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that was found out about a judge."""

    findings: Sequence[EngineFinding]
    figures: DoctorFigures
    gold: Sequence[GoldAnswer]
    """Every item with a known answer, as it was answered the first time."""
    fingerprint: JudgeFingerprint | None
    """None when the judge could not be identified."""
    usage: Usage
    """What asking the gold items cost; an engine's own probe comes on top."""
    seconds: float
    """Wall time of all of it."""
    run: RunForecast | None = None
    """How long the config's run will take; None without a config, where nothing is left to judge,
    and where it is not known."""

    @property
    def verdict(self) -> DoctorVerdict:
        """Bad findings rule a judge out; notes that give advice ask for care."""
        if any(finding.level == "bad" for finding in self.findings):
            return DoctorVerdict.UNUSABLE
        return DoctorVerdict.CARE if self.reasons else DoctorVerdict.READY

    @property
    def reasons(self) -> list[EngineFinding]:
        """The findings behind the verdict; none when the judge is ready."""
        bad = [finding for finding in self.findings if finding.level == "bad"]
        return bad or [
            finding for finding in self.findings if finding.level == "note" and finding.advice
        ]

    def to_json(self, price: PriceConfig | None = None) -> dict[str, object]:
        """Return it for machines; names stay as they are within a `schema`."""
        judge = self.fingerprint
        return {
            "schema": SCHEMA,
            "verdict": self.verdict.name.lower(),
            "reasons": [finding.name.strip() for finding in self.reasons],
            "judge": None if judge is None else judge.parts,
            "findings": [
                {**asdict(finding), "name": finding.name.strip()} for finding in self.findings
            ],
            "figures": asdict(self.figures),
            **({} if self.run is None else {"run": asdict(self.run)}),
            "gold": [_gold_row(gold) for gold in self.gold],
            "usage": asdict(priced(self.usage, price)),
            "seconds": round(self.seconds, 3),
        }


def _gold_row(gold: GoldAnswer) -> Mapping[str, Any]:
    return {
        "case": gold.case,
        "item": gold.item,
        "expected": "yes" if gold.expected else "no",
        "p_yes": gold.answer.p_yes,
        "mass": gold.answer.mass,
        "status": str(gold.answer.status),
    }


UNSEEN = 0.001
"""A score is never shown in such detail."""
MUCH = 0.1
"""If p_yes moves by more, single answers are not to be relied on."""
_WHY = {
    "llama": "llama.cpp: an answer depends on what its cache held before",
    "vllm": "in low precision an answer depends on what is computed beside it",
}
_ANY = "in low precision an answer depends on what is computed beside it, and on caches"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Two times the same items."""

    moved: float | None
    """Largest difference of p_yes; None when no item was answered twice."""
    vanished: int
    """Items that had a probability only one of the two times."""


def compare(first: Sequence[Answer], again: Sequence[Answer]) -> Repeat:
    """Return how far the answers to the same items are apart."""
    pairs = [(one.p_yes, other.p_yes) for one, other in zip(first, again, strict=True)]
    moves = [abs(one - other) for one, other in pairs if one is not None and other is not None]
    vanished = sum((one is None) != (other is None) for one, other in pairs)
    return Repeat(max(moves, default=None), vanished)


def repeat_finding(name: str, repeat: Repeat, server: str) -> EngineFinding:
    """Return what a repetition means for a person; `server` is the engine's version."""
    if repeat.moved is None:
        return EngineFinding(name, "no item was answered twice", "note")
    lost = f"; {repeat.vanished} answers came only once" if repeat.vanished else ""
    if repeat.moved == 0:
        return EngineFinding(name, f"the same to the last bit{lost}")
    told = f"p_yes moves by up to {repeat.moved:.2g}{lost}"
    if repeat.moved < UNSEEN:
        return EngineFinding(name, told)
    if repeat.moved <= MUCH:
        return EngineFinding(name, f"{told}: near ties may change places ({_why(server)})", "note")
    return EngineFinding(
        name,
        f"{told} ({_why(server)})",
        "note",
        "Near ties will change places when judged again: keep `ranking.tie_margin` wide, or serve "
        "the judge in higher precision.",
    )


def _why(server: str) -> str:
    return next((why for name, why in _WHY.items() if server.startswith(name)), _ANY)


RATE_SECONDS = 4.0
"""After this, no more responses are sent only to measure the rate."""
TOO_SLOW = 60.0
"""A judge that takes so many seconds for all items is not asked them again: a person waits."""
FULL = 1 + 4 * len(GOLD)
QUICK = 1 + len(GOLD)
BRIEF_SECONDS = 30.0
"""A slow judge is asked so much, at most, to see what several responses at once gain."""
LONG_RUN = (
    "Try a few queries first (`rocketeval run --limit 3`), take a smaller or faster judge, or "
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
    """Return all that can be found out about a judge in about a hundred small requests.

    What is wrong with the judge is a finding, not an exception. `quick` leaves out what takes
    longest: repeatability and rate. With the config of a `run`, it predicts how long that takes.
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
    """An examination under way."""

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
    """What the next finding is about, should it go wrong."""
    salt: str = field(default_factory=lambda: secrets.token_hex(4))
    """Makes prompts that no server has in its cache."""
    size: RunSize | None = None
    """What the run leaves to judge."""
    again: float | None = None
    """Seconds that the first gold response took when it was asked again."""
    at_once: AtOnce | None = None
    forecast: RunForecast | None = None

    async def identify(self) -> None:
        self.observer.stage_began("probe")
        self.judge = fingerprint(await self.engine.identify(), self.prompt)
        self.findings += await self.engine.findings()

    async def measure_run(self) -> None:
        """Find out how much the run has to ask; a run that cannot be read is a finding."""
        if self.run is None or self.engine.durable:
            return
        try:
            self.size = await measure_run(self.run, self.engine)
        except RocketEvalError as error:
            # No advice: it says nothing about the judge, and `run` will tell what to do.
            told = f"not predicted: {error.message}"
            self.findings.append(EngineFinding("run time", told, "note"))

    async def ask(self, *, quick: bool) -> None:
        """Ask every item once and, unless it is to be `quick`, again and among others."""
        if self._answers_much_later() or self._answers_from_a_record():
            return
        self.observer.stage_began("gold items", QUICK if quick else FULL)
        await self._latency()
        started = time.monotonic()
        first = await self._quality()
        if quick:
            return
        if self._took_too_long(time.monotonic() - started):
            await self._few_at_once()
            return
        await self._again_alone(first)
        await self._again_together(first)

    def _answers_much_later(self) -> bool:
        if not self.engine.durable:
            return False
        self.findings.append(
            EngineFinding(
                "gold items",
                "not asked: this engine answers hours later",
                "note",
                "Examine the same judge with `--engine openai`, if its endpoint answers at once.",
            )
        )
        return True

    def _answers_from_a_record(self) -> bool:
        if self.judge is None or self.judge.engine != "recorded":
            return False
        told = "not asked: a record answers only what was recorded"
        self.findings.append(EngineFinding("gold items", told, "note"))
        return True

    def _took_too_long(self, seconds: float) -> bool:
        if seconds <= TOO_SLOW:
            return False
        told = f"not asked: {len(self.gold)} items took this judge {_short(seconds)}"
        self.findings.append(EngineFinding("again", told, "note"))
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
        repeat = compare(first, await self._alone(again=True))
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
            EngineFinding("rate", f"{rate:.3g} items/s, responses in flight: {many}{self._size}"),
        ]

    async def _alone(self, *, again: bool = False) -> list[Answer]:
        """Return the answers to all gold items, asked with nothing else in flight."""
        answers: list[Answer] = []
        for place, case in enumerate(GOLD):
            started = time.monotonic()
            answers += await self._ask(case.task(self.prompt, ""))
            if again and place == 0:
                self.again = time.monotonic() - started
        return answers

    async def _together(self) -> tuple[list[Answer], int]:
        """Return the same answers, asked among others in flight, and how many others there were."""
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
        """Ask a slow judge a few short gold responses at once, to see what that gains."""
        latency = self.figures.latency_seconds
        if self.size is None or self.engine.in_flight == 1 or latency is None:
            return
        self.doing = "among others"
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
        """Predict how long the run takes; a long one turns the latency into a note."""
        alone, run = self.figures.latency_seconds, self.size
        if run is None or not run.responses or alone is None:
            return
        times = GoldTimes(alone, self.again, self.at_once)
        self.forecast = await predict(self.engine, self.prompt, run, times, self._in_flight)
        place = next(n for n, found in enumerate(self.findings) if found.name == "latency")
        told = f"{self.findings[place].told}; {in_words(self.forecast)}"
        found = EngineFinding("latency", told)
        if self.forecast.long:
            found = replace(found, level="note", advice=LONG_RUN)
        self.findings[place] = found

    @property
    def _in_flight(self) -> int:
        wanted = self.run.judge.concurrency if self.run else None
        return wanted or self.engine.in_flight

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
