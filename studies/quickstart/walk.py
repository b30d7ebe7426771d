"""Follow the README's first hour in a fresh environment, as a new user would, and time every step.

    python studies/quickstart/walk.py /tmp/first-hour                       # recorded judge only
    python studies/quickstart/walk.py /tmp/first-hour --gguf judge.gguf     # and a real one
    python studies/quickstart/walk.py /tmp/first-hour --write docs/start/first_hour.md

Creates a virtual environment in the folder and installs this checkout into it, so pip's downloads
are part of the time. A step that fails ends the walk. Typing time is not measured: the table
assumes TYPING seconds per command.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shlex
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
TYPING = 20
"""Seconds to read a step and type or paste its command; assumed, not measured."""
OUTPUT = re.compile(r"\n<!-- walk -->\n.*?<!-- /walk -->\n", re.DOTALL)


@dataclass(frozen=True)
class Step:
    """A command of the README."""

    title: str
    command: str
    """As typed in the walk's folder with the environment active."""
    codes: tuple[int, ...] = (0,)
    """Accepted exit codes."""


@dataclass(frozen=True)
class Timed:
    """A step with its time."""

    step: Step
    seconds: float
    shown: str


def steps(gguf: Path | None, limit: int | None) -> list[Step]:
    """Return the README's steps; those with a real judge only if its weights are given.

    `limit`: judge only the first N queries, as the README advises on a slow machine.
    """
    first = [
        Step("a virtual environment", f"{shlex.quote(sys.executable)} -m venv env"),
        Step("install", f"pip install --quiet {shlex.quote(str(ROOT))}"),
        Step("write the example", "rocketeval init demo --recorded"),
        Step("run it", "rocketeval run demo/rocketeval.yaml"),
        Step("audit", "rocketeval audit demo/rocketeval.yaml"),
        Step("explain", "rocketeval explain demo/rocketeval.yaml --candidate careful"),
        Step("compare", "rocketeval compare careful solid demo/rocketeval.yaml", (0, 1)),
    ]
    if gguf is None:
        return first
    place, few = shlex.quote(str(gguf)), f" --limit {limit}" if limit else ""
    return [
        *first,
        Step("install llama.cpp", f"pip install --quiet '{ROOT}[llamacpp]'"),
        Step("write it for a real judge", f"rocketeval init real --model {place}"),
        Step("check the judge", "rocketeval doctor real/rocketeval.yaml"),
        Step("plan", "rocketeval plan real/rocketeval.yaml"),
        Step("run it", f"rocketeval run real/rocketeval.yaml{few}"),
    ]


def take(step: Step, folder: Path) -> Timed:
    """Run a step and wait for it; if it fails, raise SystemExit with its output."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("PYTHONPATH", "VIRTUAL_ENV")
    }
    environment["PATH"] = f"{folder / 'env' / 'bin'}{os.pathsep}{os.environ['PATH']}"
    print(f"$ {step.command}", flush=True)
    started = time.monotonic()
    done = subprocess.run(
        step.command, shell=True, cwd=folder, env=environment, capture_output=True, text=True
    )
    seconds = time.monotonic() - started
    print(f"{done.stdout}({seconds:.1f} s)\n", flush=True)
    if done.returncode not in step.codes:
        raise SystemExit(f"exit code {done.returncode}:\n{done.stderr}")
    return Timed(step, seconds, done.stdout)


def machine() -> str:
    """Return the machine in one line: processor, cores, memory, number formats."""
    cpuinfo = Path("/proc/cpuinfo").read_text() if Path("/proc/cpuinfo").exists() else ""
    named = re.search(r"model name\s*: (.*)", cpuinfo)
    flags = re.search(r"^flags\s*: (.*)", cpuinfo, re.MULTILINE)
    known = [
        flag
        for flag in ("avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_bf16")
        if flags and flag in flags[1].split()
    ]
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    processor = named[1] if named else platform.processor() or platform.machine()
    return (
        f"{processor}, {os.cpu_count()} cores ({', '.join(known) or 'flags not known'}), "
        f"{memory:.0f} GB of memory, no GPU, Python {platform.python_version()}, load average "
        f"{os.getloadavg()[0]:.1f} at the start"
    )


def table(taken: list[Timed], on: str) -> str:
    """Return the walk as Markdown."""
    lines = [f"Machine: {on}.", "", "| step | command | you | waiting |", "|---|---|---|---|"]
    waited = 0.0
    for one in taken:
        command = one.step.command.replace(str(ROOT), ".").replace(sys.executable, "python3")
        command = re.sub(r"\S*/([\w.-]+\.gguf)", r"\1", command)
        waited += one.seconds
        lines.append(f"| {one.step.title} | `{command}` | {TYPING} s | {shown(one.seconds)} |")
    lines.append(f"| **all** | | **{shown(TYPING * len(taken))}** | **{shown(waited)}** |")
    return "\n".join(lines)


def shown(seconds: float) -> str:
    """Return a time in seconds or minutes."""
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def main() -> None:
    """Take all steps, print the table, and write it with --write."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument("--gguf", type=Path, help="weights of a real judge")
    parser.add_argument("--limit", type=int, help="judge only the first N queries")
    parser.add_argument("--write", type=Path, help="page whose table to replace with this one")
    given = parser.parse_args()
    folder: Path = given.folder.resolve()
    folder.mkdir(parents=True)
    on = machine()
    taken = [take(step, folder) for step in steps(given.gguf and given.gguf.resolve(), given.limit)]
    result = table(taken, on)
    print(result)
    facts = [{"command": one.step.command, "seconds": one.seconds} for one in taken]
    (folder / "walk.json").write_text(json.dumps({"machine": on, "steps": facts}, indent=1))
    if given.write:
        page = given.write.read_text()
        block = f"\n<!-- walk -->\n{result}\n<!-- /walk -->\n"
        given.write.write_text(OUTPUT.sub(lambda _: block, page))


if __name__ == "__main__":
    main()
