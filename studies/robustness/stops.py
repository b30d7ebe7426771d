"""Stop the real command at random moments, with several kinds of servers, and check how it ends.

    python studies/robustness/stops.py [--times 20] [--seed 1] [--kinds hung,dead,slow,paused]

The script starts a run with an author and a judge behind one server, with `rocketeval run`. The
server hangs after a random number of answers (hung), is killed after them (dead), or answers one
request per second, one at a time (slow). At a random moment the command gets SIGINT, SIGTERM,
SIGHUP or SIGQUIT, in turn. It must end within 10 seconds, without a traceback; SIGQUIT ends it at
once, and what was in flight is lost. A second command, with a working server, must ask for
everything that is missing and for nothing that was kept. The kind `paused` sends SIGSTOP and, some
seconds later, SIGCONT: the command must go on to its end and ask for everything once.
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
from dataclasses import dataclass, field
from pathlib import Path

from rocketeval.store.run import RunStore

sys.path.insert(0, str(Path(__file__).parents[1]))

from loopback import free_port

QUERIES, CANDIDATES, ITEMS = 8, 3, 3
LONGEST = 10.0
"""Maximum seconds for a stop."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
CONFIG = """\
name: stopped
benchmark: {{path: benchmark}}
author:
  kind: instance
  engine: {{model: paced, base_url: "http://127.0.0.1:{port}/v1"}}
judge: {{model: paced, base_url: "http://127.0.0.1:{port}/v1", canaries: 0}}
ranking: {{bootstrap: 50}}
"""


@dataclass
class Server:
    """The paced server as a process that can be restarted."""

    folder: Path
    port: int
    lives: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, *options: str) -> None:
        """Start the server again, with a new log."""
        command = [sys.executable, str(Path(__file__).with_name("paced_server.py"))]
        command += ["--port", str(self.port), "--log", str(self.log(len(self.lives))), *options]
        self.lives.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
        stdout = self.lives[-1].stdout
        assert stdout is not None
        assert stdout.readline() == "ready\n"

    def log(self, life: int) -> Path:
        """Return the path of the prompt log of one start."""
        return self.folder / f"life-{life}.jsonl"

    def served(self, life: int) -> list[str]:
        """Return the prompts that the server answered after one start."""
        log = self.log(life)
        text = log.read_text() if log.exists() else ""
        # The last line may be incomplete.
        return [json.loads(line) for line in text.split("\n")[:-1]]

    def kill(self) -> None:
        """Kill the server."""
        self.lives[-1].kill()
        self.lives[-1].wait()
        stdout = self.lives[-1].stdout
        assert stdout is not None
        stdout.close()


def write_benchmark(folder: Path) -> None:
    """Write queries and responses; the author writes the checklists."""
    (folder / "responses").mkdir(parents=True)
    rows = [{"id": f"q{n}", "text": f"What is {n}?"} for n in range(QUERIES)]
    _write(folder / "queries.jsonl", rows)
    for candidate in range(CANDIDATES):
        texts = [{"query_id": f"q{n}", "text": f"c{candidate} on {n}"} for n in range(QUERIES)]
        _write(folder / "responses" / f"c{candidate}.jsonl", texts)


def _write(path: Path, rows: list[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _listen_to_signals() -> None:
    """Undo what `nohup` and scripts in the background of a shell pass on: ignored signals."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def start_run(folder: Path) -> subprocess.Popen[str]:
    """Start the command."""
    return subprocess.Popen(
        [sys.executable, "-m", "rocketeval.cli.main", "run"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_listen_to_signals,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def wait_for(condition: object, running: subprocess.Popen[str], seconds: float = 60.0) -> None:
    """Wait until `condition()` holds or the command has ended."""
    assert callable(condition)
    deadline = time.monotonic() + seconds
    while not condition() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)


@dataclass
class Stop:
    """The result of one stop."""

    kind: str
    number: signal.Signals
    seconds: float
    code: int
    checklists: int
    items: int
    """Answers kept, from finished and half-finished responses."""
    lost: int
    """Answers of the server that arrived too late to be kept."""

    def __str__(self) -> str:
        return (
            f"{self.kind:<5} {self.number.name:<8} ended in {self.seconds:4.1f} s "
            f"(exit {self.code}): {self.checklists} checklists and {self.items:>2} answers kept, "
            f"{self.lost} lost"
        )


def stop_once(kind: str, folder: Path, rng: random.Random, number: signal.Signals) -> Stop:
    """Start, stop and finish a run; exit if a check fails."""
    write_benchmark(folder / "benchmark")
    server = Server(folder, free_port())
    (folder / "rocketeval.yaml").write_text(CONFIG.format(port=server.port))
    answers = rng.randrange(QUERIES + QUERIES * CANDIDATES * ITEMS)
    if kind == "slow":
        server.start("--pace", "1")
        answers = rng.randrange(12)
    else:
        server.start("--pace", "0.02", "--hangs-after", str(answers))
    running = start_run(folder)
    wait_for(lambda: len(server.served(0)) >= answers, running)
    if kind == "dead":
        server.kill()
    time.sleep(rng.uniform(0.0, 3.0))
    running.send_signal(number)
    started = time.monotonic()
    try:
        _, result = running.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        running.kill()
        sys.exit(f"FAILED: {kind} did not end within 60 s of {number.name}")
    seconds = time.monotonic() - started
    if kind != "dead":
        server.kill()
    if "Traceback" in result:
        sys.exit(f"FAILED: {kind}, {number.name}, {seconds:.1f} s\n{result}")
    checklists, items = kept(folder)
    before = len(server.served(0))
    finish(folder, server, checklists, items)
    return Stop(
        kind, number, seconds, running.returncode, checklists, items, before - checklists - items
    )


def pause_once(folder: Path, rng: random.Random) -> Stop:
    """Pause a run with SIGSTOP and continue it; exit unless it ends as if nothing had happened."""
    write_benchmark(folder / "benchmark")
    server = Server(folder, free_port())
    (folder / "rocketeval.yaml").write_text(CONFIG.format(port=server.port))
    every = QUERIES + QUERIES * CANDIDATES * ITEMS
    answers = rng.randrange(every)
    server.start("--pace", "0.02")
    running = start_run(folder)
    wait_for(lambda: len(server.served(0)) >= answers, running)
    running.send_signal(signal.SIGSTOP)
    time.sleep(rng.uniform(0.5, 6.0))
    running.send_signal(signal.SIGCONT)
    started = time.monotonic()
    _, result = running.communicate(timeout=300)
    server.kill()
    asked = server.served(0)
    if running.returncode or "Traceback" in result or len(asked) != every:
        sys.exit(f"FAILED: paused after {answers}; asked {len(asked)} of {every}\n{result}")
    checklists, items = kept(folder)
    seconds = time.monotonic() - started
    return Stop("paused", signal.SIGSTOP, seconds, 0, checklists, items, 0)


def kept(folder: Path) -> tuple[int, int]:
    """Return the number of checklists and answers that the run has on disk."""
    journal = folder / "runs" / ".cache" / "authored.jsonl"
    checklists = (
        len(list(filter(None, journal.read_text().splitlines()))) if journal.exists() else 0
    )
    store = RunStore(folder / "runs" / "stopped")
    half = sum(map(len, store.half_answered().values())) if store.path.exists() else 0
    return checklists, len(store.finished()) * ITEMS + half


def finish(folder: Path, server: Server, checklists: int, items: int) -> None:
    """Run to the end; exit unless it asks for exactly what was missing."""
    server.start()
    running = start_run(folder)
    _, result = running.communicate(timeout=300)
    server.kill()
    asked, every = server.served(1), QUERIES + QUERIES * CANDIDATES * ITEMS
    if running.returncode != 0:
        sys.exit(f"FAILED: the next run ended with {running.returncode}\n{result}")
    if len(asked) != len(set(asked)) or len(asked) != every - checklists - items:
        sys.exit(
            f"FAILED: the next run asked {len(asked)} of {every}, with {checklists} checklists "
            f"and {items} answers there\n{result}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--times", type=int, default=20, help="stops per kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kinds", default="hung,dead,slow,paused")
    args = parser.parse_args()
    rng, late = random.Random(args.seed), 0
    for kind in args.kinds.split(","):
        stops: list[Stop] = []
        for turn in range(args.times):
            number = SIGNALS[turn % len(SIGNALS)]
            with tempfile.TemporaryDirectory() as scratch:
                folder = Path(scratch)
                stops.append(
                    pause_once(folder, rng)
                    if kind == "paused"
                    else stop_once(kind, folder, rng, number)
                )
            print(stops[-1], flush=True)
        longest = max(stop.seconds for stop in stops)
        late += sum(stop.seconds > LONGEST for stop in stops if kind != "paused")
        kept_in_all = sum(stop.checklists + stop.items for stop in stops)
        print(
            f"{kind}: {len(stops)} stops, the longest {longest:.1f} s; "
            f"{kept_in_all} answers and checklists kept, "
            f"{sum(stop.lost for stop in stops)} lost, none asked again",
            flush=True,
        )
    print(
        f"{late} stops took more than {LONGEST:.0f} s; load of the machine {os.getloadavg()[2]:.0f}"
    )
    sys.exit(1 if late else 0)


if __name__ == "__main__":
    main()
