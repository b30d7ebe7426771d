"""The judge's server dies during a run: nothing is lost or paid for twice."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from loopback import free_port

from fakes import openai_server
from fakes.served import Served
from rocketeval.config import RunConfig
from rocketeval.engines import http
from rocketeval.errors import EngineUnavailable
from rocketeval.observer import Observer
from rocketeval.pipeline import Run
from rocketeval.records import Judgment
from rocketeval.store.ledger import read_tables
from support.make import make_config, write_jsonl

QUERIES, CANDIDATES, ITEMS = 10, 4, 3
TASKS = QUERIES * CANDIDATES
PROMPTS = TASKS * ITEMS
CONCURRENCY = 4
DEATH = TASKS // 3
"""The server is killed after this many judgments."""


class MortalServer:
    """The fake server as a process that can be killed and restarted on its port."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lives: list[Served] = []
        self.port = free_port()

    def start(self) -> None:
        """Start a new process without waiting for it."""
        self._lives.append(Served(self.port, self._log(len(self._lives))))

    def wait_until_ready(self) -> None:
        """Wait until the current process listens."""
        self._lives[-1].wait_until_ready()

    def kill(self) -> None:
        """Kill the current process like a power cut would."""
        self._lives[-1].kill()

    def answered(self, life: int) -> list[str]:
        """Return the prompts that this process answered, in order."""
        log = self._log(life)
        return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []

    def _log(self, life: int) -> Path:
        return self._folder / f"life-{life}.jsonl"


class At(Observer):
    """Does something once, after this many judgments."""

    def __init__(self, count: int, action: Callable[[], None]) -> None:
        self.count = count
        self._action = action

    def judged(self, judgment: Judgment) -> None:
        self.count -= 1
        if self.count == 0:
            self._action()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[MortalServer]:
    """A running server, killed afterwards."""
    mortal = MortalServer(tmp_path)
    mortal.start()
    mortal.wait_until_ready()
    yield mortal
    mortal.kill()


@pytest.fixture
def config(
    tmp_path: Path, server: MortalServer, monkeypatch: pytest.MonkeyPatch
) -> Callable[[float], RunConfig]:
    """Return a run of 40 tasks judged by this server, for a given patience."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.02)
    folder = tmp_path / "benchmark"
    names = [f"q{number}" for number in range(QUERIES)]
    write_jsonl(folder / "queries.jsonl", [{"id": q, "text": f"What is {q}?"} for q in names])
    for candidate in range(CANDIDATES):
        rows = [{"query_id": q, "text": f"c{candidate} explains {q}"} for q in names]
        write_jsonl(folder / "responses" / f"c{candidate}.jsonl", rows)
    items = [f"Is it right in way {number}?" for number in range(ITEMS)]
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": items} for q in names])

    def made(patience: float) -> RunConfig:
        judge = {
            "model": openai_server.MODEL,
            "base_url": f"http://127.0.0.1:{server.port}/v1",
            "concurrency": CONCURRENCY,
            "canaries": 0,
            "patience": patience,
        }
        return make_config(tmp_path, judge=judge, cache=None)

    return made


async def grade(run: Run) -> None:
    """Run up to the end of grading."""
    run.load()
    await run.checklist()
    await run.grade()


def recorded(run: Run) -> list[str]:
    """Return the keys of all judgments in the run's ledger."""
    tables = read_tables(run.store.ledger_folder, ["key"])
    return [key for table in tables for key in table["key"].to_pylist()]


async def test_server_dies_and_comes_back(
    server: MortalServer, config: Callable[[float], RunConfig]
) -> None:
    """The run waits, continues by itself, and ends with every judgment exactly once."""
    loop = asyncio.get_running_loop()

    def die_and_rise() -> None:
        server.kill()
        loop.call_later(0.2, server.start)

    run = Run(config(30.0), observer=At(DEATH, die_and_rise))
    await grade(run)
    keys = recorded(run)
    assert len(keys) == len(set(keys)) == TASKS
    facts = run.store.manifest().stages.grade
    assert (facts.judged, facts.failed, facts.unfinished) == (TASKS, 0, 0)
    assert facts.usage.requests > PROMPTS
    asked = Counter(server.answered(0) + server.answered(1))
    assert len(asked) == PROMPTS
    assert server.answered(1)
    # Only what was in flight at the kill may have been answered twice.
    assert asked.total() - PROMPTS <= CONCURRENCY


async def test_server_dies_for_good(
    server: MortalServer, config: Callable[[float], RunConfig]
) -> None:
    """The run ends soon with an error; the next one asks only what is missing."""
    watcher = At(DEATH, server.kill)
    first = Run(config(0.2), observer=watcher)
    started = time.monotonic()
    with pytest.raises(EngineUnavailable, match="Judge unreachable") as caught:
        await grade(first)
    assert time.monotonic() - started < 60
    finished = recorded(first)
    assert len(finished) == len(set(finished)) == DEATH - watcher.count
    assert f"{len(finished)} judgments are safe" in caught.value.hint
    half = sum(map(len, first.store.half_answered().values()))

    server.start()
    server.wait_until_ready()
    second = Run(config(30.0))
    await grade(second)
    keys = recorded(second)
    assert len(keys) == len(set(keys)) == TASKS
    assert set(finished) <= set(keys)
    assert not second.store.failures()
    asked_again = server.answered(1)
    assert len(asked_again) == len(set(asked_again)) == PROMPTS - len(finished) * ITEMS - half
    assert len(set(server.answered(0)) & set(asked_again)) <= CONCURRENCY
    assert len({*server.answered(0), *asked_again}) == PROMPTS


async def test_same_run_can_be_continued(
    server: MortalServer, config: Callable[[float], RunConfig]
) -> None:
    """A program that caught the error may call the same Run again."""
    run = Run(config(0.2), observer=At(DEATH, server.kill))
    with pytest.raises(EngineUnavailable):
        await grade(run)
    server.start()
    server.wait_until_ready()
    await run.grade()
    assert len(recorded(run)) == TASKS
