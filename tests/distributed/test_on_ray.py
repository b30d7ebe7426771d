"""Real runs on a real cluster: the same scores as on one machine, whatever is killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from robustness.ray_cluster import LocalCluster, kill, wait_until
from robustness.ray_faults import Server

from fakes.openai_server import MODEL
from rocketeval.config import RunConfig
from rocketeval.distributed.staging import open_staging
from rocketeval.errors import EngineUnavailable, Stopped
from rocketeval.observer import Observer
from rocketeval.pipeline import Run
from rocketeval.records import Failure, Status, Usage
from rocketeval.store.manifest import RayFacts
from rocketeval.store.run import RunStore
from support.make import make_config, write_jsonl

pytestmark = pytest.mark.filterwarnings("ignore")
KEY = "OPENAI_API_KEY"
SAME = ("scores.parquet", "scores.jsonl", "ranking.csv", "ranking.json")
TASKS = 96
ITEMS = 2
SURELY_HALF_WAY = TASKS // 4
"""When a paused server has answered half of all prompts, more tasks than this are judged."""
SETTLED_SECONDS = 3.0
"""After this long without news, every worker has reported its tasks in flight."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a benchmark of 24 queries and 4 candidates."""
    folder = tmp_path_factory.mktemp("on_ray")
    queries = [f"q{number:02d}" for number in range(24)]
    benchmark = folder / "benchmark"
    write_jsonl(benchmark / "queries.jsonl", [{"id": q, "text": f"What is {q}?"} for q in queries])
    items = ["Is it right?", "Is it clear?"]
    write_jsonl(benchmark / "checklists.jsonl", [{"query_id": q, "items": items} for q in queries])
    for name in ("<b>one</b>", "two\u2028", "three", "four"):
        rows = [{"query_id": q, "candidate": name, "text": f"{name} says {q}."} for q in queries]
        write_jsonl(benchmark / "responses" / f"{abs(hash(name))}.jsonl", rows)
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A judge behind HTTP, in its own process, that pauses half-way until it is released."""
    started = Server(tmp_path / "answered.jsonl", 0.02, holds_after=TASKS // 2 * ITEMS)
    yield started
    started.kill()


class Heard(Observer):
    """Counts a run's reports, and acts once enough is finished and nothing moves."""

    def __init__(
        self, at: int = 0, action: Callable[[], None] | None = None, still: float = 0.0
    ) -> None:
        self.judged_elsewhere = 0
        self.failures: list[Failure] = []
        self._at = at
        self._action = action
        self._still = still
        self._moved = time.monotonic()

    def counted(self, judgments: int, missing: Mapping[Status, int]) -> None:
        self.judged_elsewhere += judgments
        self._moved = time.monotonic()

    def spent(self, usage: Usage) -> None:
        still = time.monotonic() - self._moved
        if self._action and self.judged_elsewhere >= self._at and still >= self._still:
            action, self._action = self._action, None
            action()

    def failed(self, failure: Failure) -> None:
        self.failures.append(failure)


def config(folder: Path, name: str, on: str | None = "ray", **changes: Any) -> RunConfig:
    place = {"cluster": on, "actors": 2, "batch": 4, **changes.pop("distributed", {})}
    return make_config(folder, name, cache=None, distributed=place, **changes)


def http_judge(server: Server) -> dict[str, Any]:
    return {"model": MODEL, "base_url": server.url, "concurrency": 4, "patience": 10}


def keys(store: RunStore) -> Counter[str]:
    found: Counter[str] = Counter()
    for table in store.judgments(["key"]):
        found.update(table["key"].to_pylist())
    return found


def assert_whole(store: RunStore) -> None:
    """Check that every judgment is there exactly once."""
    found = keys(store)
    assert len(found) == found.total() == TASKS


def test_run_on_ray_equals_run_on_one_machine(cluster: LocalCluster, folder: Path) -> None:
    """Scores and ranking are byte-identical, failures are equal, and fixed ones are asked."""
    judge = {"engine": "scripted", "model": "scripted", "options": {"fail_on": "three says q07"}}
    local = Run(config(folder, "local", None, judge=judge))
    asyncio.run(local.all())
    heard = Heard()
    broken = Run(config(folder, "on_ray", judge=judge), observer=heard)
    outcome = asyncio.run(broken.all())
    for name in SAME:
        assert (broken.store.path / name).read_bytes() == (local.store.path / name).read_bytes()
    assert broken.store.failures() == local.store.failures() == heard.failures
    assert heard.judged_elsewhere == TASKS - 1
    facts = outcome.stages.grade
    assert (facts.judged, facts.failed, facts.unfinished) == (TASKS - 1, 1, 1)
    assert facts.ray == RayFacts("ray", asked=TASKS, asked_again=0, duplicates=0, torn=0)
    assert facts.usage == local.store.manifest().stages.grade.usage
    assert not list((broken.store.path / "distributed").rglob("*.parquet"))

    mended = {"judge": {**judge, "options": {}}}
    facts = asyncio.run(Run(config(folder, "on_ray", **mended)).to_judgments())
    assert (facts.judged, facts.finished_earlier, facts.ray.asked) == (1, TASKS - 1, 1)
    assert_whole(broken.store)


def test_killed_worker_and_node_lose_nothing(
    cluster: LocalCluster, folder: Path, server: Server
) -> None:
    """Only a few answers are asked again and counted, and no key is written."""
    leaks: list[Path] = []

    def strike() -> None:
        kill(cluster.judges()[0])
        cluster.remove_node()
        cluster.add_node()
        server.release()
        staged = RunStore(folder / "runs" / "faults").path / "distributed"
        files = [path for path in staged.rglob("*") if path.is_file()]
        assert files
        leaks.extend(path for path in files if os.environ[KEY].encode() in path.read_bytes())

    heard = Heard(SURELY_HALF_WAY, strike, SETTLED_SECONDS)
    run = Run(config(folder, "faults", judge=http_judge(server)), observer=heard)
    facts = asyncio.run(run.to_judgments())
    assert_whole(run.store)
    assert facts.judged == TASKS
    again = facts.ray.asked_again
    assert 0 < again < TASKS // 2
    answered = Counter(server.log.read_text().splitlines())
    assert len(answered) == ITEMS * TASKS
    assert not leaks
    logs = Path("/tmp/ray/session_latest/logs")
    assert not [
        p for p in logs.glob("*.*") if p.is_file() and os.environ[KEY].encode() in p.read_bytes()
    ]


def test_killed_command_is_resumed(cluster: LocalCluster, folder: Path, server: Server) -> None:
    """After kill -9 the same command asks only what was not durable."""
    given: dict[str, Any] = {
        "name": "killed",
        "benchmark": {"path": "benchmark"},
        "judge": http_judge(server),
        "cache": None,
        "distributed": {"actors": 2, "batch": 4},
    }
    (folder / "killed.yaml").write_text(yaml.safe_dump(given))
    command = [sys.executable, "-m", "rocketeval.cli.main", "run", "killed.yaml"]
    command += ["--only", "grade", "--on", "ray"]
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    store = RunStore(folder / "runs" / "killed")
    staging = open_staging(None, store.path, "")

    def durable() -> int:
        job = staging.job()
        return 0 if job is None else staging.folder(job.id).written()

    first = subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.DEVNULL)
    wait_until(lambda: durable() >= SURELY_HALF_WAY, "the first batches")
    first.send_signal(signal.SIGKILL)
    first.wait(240)
    wait_until(lambda: not cluster.judges(), "the end of its workers")
    server.release()
    assert not keys(store)
    kept = durable()
    assert kept >= SURELY_HALF_WAY
    before = len(server.log.read_text().splitlines())
    done = subprocess.run(
        [*command, "--json"], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert_whole(store)
    assert facts["judged"] == TASKS
    answered = Counter(server.log.read_text().splitlines())
    assert len(answered) == ITEMS * TASKS
    # Answered again is only what was not durable, or in flight when the workers ended.
    in_flight = given["distributed"]["actors"] * given["distributed"]["batch"] * ITEMS
    assert answered.total() - len(answered) <= before - ITEMS * kept + in_flight


def test_stopped_run_keeps_finished_judgments(cluster: LocalCluster, folder: Path) -> None:
    """A stop ends the run soon, with the answers in flight in the ledger."""
    judge = {
        "engine": "scripted",
        "model": "slow",
        "concurrency": 2,
        "options": {"delay": 1.0},
    }
    heard = Heard(8, lambda: run.stop.set())
    run = Run(config(folder, "stopped", judge=judge), observer=heard)
    started = time.monotonic()
    with pytest.raises(Stopped):
        asyncio.run(run.to_judgments())
    assert time.monotonic() - started < 120
    found = keys(run.store)
    assert 8 <= len(found) == found.total() < TASKS
    assert run.store.manifest().stages.grade.ray.asked_again == 0


def test_unreachable_judge_ends_the_run(
    cluster: LocalCluster, folder: Path, server: Server
) -> None:
    """The error says so, and finished judgments are in the ledger."""
    heard = Heard(SURELY_HALF_WAY, server.kill)
    run = Run(config(folder, "gone", judge=http_judge(server)), observer=heard)
    with pytest.raises(EngineUnavailable, match="judgments are safe"):
        asyncio.run(run.to_judgments())
    found = keys(run.store)
    assert 0 < len(found) == found.total() < TASKS
    assert not found.keys() & {failure.key.hex() for failure in run.store.failures()}
