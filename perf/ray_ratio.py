"""Cost of Ray: the same tasks on one machine, on Ray, and with bare Ray Data.

    python perf/ray_ratio.py [--tasks 50000] [--items 8] [--workers 1] [--batch 64] [--rounds 3]
                               [--record NAME]

All three use the same stub server on loopback, all items of a response in one request, with the
same number of requests in flight. The bare row is `read_parquet -> map_batches -> write_parquet`
with an aiohttp loop in an async actor: no retries, no readout of truncated answers, no checkpoint,
no ledger. Ours is the whole grading stage, from the run's inputs to its ledger. Ray is started
before the clock, again for each of them; the start of its workers is included. CPU covers all
processes of RocketEval and Ray, without the server; unlike seconds, it depends little on what else
the machine does. A round measures all ways one after the other, the two on Ray in alternating
order. A share is the ratio of the sums over all rounds, followed by its lowest and highest round.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from client_cost import stub_server
from harness.bare_http import Labels, chat_batch
from harness.server import VLLMServer
from harness.table import add_record_option, progress, render, show
from harness.workload import make_workload
from pyarrow.dataset import dataset

from rocketeval.config import RunConfig, parse_config
from rocketeval.distributed.cluster import connected
from rocketeval.pipeline import Run
from rocketeval.store.files import write_jsonl

TICKS = os.sysconf("SC_CLK_TCK")
IN_FLIGHT = 64
PREFIX_TOKENS = 400


@dataclass
class Measured:
    """One way to grade the tasks."""

    title: str
    rows: int
    seconds: float
    cpu: float
    start: Start | None = None


@dataclass(frozen=True)
class Start:
    """The cost of starting Ray."""

    seconds: float
    bytes: int


Way = Callable[[Path, VLLMServer, argparse.Namespace], Callable[[], Any]]
"""Prepares one way to grade the tasks, and returns the work to measure."""


def main() -> None:
    args = parse_arguments()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        server = stack.enter_context(stub_server())
        write_benchmark(folder / "benchmark", args.tasks, args.items)
        progress(f"{args.tasks} tasks written")
        rounds = [one_round(folder, number, server, args) for number in range(args.rounds)]
    show([*heading(args), "", *table(rounds), "", *starts(rounds)], args.record)


def one_round(
    scratch: Path, number: int, server: VLLMServer, args: argparse.Namespace
) -> list[Measured]:
    """Measure the three ways, one right after the other; return them in the table's order."""
    folder = scratch / str(number)
    found = [one_way("one machine", local, folder, server, args)]
    ways: list[tuple[str, Way]] = [("on Ray", on_ray), ("bare Ray Data", make_bare)]
    step = 1 if number % 2 == 0 else -1
    found += [one_way(title, way, folder, server, args) for title, way in ways[::step]][::step]
    return found


def one_way(
    title: str, way: Way, folder: Path, server: VLLMServer, args: argparse.Namespace
) -> Measured:
    """Measure a way, with its own cluster: it would find another one's processes."""
    if way is local:
        return measure(title, args.tasks, way(folder, server, args))
    before, started = memory(), time.monotonic()
    with connected("ray", args.workers + 2):
        start = Start(time.monotonic() - started, memory() - before)
        warm_up()
        found = measure(title, args.tasks, way(folder, server, args))
    found.start = start
    return found


def measure(title: str, rows: int, work: Callable[[], Any]) -> Measured:
    """Measure the wall time of the work and the CPU time of all our processes."""
    with CpuSampler() as sampler:
        started = time.monotonic()
        work()
        seconds = time.monotonic() - started
    progress(f"{title}: {seconds:.1f} s, {sampler.seconds:.1f} s of CPU")
    return Measured(title, rows, seconds, sampler.seconds)


def local(folder: Path, server: VLLMServer, args: argparse.Namespace) -> Callable[[], Any]:
    """Return the grading stage in this process."""
    return ready(configure(folder, server, "local", args, None))


def on_ray(folder: Path, server: VLLMServer, args: argparse.Namespace) -> Callable[[], Any]:
    """Return the grading stage on Ray."""
    return ready(configure(folder, server, "on_ray", args, "ray"))


def ready(config: RunConfig) -> Callable[[], Any]:
    """Return the grading stage of a run whose inputs are loaded."""
    asyncio.run(Run(config).to_checklists())

    def work() -> None:
        facts = asyncio.run(Run(config).grade())
        assert not facts.unfinished, facts

    return work


def configure(
    folder: Path, server: VLLMServer, name: str, args: argparse.Namespace, on: str | None
) -> RunConfig:
    """Return a run of the benchmark."""
    return parse_config(
        {
            "name": name,
            "benchmark": {"path": str(folder.parent / "benchmark")},
            "judge": {
                "model": server.model,
                "base_url": server.base_url,
                "transport": "chat_batch",
                "concurrency": IN_FLIGHT // args.workers if on else IN_FLIGHT,
            },
            "output": str(folder / "runs"),
            "cache": None,
            "distributed": {"cluster": on, "actors": args.workers, "batch": args.batch},
        }
    )


class BareJudge:
    """A minimal actor that asks the items of every row of a batch."""

    def __init__(self, url: str, common: dict[str, Any], labels: Labels, in_flight: int) -> None:
        self._url = url
        self._common = common
        self._labels = labels
        self._places = asyncio.Semaphore(in_flight)
        self._session: Any = None

    async def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        import aiohttp
        import numpy as np

        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                headers={"Content-Type": "application/json"},
            )
        rows = zip(batch["prefix"], batch["suffixes"], strict=True)
        answers = await asyncio.gather(*(self._ask(prefix, list(s)) for prefix, s in rows))
        result = np.empty(len(answers), dtype=object)
        result[:] = answers
        return {"id": batch["id"], "key": batch["key"], "p_yes": result}

    async def _ask(self, prefix: str, suffixes: list[str]) -> list[float | None]:
        form = chat_batch()
        prompts = [prefix + suffix for suffix in suffixes]
        body = orjson.dumps({**self._common, **form.prompt(prompts)})
        async with self._places, self._session.post(self._url, data=body) as reply:
            result = orjson.loads(await reply.read())
        return [self._labels.share(form.listed(choice)) for choice in result["choices"]]


def warm_up() -> None:
    """Let Ray start its first workers before the clock, so that the first row does not pay."""
    import ray.data

    logging.getLogger("ray.data").setLevel(logging.ERROR)
    ray.data.DataContext.get_current().enable_progress_bars = False
    ray.data.range(64, override_num_blocks=4).map_batches(lambda batch: batch).materialize()


def make_bare(folder: Path, server: VLLMServer, args: argparse.Namespace) -> Callable[[], Any]:
    """Return bare Ray Data over the tasks, which are written before the clock starts."""
    import ray.data
    from pyarrow import fs

    from rocketeval.distributed.staging import write_tasks
    from rocketeval.grading.methods import create_method
    from rocketeval.grading.schedule import unfinished_tasks

    run = Run(configure(folder, server, "local", args, None))
    prompt = create_method(run.config).prompt
    tasks = unfinished_tasks(run.store.inputs, prompt, run.store.judge().digest, lambda key: False)
    write_tasks(tasks, {}, fs.LocalFileSystem(), str(folder / "tasks"))
    plain = make_workload(1, 1, 10).plain()
    labels = Labels.exact(server, plain["yes"], plain["no"])
    common = {"model": server.model, "max_tokens": 1, "temperature": 0, **labels.settings}

    def work() -> None:
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False
        context.use_datasource_v2 = False
        shutil.rmtree(folder / "bare", ignore_errors=True)
        judged = (
            ray.data.read_parquet(str(folder / "tasks"))
            .repartition(target_num_rows_per_block=args.batch)
            .map_batches(
                BareJudge,
                fn_constructor_args=(
                    server.base_url + chat_batch().path,
                    common,
                    labels,
                    IN_FLIGHT // args.workers,
                ),
                batch_size=None,
                compute=ray.data.ActorPoolStrategy(
                    size=args.workers, max_concurrent_calls_per_actor=2
                ),
            )
        )
        judged.write_parquet(str(folder / "bare"))
        written = dataset(folder / "bare").count_rows()
        assert written == args.tasks, written

    return work


def write_benchmark(folder: Path, tasks: int, items: int) -> None:
    """Write as many responses as there are tasks, ten candidates per query."""
    candidates = 10
    queries = [f"q{number:06d}" for number in range(-(-tasks // candidates))]
    filler = "The answer names the facts in order and says why each of them matters. " * 20
    asked = [f"Does the response name fact {number}?" for number in range(items)]
    write_jsonl(folder / "queries.jsonl", ({"id": q, "text": f"What is {q}?"} for q in queries))
    write_jsonl(folder / "checklists.jsonl", ({"query_id": q, "items": asked} for q in queries))
    for number in range(candidates):
        rows = (
            {"query_id": q, "text": f"c{number} on {q}: {filler[: PREFIX_TOKENS * 4]}"}
            for place, q in enumerate(queries)
            if place * candidates + number < tasks
        )
        write_jsonl(folder / "responses" / f"c{number}.jsonl", rows)


class CpuSampler:
    """A counter of the CPU time of this process and all of Ray's, including ended ones."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._ended = threading.Event()
        self._before = cpu_times()
        self._latest = dict(self._before)
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> CpuSampler:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._ended.set()
        self._thread.join()
        self._latest |= cpu_times()
        self.seconds = sum(
            spent - self._before.get(pid, 0.0) for pid, spent in self._latest.items()
        )

    def _sample(self) -> None:
        while not self._ended.wait(0.25):
            self._latest |= cpu_times()


def processes(name: str) -> Iterator[tuple[int, str]]:
    """Yield a file of /proc and the process id of every process started from here."""
    for path in Path("/proc").iterdir():
        if not path.name.isdigit():
            continue
        try:
            ours = MARK in (path / "environ").read_bytes() or int(path.name) == os.getpid()
            if ours and b"stub_server" not in (path / "cmdline").read_bytes():
                yield int(path.name), (path / name).read_text()
        except OSError:
            continue


def cpu_times() -> dict[int, float]:
    """Return the CPU seconds of every process started from here, by process id."""
    found = {}
    for pid, status in processes("stat"):
        fields = status.rpartition(")")[2].split()
        found[pid] = (int(fields[11]) + int(fields[12])) / TICKS
    return found


def memory() -> int:
    """Return the memory of all these processes in bytes, shared memory counted once."""
    shares = (text.partition("Pss:")[2].split()[0] for _, text in processes("smaps_rollup"))
    return sum(int(kilobytes) << 10 for kilobytes in shares)


MARK = f"ROCKETEVAL_RAY_RATIO={os.getpid()}".encode()


@contextmanager
def marked() -> Iterator[None]:
    """Mark every process started from here, so that it can be recognized."""
    name, _, value = MARK.decode().partition("=")
    os.environ[name] = value
    yield


def heading(args: argparse.Namespace) -> list[str]:
    """Return the heading with the size of the study."""
    return [
        f"{args.tasks} responses x {args.items} items, prompts of about {PREFIX_TOKENS} tokens, "
        f"one request per response, {IN_FLIGHT} in flight, Ray workers: {args.workers}, "
        f"batches of {args.batch}; {args.rounds} rounds"
    ]


def table(rounds: list[list[Measured]]) -> list[str]:
    """Return one line per way, relative to bare Ray Data: 1 is as fast, more is faster."""
    lines = []
    bare = [found[-1] for found in rounds]
    for ways in zip(*rounds, strict=True):
        lines.append(
            (
                ways[0].title,
                f"{median(way.seconds for way in ways):.1f}",
                f"{median(way.rows / way.seconds for way in ways):.0f}",
                share([b.seconds for b in bare], [way.seconds for way in ways]),
                f"{median(way.cpu / way.rows for way in ways) * 1e6:.0f}",
                share([b.cpu for b in bare], [way.cpu for way in ways]),
            )
        )
    columns = ("", "seconds", "rows/s", "share of bare", "CPU us/row", "share of bare, by CPU")
    return render(columns, lines)


def share(bare: list[float], ours: list[float]) -> str:
    """Return the ratio of the sums, with its lowest and highest round."""
    each = [one / other for one, other in zip(bare, ours, strict=True)]
    return f"{sum(bare) / sum(ours):.2f} ({min(each):.2f}-{max(each):.2f})"


def starts(rounds: list[list[Measured]]) -> list[str]:
    """Return the cost of starting Ray."""
    found = [one.start for several in rounds for one in several if one.start is not None]
    return [
        f"to start Ray: {median(one.seconds for one in found):.1f} s "
        f"(the slowest of {len(found)}: {max(one.seconds for one in found):.1f}), "
        f"{median(one.bytes for one in found) / 1e6:.0f} MB before the first task"
    ]


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, default=50_000)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rounds", type=int, default=3)
    add_record_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    with marked():
        main()
