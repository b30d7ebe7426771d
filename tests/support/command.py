"""The command line, as a user runs it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

from support.forked import run_forked

SCRIPTED = """\
name: {name}
benchmark: {{path: benchmark}}
judge: {{engine: scripted, model: {name}}}
ranking: {{bootstrap: 50}}
"""
"""A run of the folder `benchmark`, by a judge of the run's name."""


def run_scripted(folder: Path, *names: str) -> None:
    """Write a config for each name beside the folder's benchmark, and run it."""
    for name in names:
        (folder / f"{name}.yaml").write_text(SCRIPTED.format(name=name))
        cli(folder, "run", f"{name}.yaml", "--quiet")


def cli(folder: Path, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`; the exit code must be `code`, and nothing a traceback."""
    done = run_forked(folder, args)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


async def start_cli(folder: Path, *args: str) -> asyncio.subprocess.Process:
    """Start the command in `folder`, as a process that can be killed."""
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "rocketeval.cli.main", *args),
        cwd=folder,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
