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

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from robustness.ray_cluster import LocalCluster, kill, wait_until
from robustness.ray_faults import Server

from fakes.openai_server import MODEL
from rocketeval.config import RunConfig
from rocketeval.distributed.staging import JobFolder, open_staging
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
    # The server pauses in the middle of the first batches.
    place = {"batch": TASKS // 2}
    judge = http_judge(server)
    run = Run(config(folder, "faults", judge=judge, distributed=place), observer=heard)
    facts = asyncio.run(run.to_judgments())
    assert_whole(run.store)
    assert facts.judged == TASKS
    # What the workers had reported is not asked again: only what was in flight at each death.
    assert 0 < facts.ray.asked_again <= 3 * judge["concurrency"]
    answered = Counter(server.log.read_text().splitlines())
    assert len(answered) == ITEMS * TASKS
    assert not leaks
    logs = Path("/tmp/ray/session_latest/logs")
    assert not [
        p for p in logs.glob("*.*") if p.is_file() and os.environ[KEY].encode() in p.read_bytes()
    ]


class KilledRun:
    """A run on a cluster whose command can be killed and repeated."""

    def __init__(self, folder: Path, name: str, server: Server, address: str) -> None:
        given: dict[str, Any] = {
            "name": name,
            "benchmark": {"path": "benchmark"},
            "judge": http_judge(server),
            "cache": None,
            "distributed": {"actors": 2, "batch": 4},
        }
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(given))
        self._command = [sys.executable, "-m", "rocketeval.cli.main", "run", f"{name}.yaml"]
        self._command += ["--only", "grade", "--on", "ray"]
        self._environment = {**os.environ, "RAY_ADDRESS": address}
        self._folder = folder
        self._server = server
        self.store = RunStore(folder / "runs" / name)
        self._staging = open_staging(None, self.store.path, "")

    def job(self) -> JobFolder:
        """Return the folder of the staged job."""
        job = self._staging.job()
        assert job is not None
        return self._staging.folder(job.id)

    def durable(self) -> int:
        """Return how many tasks have a result that survives."""
        return 0 if self._staging.job() is None else int(self.job().finished(TASKS).sum())

    def answered(self) -> Counter[str]:
        """Return every prompt that the server answered, with its count."""
        log = self._server.log
        return Counter(log.read_text().splitlines() if log.exists() else ())

    def kill_when(self, ready: Callable[[], bool], cluster: LocalCluster) -> None:
        """Start the command and kill it when `ready`; its workers end, too."""
        command = subprocess.Popen(
            self._command, cwd=self._folder, env=self._environment, stderr=subprocess.DEVNULL
        )
        wait_until(ready, "the first results")
        command.send_signal(signal.SIGKILL)
        command.wait(240)
        wait_until(lambda: not cluster.judges(), "the end of its workers")
        self._server.release()
        assert not keys(self.store)

    def resume(self) -> None:
        """Repeat the command; every judgment is there once, and only the rest was asked."""
        kept, before = self.durable(), self.answered().total()
        done = subprocess.run(
            [*self._command, "--json"],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert_whole(self.store)
        assert json.loads(done.stdout)["judged"] == TASKS
        answered = self.answered()
        assert len(answered) == ITEMS * TASKS
        # The server may have answered what was in flight when the workers ended.
        in_flight = 2 * http_judge(self._server)["concurrency"] * ITEMS
        assert answered.total() - len(answered) <= before - ITEMS * kept + in_flight


def test_command_killed_within_a_block_is_resumed(
    cluster: LocalCluster, folder: Path, server: Server
) -> None:
    """Answers that wait for their block are asked again; none is lost or there twice."""
    run = KilledRun(folder, "within", server, cluster.address)
    run.kill_when(lambda: run.answered().total() >= ITEMS * SURELY_HALF_WAY, cluster)
    run.resume()


def test_killed_command_is_resumed(cluster: LocalCluster, folder: Path, server: Server) -> None:
    """After kill -9 the same command asks only what was not durable.

    Half of the results are as an earlier version wrote them, and one of its files is incomplete.
    """
    run = KilledRun(folder, "killed", server, cluster.address)
    run.kill_when(lambda: run.durable() >= SURELY_HALF_WAY, cluster)
    durable = run.durable()
    assert durable >= SURELY_HALF_WAY
    write_half_as_earlier(run.job(), torn=1)
    assert durable // 2 < run.durable() < durable
    run.resume()


def write_half_as_earlier(job: JobFolder, torn: int) -> None:
    """Replace half of the results by files of four rows and a checkpoint with their ids."""
    results, notes = Path(job.results), Path(job.path) / "checkpoint"
    blocks = sorted(results.iterdir())
    rows = pa.concat_tables([pq.read_table(path) for path in blocks])
    for path in blocks:
        path.unlink()
    half = rows.num_rows // 2
    job.write_results(rows.slice(0, half))
    notes.mkdir()
    for number, first in enumerate(range(half, rows.num_rows, 4)):
        batch = rows.slice(first, 4)
        pq.write_table(batch, results / f"7_{number:06d}_000000-0.parquet", compression="zstd")
        pq.write_table(batch.select(["id"]), notes / f"7_{number:06d}.parquet")
        if number < torn:
            path = results / f"7_{number:06d}_000000-0.parquet"
            path.write_bytes(path.read_bytes()[:-20])


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
