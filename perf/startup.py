"""Startup time of RocketEval, and the number of packages in the core install.

    python perf/startup.py [--rounds 10] [--install] [--verbs] [--against COMMIT]

Each command runs in a fresh process, rounds interleaved; the table shows medians, including a bare
`python -c pass`. With --verbs it shows the CPU time of every `rocketeval VERB --help` as a multiple
of that of `rocketeval --help`: the ratio of sums over interleaved rounds. With --install a new
virtual environment gets `pip install .` first; its packages are counted and it runs the timings.
With --against it compares the CPU time with that of an earlier commit: both packages are exported
into folders of their own, the order alternates, and the ratio of sums over all rounds is shown.
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


def cpu_seconds(command: list[str], env: dict[str, str] | None = None) -> float:
    """Return the user and system CPU time of one process."""
    before = os.times()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd="/", env=env)
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


def exported(commit: str, folder: Path) -> Path:
    """Write the package of a commit into a folder, compiled; return the folder to import from."""
    folder.mkdir()
    archive = subprocess.run(
        ["git", "archive", commit, "src"], check=True, capture_output=True, cwd=ROOT
    )
    subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
    subprocess.run([sys.executable, "-m", "compileall", "-q", str(folder)], check=True)
    return folder / "src"


def measure_against(python: str, commit: str, rounds: int) -> None:
    """Print the CPU time of HEAD and of an earlier commit, in paired rounds."""
    commands = {
        "import rocketeval": ["-c", "import rocketeval"],
        "rocketeval --help": ["-m", "rocketeval.cli.main", "--help"],
        "run --help": ["-m", "rocketeval.cli.main", "run", "--help"],
        "import every public name": ["-c", "from rocketeval import *"],
    }
    with tempfile.TemporaryDirectory() as scratch:
        sources = {
            name: exported(name, Path(scratch) / str(number))
            for number, name in enumerate(("HEAD", commit))
        }
        taken = {(name, source): 0.0 for name in commands for source in sources}
        for number in range(rounds):
            for name, command in commands.items():
                for source in sorted(sources, reverse=bool(number % 2)):
                    env = os.environ | {"PYTHONPATH": str(sources[source])}
                    taken[name, source] += cpu_seconds([python, *command], env)
    for name in commands:
        now, before = taken[name, "HEAD"], taken[name, commit]
        print(
            f"{name:<26}{before / rounds:>7.3f} s CPU at {commit},{now / rounds:>7.3f} s now:"
            f"{now / before:>6.2f}x"
        )


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
    parser.add_argument("--against", metavar="COMMIT")
    args = parser.parse_args()
    if args.against:
        measure_against(sys.executable, args.against, args.rounds)
        return
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
