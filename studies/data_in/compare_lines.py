"""Lines of user code for one task in five tools, each program run against the same server.

    python studies/data_in/compare_lines.py --peers FOLDER [--only ragas] [--record]

The task: rank three prompt versions in a data frame (3 questions each) with a judge on localhost.
The programs are in `programs/`. A line counts if it is neither blank nor a comment; Python is
formatted by ruff with this project's settings. Every program runs in a scratch copy of its folder.
FOLDER holds a virtual environment per Python tool (`deepeval`, `inspect`, `ragas`) and a folder
`promptfoo` with its `node_modules`. With `--record`, the output goes to
`studies/recorded/data_in_lines.txt`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
PROGRAMS = HERE / "programs"
RECORD = HERE.parent / "recorded" / "data_in_lines.txt"
LONGEST = 1800
"""Seconds after which a program is stopped."""
LAST_LINES = 14
"""Lines of a program's output that are shown."""


@dataclass(frozen=True, slots=True)
class Program:
    """One tool's program for the task."""

    tool: str
    package: str
    """The package whose version is printed."""
    files: tuple[str, ...]
    """What a user writes; the last one is run."""


TOOLS = (
    Program("rocketeval", "rocketeval", ("with_rocketeval.py",)),
    Program("rocketeval, command line", "rocketeval", ("with_rocketeval.sh",)),
    Program("ragas", "ragas", ("with_ragas.py",)),
    Program("promptfoo", "promptfoo", ("with_promptfoo.yaml", "with_promptfoo.sh")),
    Program("deepeval", "deepeval", ("with_deepeval.py",)),
    Program("inspect", "inspect_ai", ("with_inspect.py",)),
)


def count_lines(path: Path) -> int:
    """Return the number of lines that are neither blank nor a comment."""
    lines = (line.strip() for line in path.read_text().splitlines())
    return sum(1 for line in lines if line and not line.startswith("#"))


def python_of(program: Program, peers: Path) -> Path:
    """Return the interpreter of a tool: its own environment, or this one."""
    own = peers / program.tool / "bin" / "python"
    return own if own.exists() else Path(sys.executable)


def version_of(program: Program, peers: Path) -> str:
    """Return the installed version of a tool."""
    if program.tool == "promptfoo":
        asked = ["npx", "promptfoo", "--version"]
        folder = peers / "promptfoo"
    else:
        code = f"from importlib.metadata import version; print(version({program.package!r}))"
        asked, folder = [str(python_of(program, peers)), "-c", code], HERE
    done = subprocess.run(asked, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip().splitlines()[-1]


def run_program(program: Program, peers: Path) -> Iterator[str]:
    """Run a program in a scratch folder; yield its seconds and the end of its output."""
    with TemporaryDirectory() as folder:
        scratch = Path(folder) / "programs"
        shutil.copytree(PROGRAMS, scratch)
        last = program.files[-1]
        command = ["sh", last] if last.endswith(".sh") else [str(python_of(program, peers)), last]
        if program.tool == "promptfoo":
            (scratch / "node_modules").symlink_to(peers / "promptfoo" / "node_modules")
        here = str(Path(sys.executable).parent)
        quiet = {
            "PROMPTFOO_DISABLE_TELEMETRY": "1",
            "PROMPTFOO_DISABLE_UPDATE": "1",
            "PROMPTFOO_CONFIG_DIR": str(Path(folder) / "promptfoo"),
            "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
            # A small server is slow; no tool is to fail because of that.
            "DEEPEVAL_DISABLE_TIMEOUTS": "1",
            "RAGAS_DO_NOT_TRACK": "true",
        }
        given = {**os.environ, **quiet, "PATH": f"{here}:{os.environ['PATH']}"}
        if program.package != "rocketeval":
            given.pop("PYTHONPATH", None)
        started = time.monotonic()
        done = subprocess.run(
            command,
            cwd=scratch,
            env=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=LONGEST,
            check=False,
        )
        yield f"exit code {done.returncode}, {time.monotonic() - started:.0f} s"
        shown = [line.rstrip() for line in done.stdout.splitlines() if line.strip()]
        yield from (f"    {line.replace(folder, '')[:160]}" for line in shown[-LAST_LINES:])


def main() -> None:
    """Count and run the programs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", type=Path, required=True)
    parser.add_argument("--only", nargs="+", default=[program.tool for program in TOOLS])
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    written = []
    for program in TOOLS:
        if program.tool in given.only:
            lines = sum(count_lines(PROGRAMS / name) for name in program.files)
            names = " + ".join(program.files)
            version = version_of(program, given.peers)
            found = [f"{program.tool} {version}: {lines} lines ({names})"]
            found += run_program(program, given.peers)
            print("\n".join(found), flush=True)
            written += found
    if given.record:
        RECORD.write_text("\n".join(written) + "\n")


if __name__ == "__main__":
    main()
