"""Prediction of a run's time, from the work that is left and the measured speed.

The time of one response alone is split into time per item and time per new prompt token. The gain
of concurrency is measured with a few responses and extrapolated to the run's number in flight by
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
"""Maximum number of prompts to tokenize, because a person is waiting."""
LONG_SECONDS = 600.0
"""A longer run gets a warning."""
SPREAD = 1.4
"""Factor, either way, by which predictions were off at most on the servers tested."""
ASSUMED_ITEMS = GOLD[0].items
"""Checklist assumed for a query whose checklist is not written yet."""
SALT = "00000000"
"""A placeholder as long as the salt of prompts that are new to a server."""


@dataclass(frozen=True, slots=True)
class RunSize:
    """The work that is left in a run."""

    responses: int
    items: int
    tokens: int
    """Prompt tokens to compute, with a perfect prefix cache."""
    assumed: int
    """Responses whose checklist is not written yet."""


@dataclass(frozen=True, slots=True)
class TaskSize:
    """The work of one response."""

    items: int
    tokens: int
    """Prompt tokens that the server has not cached; 0 for a repeated response."""


@dataclass(frozen=True, slots=True)
class TimedTask:
    """A reference response and its time."""

    place: int
    """Index in `GOLD`."""
    fresh: bool
    """True if it was new to the server."""
    seconds: float


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Reference responses that were asked concurrently."""

    tasks: Sequence[TimedTask]
    seconds: float
    """From the first request to the last answer."""


@dataclass(frozen=True, slots=True)
class GoldTimes:
    """Measured times of reference responses."""

    alone: float
    """Seconds of the first response, new to the server, with nothing else in flight."""
    again: float | None
    """Seconds of the same response repeated; None if it was not."""
    at_once: AtOnce | None
    """None if nothing was asked concurrently."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Seconds per item and per new token with nothing else in flight."""

    per_item: float
    per_token: float

    def seconds(self, size: TaskSize | RunSize) -> float:
        """Return the sequential time of some work."""
        return self.per_item * size.items + self.per_token * size.tokens


@dataclass(frozen=True, slots=True)
class RunForecast:
    """Predicted time of a run."""

    responses: int
    """Responses left to judge."""
    items: int
    assumed: int
    """Responses whose checklist is not written yet; typical items are assumed."""
    in_flight: int
    seconds: float
    seconds_low: float
    seconds_high: float
    at_once_measured: bool
    """True if the gain of concurrency was measured; else the range covers none to full gain."""

    @property
    def long(self) -> bool:
        """True if the user should know before starting the run."""
        return self.seconds > LONG_SECONDS


async def measure_run(config: RunConfig, engine: Engine) -> RunSize:
    """Return the work that is left, without asking the judge or the author.

    Raise RocketEvalError if the benchmark cannot be read, or the run has another judge.
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
    """Return the size of each task for a server that has cached only their common prefix."""
    prompts = [[task.prefix + task.suffixes[place] for place in task.left()] for task in tasks]
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
    """Extrapolate the speedup of `at_once` concurrent responses to `in_flight` (Amdahl's law).

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
    """Predict the time of the run with `in_flight` concurrent responses."""
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
    """Return the pace; two extremes if time per item and per token cannot be separated."""
    alone, again, tokens = times.alone, times.again, max(1, size.tokens)
    if again is None:
        return [Pace(alone / size.items, 0.0), Pace(0.0, alone / tokens)]
    again = min(alone, again)
    return [Pace(again / size.items, (alone - again) / tokens)]


def _gains(
    paces: Sequence[Pace], at_once: AtOnce | None, sizes: Sequence[TaskSize], in_flight: int
) -> Interval:
    """Return the speedup of the run over sequential requests."""
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
    """Return the prediction in words, with its range.

    >>> in_words(RunForecast(60, 385, 0, 16, 2280.0, 1630.0, 3190.0, True))
    'about 38 minutes (27 to 53) for 60 responses'
    """
    count = count_of(forecast.responses, "response", "responses")
    size, unit = _unit(forecast.seconds)
    middle, low, high = (
        _brief(seconds / size)
        for seconds in (forecast.seconds, forecast.seconds_low, forecast.seconds_high)
    )
    assumed = (
        f", assuming {len(ASSUMED_ITEMS)} items if the checklist is not written yet"
        if forecast.assumed
        else ""
    )
    return f"about {middle} {unit} ({low} to {high}) for {count}{assumed}"


def _unit(seconds: float) -> tuple[float, str]:
    if seconds < 100:
        return 1.0, "seconds"
    return (60.0, "minutes") if seconds < 6000 else (3600.0, "hours")


def _brief(amount: float) -> str:
    """Format an amount with two significant digits.

    >>> _brief(0.4321), _brief(4.321), _brief(43.21), _brief(432.1)
    ('0.4', '4.3', '43', '430')
    """
    if amount >= 100:
        return f"{round(amount, -1):,.0f}"
    return f"{amount:.0f}" if amount >= 10 else f"{amount:.1f}"
