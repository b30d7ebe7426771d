"""Break a Ray cluster during a run, repeatedly, and count lost and doubled judgments.

    python studies/robustness/ray_faults.py [--times 10] [--faults NAME ...] [--record [--again]]

A head and a second node run on this machine. Two workers judge through real HTTP servers on
loopback, which log every prompt they answer. After each fault the run must have every judgment
once, and scores byte-identical to a run on one machine without faults. The servers count the
re-sent share: answered prompts beyond the first, divided by the first. With --record every finding
is stored at once, and the study continues from the findings of earlier calls; --again discards them
first.

    actor      kill -9 of a worker that judges
    driver     kill -9 of the command; the same command runs again once its workers have ended
    hurry      the same, but the command runs again at once
    server     kill -9 of the judge's only server, which comes back after two seconds
    replica    kill -9 of one of two servers, permanently
    node       all processes of a node killed; another node joins
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean

import yaml

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from loopback import free_port
from robustness.ray_cluster import LocalCluster, kill, local_cluster, wait_until

from fakes.served import Served
from rocketeval.store.files import write_jsonl
from rocketeval.store.run import RunStore

RECORDED = Path(__file__).parent / "recorded" / "ray_faults.txt"
FINDINGS = RECORDED.with_suffix(".jsonl")
ITEMS = 3
SAME = ("scores.parquet", "scores.jsonl", "ranking.csv")


class Server:
    """A judge's server as a process that can be killed and restarted."""

    def __init__(self, log: Path, latency: float, holds_after: int | None = None) -> None:
        self.log = log
        self._latency = latency
        self._holds_after = holds_after
        self._port = free_port()
        self.url = f"http://127.0.0.1:{self._port}/v1"
        self.start()

    def start(self) -> None:
        self._process = Served(self._port, self.log, self._latency, self._holds_after)
        self._process.wait_until_ready()

    def release(self) -> None:
        """Let it answer the requests it holds."""
        self._process.release()

    def kill(self) -> None:
        self._process.kill()


@dataclass
class Scene:
    """One run, its judge servers and its cluster."""

    folder: Path
    cluster: LocalCluster
    servers: list[Server]
    tasks: int
    command: subprocess.Popen[bytes] | None = None

    @property
    def store(self) -> RunStore:
        return RunStore(self.folder / "runs" / "broken")

    def start(self) -> None:
        """Run the command in a separate process."""
        command = [sys.executable, "-m", "rocketeval.cli.main", "run", "broken.yaml"]
        environment = {**os.environ, "RAY_ADDRESS": self.cluster.address}
        with (self.folder / "command.txt").open("ab") as log:
            self.command = subprocess.Popen(
                command, cwd=self.folder, stdout=log, stderr=log, env=environment
            )

    def prompts(self) -> Counter[str]:
        """Return every answered prompt with its count."""
        lines = [
            json.loads(line)
            for server in self.servers
            if server.log.exists()
            for line in server.log.read_text().splitlines()
            if line.endswith('"')
        ]
        return Counter(lines)

    def wait_for(self, share: float) -> None:
        """Wait until a share of the prompts is answered."""
        goal = share * self.tasks * ITEMS
        wait_until(lambda: self._ended() or len(self.prompts()) >= goal, "the first answers")

    def _ended(self) -> bool:
        return self.command is not None and self.command.poll() is not None

    def finish(self) -> None:
        assert self.command is not None
        code = self.command.wait(600)
        if code:
            sys.exit(f"exit code {code}:\n" + (self.folder / "command.txt").read_text())


def kill_actor(scene: Scene, rng: random.Random) -> None:
    kill(rng.choice(scene.cluster.judges()))


def kill_driver(scene: Scene, rng: random.Random) -> None:
    assert scene.command is not None
    scene.command.send_signal(signal.SIGKILL)
    scene.command.wait(30)
    # The cluster notices by itself; the next command finds what it still writes.
    wait_until(lambda: not scene.cluster.judges(), "the end of the killed driver's workers")
    scene.start()


def kill_driver_and_hurry(scene: Scene, rng: random.Random) -> None:
    """Kill the driver and start the next command while the old workers may still run."""
    assert scene.command is not None
    scene.command.send_signal(signal.SIGKILL)
    scene.command.wait(30)
    scene.start()


def restart_server(scene: Scene, rng: random.Random) -> None:
    scene.servers[0].kill()
    time.sleep(2)
    scene.servers[0].start()


def kill_replica(scene: Scene, rng: random.Random) -> None:
    rng.choice(scene.servers).kill()


def replace_node(scene: Scene, rng: random.Random) -> None:
    scene.cluster.remove_node()
    scene.cluster.add_node()


FAULTS: dict[str, Callable[[Scene, random.Random], None]] = {
    "actor": kill_actor,
    "driver": kill_driver,
    "hurry": kill_driver_and_hurry,
    "server": restart_server,
    "replica": kill_replica,
    "node": replace_node,
}


@dataclass(frozen=True)
class Finding:
    """The effect of one fault."""

    lost: int
    doubled: int
    differ: int
    resent: float
    """Counted by the servers."""
    told: float
    """Counted by RocketEval, in responses."""
    duplicates: int
    torn: int
    seconds: float


def write_benchmark(folder: Path, queries: int, candidates: int) -> None:
    """Write queries, responses and checklists."""
    names = [f"q{number:04d}" for number in range(queries)]
    items = ["Is it right?", "Is it clear?", "Is it short?"][:ITEMS]
    write_jsonl(folder / "queries.jsonl", ({"id": q, "text": f"What is {q}?"} for q in names))
    write_jsonl(folder / "checklists.jsonl", ({"query_id": q, "items": items} for q in names))
    for number in range(candidates):
        write_jsonl(
            folder / "responses" / f"c{number}.jsonl",
            ({"query_id": q, "text": f"c{number} says {q}."} for q in names),
        )


def write_config(folder: Path, name: str, servers: list[Server], on: str | None) -> None:
    """Write the config of a run."""
    config = {
        "name": name,
        "benchmark": {"path": "benchmark"},
        "judge": {
            "model": "fake-judge",
            "base_url": servers[0].url,
            "concurrency": 4,
            "patience": 8,
        },
        "ranking": {"bootstrap": 50},
        "cache": None,
        "distributed": {"cluster": on, "actors": 2, "batch": 8},
    }
    if len(servers) > 1:
        config["distributed"]["replicas"] = [server.url for server in servers]  # type: ignore[index]
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))


@contextmanager
def scene(
    folder: Path, cluster: LocalCluster, args: argparse.Namespace, servers: int
) -> Iterator[Scene]:
    folder.mkdir()
    write_benchmark(folder / "benchmark", args.queries, args.candidates)
    started = [Server(folder / f"server{n}.jsonl", args.latency) for n in range(servers)]
    try:
        yield Scene(folder, cluster, started, args.queries * args.candidates)
    finally:
        for server in started:
            server.kill()


def reference(folder: Path, cluster: LocalCluster, args: argparse.Namespace) -> Path:
    """Return the run directory of a run on one machine without faults."""
    with scene(folder, cluster, args, servers=1) as whole:
        write_config(folder, "whole", whole.servers, None)
        command = [sys.executable, "-m", "rocketeval.cli.main", "run", "whole.yaml", "--quiet"]
        subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "runs" / "whole"


def break_once(
    name: str, folder: Path, cluster: LocalCluster, whole: Path, args: argparse.Namespace
) -> Finding:
    """Start a run, break it, wait for its end and count."""
    rng = random.Random(f"{args.seed} {folder.name}")
    with scene(folder, cluster, args, servers=2 if name == "replica" else 1) as broken:
        write_config(folder, "broken", broken.servers, "ray")
        started = time.monotonic()
        broken.start()
        broken.wait_for(rng.uniform(0.15, 0.6))
        if broken.command is None or broken.command.poll() is not None:
            sys.exit("the run ended before the fault:\n" + (folder / "command.txt").read_text())
        FAULTS[name](broken, rng)
        broken.finish()
        seconds = time.monotonic() - started
        keys: Counter[str] = Counter()
        for table in broken.store.judgments(["key"]):
            keys.update(table["key"].to_pylist())
        ray = broken.store.manifest().stages.grade.ray
        prompts = broken.prompts()
        return Finding(
            lost=broken.tasks - len(keys),
            doubled=sum(keys.values()) - len(keys),
            differ=sum(
                (broken.store.path / file).read_bytes() != (whole / file).read_bytes()
                for file in SAME
            ),
            resent=prompts.total() / len(prompts) - 1,
            told=ray.asked_again / broken.tasks,
            duplicates=ray.duplicates,
            torn=ray.torn,
            seconds=seconds,
        )


def table(found: dict[str, list[Finding]], args: argparse.Namespace) -> list[str]:
    """Return the table, one line per fault."""
    lines = [
        f"{args.queries * args.candidates} responses x {ITEMS} items, two workers on two nodes, "
        f"4 responses in flight each, {args.latency:g} s per request, batches of 8",
        "",
        f"{'fault':<9}{'times':>6}{'lost':>6}{'doubled':>9}{'files that differ':>19}"
        f"{'re-sent (max)':>17}{'own count':>11}{'torn':>6}{'seconds':>9}",
    ]
    for name, rows in found.items():
        resent = [row.resent for row in rows]
        lines.append(
            f"{name:<9}{len(rows):>6}{sum(r.lost for r in rows):>6}"
            f"{sum(r.doubled for r in rows):>9}{sum(r.differ for r in rows):>19}"
            f"{f'{fmean(resent):.1%} ({max(resent):.1%})':>17}"
            f"{fmean(r.told for r in rows):>11.1%}{sum(r.torn for r in rows):>6}"
            f"{fmean(r.seconds for r in rows):>9.0f}"
        )
    return lines


def main() -> None:
    args = parse_arguments()
    if args.again:
        FINDINGS.unlink(missing_ok=True)
    found = kept_findings(args) if args.record else {name: [] for name in args.faults}
    with tempfile.TemporaryDirectory() as scratch, local_cluster(nodes=1) as cluster:
        whole = reference(Path(scratch) / "whole", cluster, args)
        for name in args.faults:
            while len(found[name]) < args.times:
                folder = Path(scratch) / f"{name}-{len(found[name])}"
                finding = break_once(name, folder, cluster, whole, args)
                found[name].append(finding)
                print(f"{name} {len(found[name])}: {finding}", file=sys.stderr, flush=True)
                if args.record:
                    keep(name, finding)
    lines = table(found, args)
    print("\n".join(lines))
    if args.record:
        RECORDED.write_text("\n".join(lines) + "\n")
    rows = [row for several in found.values() for row in several]
    sys.exit(any(row.lost or row.doubled or row.differ for row in rows))


def kept_findings(args: argparse.Namespace) -> dict[str, list[Finding]]:
    """Return the findings of earlier calls."""
    found: dict[str, list[Finding]] = {name: [] for name in args.faults}
    lines = FINDINGS.read_text().splitlines() if FINDINGS.exists() else []
    for row in map(json.loads, lines):
        if row["fault"] in found:
            found[row.pop("fault")].append(Finding(**row))
    return found


def keep(name: str, finding: Finding) -> None:
    """Store a finding at once, because the next fault may crash the machine."""
    FINDINGS.parent.mkdir(exist_ok=True)
    with FINDINGS.open("a") as stream:
        stream.write(json.dumps({"fault": name, **asdict(finding)}) + "\n")


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--faults", nargs="+", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--candidates", type=int, default=8)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds per request")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", action="store_true", help="store the findings in recorded/")
    parser.add_argument("--again", action="store_true", help="discard stored findings first")
    return parser.parse_args()


if __name__ == "__main__":
    main()
