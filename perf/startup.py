"""Startup time of RocketEval, and the number of packages in the core install.

    python perf/startup.py [--rounds 10] [--install] [--verbs]

Each command runs in a fresh process, rounds interleaved; the table shows medians, including a bare
`python -c pass`. With --verbs it shows the CPU time of every `rocketeval VERB --help` as a multiple
of that of `rocketeval --help`: the ratio of sums over interleaved rounds. With --install a new
virtual environment gets `pip install .` first; its packages are counted and it runs the timings.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

ROOT = Path(__file__).parents[1]
PIP_ITSELF = {"pip", "setuptools", "wheel"}


def seconds(command: list[str]) -> float:
    """Return the wall time of one process."""
    started = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")
    return time.perf_counter() - started


def measure(python: str, rounds: int) -> None:
    """Print the medians."""
    commands = {
        "python -c pass": [python, "-c", "pass"],
        "import rocketeval": [python, "-c", "import rocketeval"],
        "rocketeval --help": [python, "-m", "rocketeval.cli.main", "--help"],
        "import every public name": [python, "-c", "from rocketeval import *"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name].append(seconds(command))
    for name, times in taken.items():
        print(f"{name:<26}{statistics.median(times):>7.3f} s")


def cpu_seconds(command: list[str]) -> float:
    """Return the user and system CPU time of one process."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/")
    after = os.times()
    return after.children_user + after.children_system - before[2] - before[3]


def measure_verbs(python: str, rounds: int) -> None:
    """Print the cost of each verb's help, as a multiple of the program's own."""
    from rocketeval.cli.main import VERBS

    start = [python, "-m", "rocketeval.cli.main"]
    commands = {
        "rocketeval --help": [*start, "--help"],
        "import rocketeval": [python, "-c", "import rocketeval"],
        "from rocketeval import Run": [python, "-c", "from rocketeval import Run"],
        **{f"{verb} --help": [*start, verb, "--help"] for verb in VERBS},
    }
    taken = dict.fromkeys(commands, 0.0)
    for _ in range(rounds):
        for name, command in commands.items():
            taken[name] += cpu_seconds(command)
    base = taken["rocketeval --help"]
    for name, total in taken.items():
        print(f"{name:<28}{total / rounds:>7.3f} s CPU{total / base:>8.2f}x")


def install(folder: Path) -> str:
    """Install the core into a new environment; print its packages; return its interpreter."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    started = time.perf_counter()
    subprocess.run([python, "-m", "pip", "install", "--quiet", str(ROOT)], check=True)
    took = time.perf_counter() - started
    listed = subprocess.run(
        [python, "-m", "pip", "list", "--format=freeze"], check=True, capture_output=True, text=True
    )
    names = [line.partition("==")[0] for line in listed.stdout.splitlines()]
    packages = [name for name in names if name.lower() not in PIP_ITSELF]
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    print(f"core install: {len(packages)} packages, {size / 1e6:.0f} MB, {took:.0f} s")
    print(" ".join(packages))
    return python


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--verbs", action="store_true")
    args = parser.parse_args()
    if args.verbs:
        measure_verbs(sys.executable, args.rounds)
        return
    if not args.install:
        measure(sys.executable, args.rounds)
        return
    with tempfile.TemporaryDirectory() as scratch:
        measure(install(Path(scratch) / "venv"), args.rounds)


if __name__ == "__main__":
    main()
