"""Kill a run, or fail a file operation of it, at chosen places; check what the next run finds.

    python studies/robustness/file_faults.py [--cases 40] [--kinds before,after,torn] [--seed 1]
    python studies/robustness/file_faults.py --kinds torn --at 220,258,297

A small run with the scripted judge is the real command in its own process. One of its file
operations (open, write, fsync, rename, link, remove, truncate, chmod, new folder) is chosen: the
process is killed with SIGKILL before it, after it, or with half of the bytes written (torn), or the
operation fails with EIO, with ENOSPC from then on, or with EMFILE. Other kinds kill at a random
moment (moment), or limit the open files (files), the size of a file (size) or the disk, a small
tmpfs (disk; needs root). Then a second command finishes the run. No judgment that was recorded may
be missing, scores and ranking must be those of an undisturbed run to the byte, no command may print
a traceback, and no more judgments may be asked twice than were in flight. The kind `processes`
starts two commands for one run at once: one must finish it, the other must be turned away or find
it finished. The kind `cache` starts two runs that share a cache: both must finish.
"""

from __future__ import annotations

import argparse
import builtins
import errno
import io
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from rocketeval.cli.main import main as rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import RocketEvalError, RunLocked
from rocketeval.store import ledger
from rocketeval.store.run import RunStore
from support.forked import CONTEXT, Stream, be_command
from support.make import write_grid

CONCURRENCY = 2
CONFIG = f"""\
name: NAME
benchmark: {{path: benchmark}}
judge:
  engine: scripted
  model: scripted
  concurrency: {CONCURRENCY}
  options: {{delay: 0.01}}
ranking: {{bootstrap: 50}}
"""
AT_OPERATION = ("before", "after", "torn", "EIO", "ENOSPC", "EMFILE")
LIMITED = ("files", "size", "disk")
TOGETHER = {"processes": ("faulty", "faulty"), "cache": ("faulty", "other")}
"""Names of two runs that start at once."""
KINDS = (*AT_OPERATION, "moment", *LIMITED, *TOGETHER)
COMPARED = ("scores.parquet", "scores.jsonl", "ranking.csv")
OPERATIONS = (
    *("open", "write", "fsync", "replace", "rename", "link", "unlink", "truncate"),
    *("chmod", "mkdir"),
)
LONGEST = 120.0


@dataclass(frozen=True)
class Fault:
    """What goes wrong in a process."""

    kind: str = "none"
    place: float = 0
    """The number of the operation, the limit, or the second of the kill."""


class Operations:
    """Counts the file operations below a folder, and fails the chosen one."""

    def __init__(self, folder: Path, fault: Fault, count: Callable[[str], None]) -> None:
        self._folder, self._fault, self._count = str(folder), fault, count
        self._seen = 0
        self._write = os.write

    def install(self) -> None:
        """Replace the functions of `os` and `open`."""
        for name in OPERATIONS:
            setattr(os, name, self._guarded(name, getattr(os, name)))
        builtins.open = io.open = self._guarded("open", io.open)  # type: ignore[assignment]

    def _guarded(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **settings: Any) -> Any:
            if not self._is_own(args[0]):
                return real(*args, **settings)
            self._seen += 1
            self._count(name)
            due = self._seen == self._fault.place
            kind = self._fault.kind
            if due and kind == "torn" and name == "write":
                real(args[0], args[1][: len(args[1]) // 2])
            if due and kind in ("before", "torn"):
                os.kill(os.getpid(), signal.SIGKILL)
            late = kind == "ENOSPC" and self._seen >= self._fault.place and name != "unlink"
            if late or (due and kind in ("EIO", "EMFILE")):
                number = getattr(errno, kind)
                raise OSError(number, os.strerror(number), str(args[0]))
            done = real(*args, **settings)
            if due and kind == "after":
                os.kill(os.getpid(), signal.SIGKILL)
            return done

        return call

    def _is_own(self, path: Any) -> bool:
        if isinstance(path, int):
            try:
                path = Path(f"/proc/self/fd/{path}").readlink()
            except OSError:
                return False
        return str(Path(os.fsdecode(path)).absolute()).startswith(self._folder)


def child(folder: Path, fault: Fault, config: str, log: Path, streams: tuple[Any, Any]) -> None:
    """Be the command in a process of its own, with the fault."""
    real_write, handle = os.write, os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def note(kind: str, what: str) -> None:
        real_write(handle, f"{kind} {what}\n".encode())

    asked, append = ScriptedEngine.grade, ledger.Ledger.append

    async def grade(self: Any, task: Any, known: Any) -> Any:
        note("asked", task.key.hex())
        return await asked(self, task, known)

    def kept(self: Any, judgment: Any) -> None:
        append(self, judgment)
        note("kept", judgment.key.hex())

    def program() -> None:
        ScriptedEngine.grade = grade  # type: ignore[method-assign]
        ledger.Ledger.append = kept  # type: ignore[method-assign]
        ledger.ROLL_ROWS = 5
        if fault.kind == "files":
            resource.setrlimit(resource.RLIMIT_NOFILE, (int(fault.place),) * 2)
        elif fault.kind == "size":
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(fault.place),) * 2)
        else:
            Operations(folder / "runs", fault, lambda name: note("did", name)).install()
        rocketeval()

    be_command(program, ["rocketeval", "run", "-q", config], folder, dict(os.environ), streams)


@dataclass
class Life:
    """The result of one process."""

    code: int
    stderr: str
    asked: list[str]
    kept: list[str]
    operations: int


@dataclass
class Started:
    """A process that runs."""

    process: Any
    log: Path
    stderr: Path

    def ended(self, seconds: float = LONGEST) -> Life:
        """Wait for its end, kill it if it takes longer, and return its result."""
        self.process.join(seconds)
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        noted = [line.split(" ") for line in lines]
        asked, kept, did = (
            [row[1] for row in noted if row[0] == kind] for kind in ("asked", "kept", "did")
        )
        stderr = self.stderr.read_text(errors="replace")
        return Life(self.process.exitcode, stderr, asked, kept, len(did))


def start(folder: Path, fault: Fault, name: str = "faulty") -> Started:
    """Start the command for a run, with a fault."""
    number = len(list(folder.glob("err-*")))
    log, stderr = folder / f"log-{number}.txt", folder / f"err-{number}.txt"
    with stderr.open("w") as stream:
        streams = (Stream(stream.fileno()), Stream(stream.fileno()))
        args = (folder, fault, f"{name}.yaml", log, streams)
        process = CONTEXT.Process(target=child, args=args)
        process.start()
    return Started(process, log, stderr)


def live(folder: Path, fault: Fault) -> Life:
    """Run the command with a fault, and wait for it."""
    return start(folder, fault).ended(fault.place if fault.kind == "moment" else LONGEST)


def prepare(folder: Path) -> Path:
    """Write the benchmark and the config."""
    write_grid(folder / "benchmark", queries=5, candidates=3, items=2)
    for name in ("faulty", "other"):
        (folder / f"{name}.yaml").write_text(CONFIG.replace("NAME", name))
    (folder / "runs").mkdir(exist_ok=True)
    return folder


def outcome(folder: Path, name: str = "faulty") -> dict[str, bytes]:
    """Return the files of a run that are compared."""
    run = folder / "runs" / name
    return {name: (run / name).read_bytes() for name in COMPARED if (run / name).exists()}


def recorded(folder: Path) -> set[str]:
    """Return the keys in the ledger."""
    store = RunStore(folder / "runs" / "faulty")
    try:
        return {key for table in store.judgments(["key"]) for key in table["key"].to_pylist()}
    except RocketEvalError:
        return set()


def try_fault(folder: Path, fault: Fault, expected: dict[str, bytes]) -> list[str]:
    """Run with the fault, then without; return what went wrong."""
    disk = fault.kind == "disk"
    if disk:
        _mount(folder / "runs", f"size={int(fault.place)}k")
    try:
        first = live(folder, fault)
        after = recorded(folder)
        if disk:
            _mount(folder / "runs", "remount,size=64m")
        second = live(folder, Fault())
        problems = []
        if lost := set(first.kept) - after:
            problems.append(f"{len(lost)} recorded judgments lost")
        again = [key for key, count in Counter(first.asked + second.asked).items() if count > 1]
        if len(again) > CONCURRENCY:
            problems.append(f"{len(again)} judgments asked twice")
        if second.code or outcome(folder) != expected:
            problems.append(f"the next run ended with {second.code}: {second.stderr[-800:]}")
        for life in (first, second):
            if "Traceback" in life.stderr:
                problems.append(f"traceback: {life.stderr[-1500:]}")
        if fault.kind not in ("before", "after", "torn", "moment") and first.code < 0:
            problems.append(f"ended with {first.code}")
        return problems
    finally:
        if disk:
            subprocess.run(["umount", str(folder / "runs")], check=False)


def try_together(folder: Path, kind: str, expected: dict[str, bytes]) -> list[str]:
    """Start two commands at once; return what went wrong."""
    started = [start(folder, Fault(), name) for name in TOGETHER[kind]]
    lives = [each.ended() for each in started]
    codes = sorted(life.code for life in lives)
    problems = [f"traceback: {each.stderr[-1500:]}" for each in lives if "Traceback" in each.stderr]
    if codes not in ([0, 0], [0, RunLocked.exit_code])[: 2 if kind == "processes" else 1]:
        problems.append(f"ended with {codes}: {lives[0].stderr[-400:]} {lives[1].stderr[-400:]}")
    if any(outcome(folder, name) != expected for name in TOGETHER[kind]):
        problems.append("other scores")
    if kind == "processes" and max(Counter(lives[0].asked + lives[1].asked).values()) > 1:
        problems.append("judgments asked twice")
    return problems


def _mount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], check=True)


def places(kind: str, cases: int, operations: int, seconds: float, dice: random.Random) -> Any:
    """Return the places of the faults of one kind."""
    if kind == "moment":
        return [dice.uniform(0, 1.1 * seconds) for _ in range(cases)]
    if kind in TOGETHER:
        return range(cases)
    if kind in LIMITED:
        low, high = {"files": (4, 40), "size": (200, 20_000), "disk": (8, 200)}[kind]
        return [low + (high - low) * number // cases for number in range(cases)]
    return sorted(dice.sample(range(1, operations + 1), min(cases, operations)))


def campaign(kinds: Sequence[str], cases: int, seed: int, at: Sequence[int] = ()) -> int:
    """Try all faults, print a line per kind and per problem; return the number of problems.

    `at` gives the numbers of the operations; otherwise they are chosen.
    """
    dice, bad = random.Random(seed), 0
    with tempfile.TemporaryDirectory() as scratch:
        whole = prepare(Path(scratch) / "whole")
        live(prepare(Path(scratch) / "warm"), Fault())
        started = time.monotonic()
        undisturbed = live(whole, Fault())
        seconds = time.monotonic() - started
        assert undisturbed.code == 0, undisturbed.stderr
        expected = outcome(whole)
        print(f"undisturbed: {undisturbed.operations} file operations, {seconds:.1f} s", flush=True)
        for kind in kinds:
            chosen = at or places(kind, cases, undisturbed.operations, seconds, dice)
            problems = 0
            for place in chosen:
                folder = prepare(Path(scratch) / "case")
                found = (
                    try_together(folder, kind, expected)
                    if kind in TOGETHER
                    else try_fault(folder, Fault(kind, place), expected)
                )
                problems += bool(found)
                for problem in found:
                    print(f"  {kind} {place}: {problem}", flush=True)
                shutil.rmtree(folder)
            bad += problems
            print(f"{kind:8}{len(chosen):5} cases, {problems} with a problem", flush=True)
    return bad


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=40, help="cases per kind")
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at", default="", help="numbers of file operations, with commas")
    args = parser.parse_args()
    at = [int(number) for number in args.at.split(",") if number]
    sys.exit(bool(campaign(args.kinds.split(","), args.cases, args.seed, at)))


if __name__ == "__main__":
    main()
