"""Predicted run time, compared with simulated judges of known speed."""

from __future__ import annotations

import asyncio
import heapq
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest

from rocketeval.config import RunConfig, load_config, parse_config
from rocketeval.doctor import examine as module
from rocketeval.doctor.examine import DoctorVerdict, Examination, examine
from rocketeval.doctor.forecast import SPREAD, RunForecast
from rocketeval.engines.base import EngineAnswers
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.pipeline import Run
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Answer, GradingTask
from support.in_process import cli

from .judges import EXPECTED

PROMPT = GradingPrompt()


class Clock:
    """A simulated clock that advances only when every task waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self._waiting: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    async def sleep(self, seconds: float) -> None:
        """Wait on the simulated clock."""
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._waiting, (self.now + seconds, next(self._order), woken))
        await woken

    async def run(self) -> None:
        """Advance to the next waiting task whenever no task is running."""
        while True:
            for _ in range(20):
                await asyncio.sleep(0)
            if self._waiting:
                self.now, _, woken = heapq.heappop(self._waiting)
                woken.set_result(None)


class PacedJudge(ScriptedEngine):
    """A judge with a known time per item and per new byte, sequential or concurrent."""

    def __init__(self, clock: Clock, item: float, byte: float, *, at_once: int, shared: bool):
        super().__init__(_known_answer, model="paced", in_flight=at_once)
        self._clock, self._item, self._byte = clock, item, byte
        self._processor = asyncio.Semaphore(1 if shared else at_once)
        self._seen: set[str] = set()

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer after the simulated time."""
        new = [] if task.prefix in self._seen else [task.prefix, *task.suffixes]
        self._seen.add(task.prefix)
        async with self._processor:
            unread = sum(len(text.encode()) for text in new)
            await self._clock.sleep(self._item * len(task.suffixes) + self._byte * unread)
        return await super().grade(task, known)


def _known_answer(_: str, suffix: str) -> float:
    return 0.9 if EXPECTED.get(suffix.splitlines()[0], True) else 0.1


@contextmanager
def ticking(clock: Clock) -> Iterator[None]:
    """Run the clock in the background."""
    running = asyncio.get_running_loop().create_task(clock.run())
    try:
        yield
    finally:
        running.cancel()


@pytest.fixture
def demo(tmp_path: Path) -> RunConfig:
    """The quickstart, judged by a scripted judge."""
    cli(tmp_path, "init", "demo", "--model", "paced")
    return load_config(tmp_path / "demo" / "rocketeval.yaml")


async def examined(
    judge: PacedJudge, clock: Clock, run: RunConfig, patch: pytest.MonkeyPatch, *, quick: bool
) -> Examination:
    """Examine a judge on the simulated clock."""
    patch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock.now))
    with ticking(clock):
        return await examine(judge, PROMPT, quick=quick, run=run)


async def judged(judge: PacedJudge, clock: Clock, run: RunConfig) -> float:
    """Return the actual time of the run on that clock."""
    started, whole = clock.now, Run(run, judge=judge)
    with ticking(clock):
        whole.load()
        await whole.checklist()
        await whole.grade()
    return clock.now - started


@pytest.mark.parametrize(
    ("at_once", "shared"), [(1, True), (8, True), (8, False)], ids=["one", "shared", "hosted"]
)
@pytest.mark.parametrize(("item", "byte"), [(0.2, 0.0), (0.05, 0.002)], ids=["items", "both"])
async def test_run_time_lies_in_the_predicted_range(
    item: float,
    byte: float,
    shared: bool,
    at_once: int,
    demo: RunConfig,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The prediction holds for items and tokens, with and without gain by concurrency."""
    clock = Clock()
    judge = PacedJudge(clock, item, byte, at_once=at_once, shared=shared)
    found = (await examined(judge, clock, demo, monkeypatch, quick=False)).run
    assert found is not None
    assert (found.responses, found.items, found.assumed) == (60, 385, 0)
    assert found.in_flight == at_once
    assert found.at_once_measured
    took = await judged(judge, clock, demo)
    assert found.seconds_low <= took <= found.seconds_high
    assert found.seconds_high / found.seconds_low == pytest.approx(SPREAD**2)


@pytest.mark.parametrize("shared", [True, False])
async def test_quick_prediction_covers_both_extremes(
    shared: bool, demo: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With --quick, the range goes from full gain by concurrency to none."""
    clock = Clock()
    judge = PacedJudge(clock, 0.05, 0.001, at_once=8, shared=shared)
    found = (await examined(judge, clock, demo, monkeypatch, quick=True)).run
    assert found is not None
    assert not found.at_once_measured
    took = await judged(judge, clock, demo)
    assert found.seconds_low <= took <= found.seconds_high


async def test_slow_judge_gets_a_prediction_and_a_warning(
    demo: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At 38 seconds per response, items are not repeated, but there is a prediction."""
    clock = Clock()
    judge = PacedJudge(clock, 4.0, 0.002, at_once=16, shared=True)
    found = await examined(judge, clock, demo, monkeypatch, quick=False)
    assert found.figures.repeat_alone is None
    assert found.run is not None
    assert found.run.at_once_measured
    assert found.run.long
    assert found.verdict is DoctorVerdict.CARE
    (reason,) = found.reasons
    assert reason.name == "latency"
    assert "for 60 responses" in reason.told
    assert "--limit" in reason.advice
    took = await judged(judge, clock, demo)
    assert found.run.seconds_low <= took <= found.run.seconds_high


async def test_only_remaining_work_counts(demo: RunConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cached judgments are not counted, and after the run there is no prediction."""
    clock = Clock()
    judge = PacedJudge(clock, 0.05, 0.0, at_once=4, shared=False)
    part = {"benchmark": demo.benchmark.model_copy(update={"limit": 2}), "name": "part"}
    await judged(judge, clock, demo.model_copy(update=part))
    found = (await examined(judge, clock, demo, monkeypatch, quick=True)).run
    assert found is not None
    assert found.responses == 50
    await judged(judge, clock, demo)
    assert (await examined(judge, clock, demo, monkeypatch, quick=True)).run is None


async def test_unwritten_checklists_are_assumed(
    demo: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Typical items are assumed, and the prediction says so; the author is not called."""
    author = {"kind": "instance", "engine": {"engine": "scripted", "model": "author"}}
    raw = {**demo.model_dump(mode="json"), "author": author}
    clock = Clock()
    judge = PacedJudge(clock, 0.05, 0.0, at_once=4, shared=False)
    found = await examined(judge, clock, parse_config(raw), monkeypatch, quick=True)
    assert found.run is not None
    assert (found.run.responses, found.run.assumed, found.run.items) == (60, 60, 480)
    assert any("assuming 8 items" in finding.told for finding in found.findings)
    assert not demo.run_path.exists()


async def test_unreadable_benchmark_does_not_change_the_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is a note, because the judge may be fine."""
    run = parse_config({"benchmark": {"path": str(tmp_path / "no")}, "judge": {"model": "paced"}})
    clock = Clock()
    judge = PacedJudge(clock, 0.05, 0.0, at_once=4, shared=False)
    found = await examined(judge, clock, run, monkeypatch, quick=True)
    assert found.run is None
    assert found.verdict is DoctorVerdict.READY
    assert any(one.name == "run time" and "not predicted" in one.told for one in found.findings)


def test_prediction_is_in_the_text_and_in_json(tmp_path: Path) -> None:
    """The text is below the verdict, and JSON has every figure."""
    cli(tmp_path, "init", "demo", "--model", "m")
    config = tmp_path / "demo" / "rocketeval.yaml"
    config.write_text(config.read_text().replace("model: m", "model: m\n  engine: scripted"))
    shown = cli(tmp_path, "doctor", "demo/rocketeval.yaml", "--quick", code=4).stdout
    assert "This run would take about " in shown
    printed = cli(tmp_path, "doctor", "demo/rocketeval.yaml", "--quick", "--json", code=4).stdout
    run = json.loads(printed)["run"]
    assert RunForecast(**run).items == 385
