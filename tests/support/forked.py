"""The command line in a process of its own, without the start of an interpreter.

A server that has imported everything and done nothing forks once for every command: each has its
own memory, streams, folder, environment and exit code, as when a shell starts it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing import get_context
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory

import rocketeval
from rocketeval.cli.main import main

SECONDS = 240
CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        *("rich.console", "rich.live", "rich.table", "rich.text"),
        *(module.name for module in walk_packages(rocketeval.__path__, "rocketeval.")),
    ]
)


def run_forked(
    folder: Path, args: tuple[str, ...], env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder` with this environment, or the test's own, and wait for it."""
    with TemporaryDirectory() as scratch:
        out, err = (Path(scratch) / name for name in ("out", "err"))
        environment = dict(os.environ if env is None else env)
        command = ["rocketeval", *args]
        process = CONTEXT.Process(target=_run, args=(command, folder, environment, out, err))
        process.start()
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(command, SECONDS)
        told = [path.read_bytes().decode() for path in (out, err)]
        return subprocess.CompletedProcess(command, process.exitcode, *told)


def _run(
    command: list[str], folder: Path, environment: dict[str, str], out: Path, err: Path
) -> None:
    """Be the command."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # Nobody's terminal: as wide as it is in a pipe.
    os.environ.pop("COLUMNS", None)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    for number, name, path in ((1, "stdout", out), (2, "stderr", err)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), number)
        setattr(sys, name, open(number, "w", encoding=encoding, closefd=False))  # noqa: SIM115
    sys.argv = command
    main()
