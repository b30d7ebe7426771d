"""How long the config's run will take: what is left to judge, at the pace that was measured.

Alone, a response takes time for its items and time for the tokens that the server has not seen. How
much several at once gain is measured with a few, and carried to as many as a run has in flight by
Amdahl's law.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import load
from rocketeval.config import RunConfig
from rocketeval.doctor.quality import GOLD
from rocketeval.engines.base import Engine
from rocketeval.grading.methods import create_method, with_method
from rocketeval.grading.plan import BYTES_PER_TOKEN, plan_grading, tokenize_prompts, trie_tokens
from rocketeval.grading.work import PlannedInputs, foresee_checklists
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Checklist, GradingTask, Interval
from rocketeval.store.run import RunStore
from rocketeval.text import count_of

MOST_PROMPTS = 400
"""Prompts to tokenize at most: a person is waiting."""
LONG_SECONDS = 600.0
"""A run that takes longer than this is worth a warning."""
SPREAD = 1.4
"""A prediction is off by at most this factor, either way, on the servers it was checked with."""
ASSUMED_ITEMS = GOLD[0].items
"""Stand for the checklist of a query whose own is not written yet."""
SALT = "00000000"
"""Of the length of the salt in prompts that are new to a server."""


@dataclass(frozen=True, slots=True)
class RunSize:
    """What a config leaves to judge."""

    responses: int
    items: int
    tokens: int
    """Prompt tokens to compute, with a perfect prefix cache."""
    assumed: int
    """Of the responses, those whose checklist is not written yet."""


@dataclass(frozen=True, slots=True)
class TaskSize:
    """What one response asks of a server."""

    items: int
    tokens: int
    """Prompt tokens that a server has not seen: none where it was asked before."""


@dataclass(frozen=True, slots=True)
class TimedTask:
    """A gold response, and how long it took."""

    place: int
    """In `GOLD`."""
    fresh: bool
    """Whether the server had not seen it."""
    seconds: float


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Gold responses that were asked together."""

    tasks: Sequence[TimedTask]
    seconds: float
    """From the first request to the last answer."""


@dataclass(frozen=True, slots=True)
class GoldTimes:
    """What was measured of the judge's speed."""

    alone: float
    """Seconds for the first gold response, new to the server, with nothing else in flight."""
    again: float | None
    """The same when it was asked again; None when it was not."""
    at_once: AtOnce | None
    """None when nothing was asked together."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How long a response takes with nothing else in flight."""

    per_item: float
    per_token: float

    def seconds(self, size: TaskSize | RunSize) -> float:
        """Return how long so much takes, one response after the other."""
        return self.per_item * size.items + self.per_token * size.tokens


@dataclass(frozen=True, slots=True)
class RunForecast:
    """How long a run will take."""

    responses: int
    """Responses left to judge."""
    items: int
    assumed: int
    """Of the responses, those whose checklist is not written yet: typical items are assumed."""
    in_flight: int
    seconds: float
    seconds_low: float
    seconds_high: float
    at_once_measured: bool
    """Whether it was measured how much several responses at once gain; else the range holds both
    nothing and all."""

    @property
    def long(self) -> bool:
        """Whether a person should know before starting it."""
        return self.seconds > LONG_SECONDS


async def measure_run(config: RunConfig, engine: Engine) -> RunSize:
    """Return what is left to judge, without asking the judge or paying an author.

    Raises RocketEvalError where the benchmark cannot be read, or the run has another judge.
    """
    config = with_method(config)
    store = RunStore(config.run_path)
    loaded = load(open_benchmark(config.benchmark), config.benchmark)
    checklists = await foresee_checklists(store, config, loaded.queries)
    unwritten = set(checklists.unwritten)
    checklists.made |= {name: Checklist(name, ASSUMED_ITEMS) for name in unwritten}
    checklists.unwritten.clear()
    queries = {query.id: query for query in loaded.queries}
    plan = await plan_grading(
        store,
        config,
        engine,
        PlannedInputs(queries, loaded.responses, checklists),
        create_method(config),
        most_prompts=MOST_PROMPTS,
    )
    assumed = sum(one.query_id in unwritten for one in loaded.responses()) if unwritten else 0
    return RunSize(plan.to_judge, plan.items, plan.computed_tokens, assumed)


async def measure_tasks(engine: Engine, tasks: Sequence[GradingTask]) -> list[TaskSize]:
    """Return the size of each task for a server that has seen only what all of them share."""
    prompts = [[task.prefix + suffix for suffix in task.suffixes] for task in tasks]
    every = [prompt for own in prompts for prompt in own]
    tokens = await tokenize_prompts(engine, every)
    unit = BYTES_PER_TOKEN if tokens is None else 1
    sequences = iter([prompt.encode() for prompt in every] if tokens is None else tokens)
    by_task = [[next(sequences) for _ in own] for own in prompts]
    common = trie_tokens([one for own in by_task for one in own]).common
    return [
        TaskSize(len(own), max(0, trie_tokens(own).computed - common) // unit) for own in by_task
    ]


def gain(at_once: float, speedup: float, in_flight: int) -> float:
    """Return how many times faster `in_flight` responses at once are than one after the other.

    It was measured that `at_once` of them are `speedup` times faster (Amdahl's law).

    >>> gain(6, 6, 16), gain(6, 1, 16)
    (16.0, 1.0)
    """
    if at_once <= 1 or in_flight == 1:
        return 1.0
    serial = max(0.0, (at_once / speedup - 1) / (at_once - 1))
    return in_flight / (1 + serial * (in_flight - 1))


async def predict(
    engine: Engine, prompt: GradingPrompt, run: RunSize, times: GoldTimes, in_flight: int
) -> RunForecast:
    """Return how long the run takes with so many responses in flight."""
    tasks = [case.task(prompt, salt) for salt in (SALT, "") for case in GOLD]
    sizes = (await measure_tasks(engine, tasks))[: len(GOLD)]
    in_flight = max(1, min(in_flight, run.responses))
    paces = _paces(times, sizes[0])
    gains = _gains(paces, times.at_once, sizes, in_flight)
    alone = [pace.seconds(run) for pace in paces]
    return RunForecast(
        responses=run.responses,
        items=run.items,
        assumed=run.assumed,
        in_flight=in_flight,
        seconds=sum(alone) / len(alone) / gains.value,
        seconds_low=min(alone) / gains.high / SPREAD,
        seconds_high=max(alone) / gains.low * SPREAD,
        at_once_measured=gains.low == gains.high,
    )


def _paces(times: GoldTimes, size: TaskSize) -> list[Pace]:
    """Return the pace; two where it is not known whether items or new tokens take the time."""
    alone, again, tokens = times.alone, times.again, max(1, size.tokens)
    if again is None:
        return [Pace(alone / size.items, 0.0), Pace(0.0, alone / tokens)]
    again = min(alone, again)
    return [Pace(again / size.items, (alone - again) / tokens)]


def _gains(
    paces: Sequence[Pace], at_once: AtOnce | None, sizes: Sequence[TaskSize], in_flight: int
) -> Interval:
    """Return how many times faster the run is than with one response after the other."""
    if in_flight == 1:
        return Interval(1.0, 1.0, 1.0)
    if at_once is None:
        return Interval(in_flight**0.5, 1.0, float(in_flight))
    asked = [
        sizes[one.place] if one.fresh else replace(sizes[one.place], tokens=0)
        for one in at_once.tasks
    ]
    alone = sum(pace.seconds(size) for pace in paces for size in asked) / len(paces)
    seconds = max(1e-9, at_once.seconds)
    together = sum(one.seconds for one in at_once.tasks) / seconds
    gained = gain(together, max(1e-9, alone / seconds), in_flight)
    return Interval(gained, gained, gained)


def in_words(forecast: RunForecast) -> str:
    """Return the prediction as a person reads it: its middle and its range.

    >>> in_words(RunForecast(60, 385, 0, 16, 2280.0, 1630.0, 3190.0, True))
    '60 responses: about 38 minutes (27 to 53)'
    """
    count = count_of(forecast.responses, "response", "responses")
    size, unit = _unit(forecast.seconds)
    middle, low, high = (
        _brief(seconds / size)
        for seconds in (forecast.seconds, forecast.seconds_low, forecast.seconds_high)
    )
    assumed = (
        f", assuming {len(ASSUMED_ITEMS)} items where the checklist is not written yet"
        if forecast.assumed
        else ""
    )
    return f"{count}: about {middle} {unit} ({low} to {high}){assumed}"


def _unit(seconds: float) -> tuple[float, str]:
    if seconds < 100:
        return 1.0, "seconds"
    return (60.0, "minutes") if seconds < 6000 else (3600.0, "hours")


def _brief(amount: float) -> str:
    """Return two digits of an amount.

    >>> _brief(0.4321), _brief(4.321), _brief(43.21), _brief(432.1)
    ('0.4', '4.3', '43', '430')
    """
    if amount >= 100:
        return f"{round(amount, -1):,.0f}"
    return f"{amount:.0f}" if amount >= 10 else f"{amount:.1f}"
