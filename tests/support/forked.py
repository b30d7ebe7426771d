"""The command line in a separate process, without starting an interpreter.

A server process that has imported everything forks once per command. Each fork has its own memory,
streams, folder, environment and exit code, as if a shell had started it.
"""

from __future__ import annotations

import fcntl
import os
import runpy
import signal
import subprocess
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from io import TextIOWrapper
from multiprocessing import get_context, reduction
from pathlib import Path
from pkgutil import walk_packages
from tempfile import TemporaryDirectory
from typing import Any, TextIO

import pytest

import rocketeval
from rocketeval.cli.main import main
from rocketeval.errors import RunLocked
from rocketeval.store.run import RunStore

SECONDS = 600
"""Timeout for a command, generous enough for a busy machine."""
HELD = 9
CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        *("rich.console", "rich.live", "rich.table", "rich.text"),
        *(module.name for module in walk_packages(rocketeval.__path__, "rocketeval.")),
        # Modules that are imported lazily; pyarrow loads pandas if it is installed.
        *("pandas", "pyarrow.dataset", "scipy.stats"),
    ]
)


class Forked:
    """A running command with the part of `subprocess.Popen` that tests need; its output is small.

    With a `terminal`, all its streams are that terminal, which controls its session.
    """

    def __init__(
        self,
        folder: Path,
        args: Sequence[str],
        env: Mapping[str, str] | None = None,
        terminal: int | None = None,
    ) -> None:
        self.args = ["rocketeval", *args]
        if terminal is not None:
            self._process = _started(main, self.args, folder, env, terminal, terminal)
            self.pid: int = self._process.pid
            self._unread: dict[TextIO, str] = {}
            return
        (from_out, out), (from_err, err) = os.pipe(), os.pipe()
        self._process = _started(main, self.args, folder, env, out, err)
        os.close(out)
        os.close(err)
        self.pid = self._process.pid
        self.stdout, self.stderr = os.fdopen(from_out), os.fdopen(from_err)
        self._unread = {self.stdout: "", self.stderr: ""}

    @property
    def returncode(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        found: int | None = self._process.exitcode
        return found

    def send_signal(self, number: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill it."""
        self._process.kill()

    def wait(self, timeout: float = SECONDS) -> int:
        """Wait for its end."""
        self._process.join(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        for stream in self._unread:
            if not stream.closed:
                self._unread[stream] = stream.read()
                stream.close()
        return self.returncode

    def communicate(self, timeout: float = SECONDS) -> tuple[str, str]:
        """Wait for its end; return its unread output."""
        self.wait(timeout)
        return self._unread[self.stdout], self._unread[self.stderr]


def run_forked(
    folder: Path, args: tuple[str, ...], env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder` with this environment, or the test's own, and wait for it."""
    return _ended(main, ["rocketeval", *args], folder, env)


def run_script(
    script: Path, *args: str, folder: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a Python file as a program, and wait for it."""
    return _ended(_be_script, [str(script), *args], folder, env)


def run_pytest(
    folder: Path, *args: str, env: Mapping[str, str]
) -> subprocess.CompletedProcess[str]:
    """Run the tests in `folder`, and wait for the end."""
    return _ended(_be_pytest, ["pytest", *args], folder, env)


def is_held(run: Path) -> bool:
    """Return whether another process cannot lock this run."""
    process = CONTEXT.Process(target=_take, args=(run,))
    process.start()
    process.join(SECONDS)
    assert process.exitcode in (0, HELD), process.exitcode
    return bool(process.exitcode == HELD)


def _take(run: Path) -> None:
    try:
        with RunStore(run).locked():
            pass
    except RunLocked:
        sys.exit(HELD)


def _ended(
    program: Callable[[], Any],
    command: list[str],
    folder: Path,
    env: Mapping[str, str] | None,
) -> subprocess.CompletedProcess[str]:
    with TemporaryDirectory() as scratch:
        paths = [Path(scratch) / name for name in ("out", "err")]
        with paths[0].open("w") as out, paths[1].open("w") as err:
            process = _started(program, command, folder, env, out.fileno(), err.fileno())
        process.join(SECONDS)
        if process.exitcode is None:
            process.kill()
            raise subprocess.TimeoutExpired(command, SECONDS)
        output = [path.read_bytes().decode() for path in paths]
        return subprocess.CompletedProcess(command, process.exitcode, *output)


def _started(
    program: Callable[[], Any],
    command: list[str],
    folder: Path,
    env: Mapping[str, str] | None,
    out: int,
    err: int,
) -> Any:
    environment = dict(os.environ if env is None else env)
    streams = (Stream(out), Stream(err))
    process = CONTEXT.Process(
        target=be_command, args=(program, command, folder, environment, streams)
    )
    process.start()
    return process


class Stream:
    """A file descriptor to pass to the new process."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __reduce__(self) -> tuple[Callable[[Any], int], tuple[Any]]:
        return _arrived, (reduction.DupFd(self.number),)


def _arrived(sent: Any) -> int:
    number: int = sent.detach()
    return number


def be_command(
    program: Callable[[], Any],
    command: list[str],
    folder: Path,
    environment: dict[str, str],
    streams: tuple[int, int],
) -> None:
    """Run the command in the forked process."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    # Use the width of the terminal or pipe.
    os.environ.pop("COLUMNS", None)
    # A test run in the background of a shell passes on that SIGINT is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.isatty(streams[0]):
        os.setsid()
        fcntl.ioctl(streams[0], termios.TIOCSCTTY, 0)
        os.dup2(streams[0], 0)
    else:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    encoding = environment.get("PYTHONIOENCODING", "utf-8")
    for number, name, stream in ((1, "stdout", streams[0]), (2, "stderr", streams[1])):
        os.dup2(stream, number)
        os.close(stream)
        lines = "PYTHONUNBUFFERED" in environment or name == "stderr" or os.isatty(number)
        opened = os.fdopen(number, "wb", closefd=False)
        setattr(sys, name, TextIOWrapper(opened, encoding, line_buffering=lines))
    sys.argv = command
    program()


def _be_pytest() -> None:
    sys.path.insert(0, str(Path.cwd()))
    sys.exit(pytest.main(sys.argv[1:]))


def _be_script() -> None:
    sys.path.insert(0, str(Path(sys.argv[0]).parent))
    runpy.run_path(sys.argv[0], run_name="__main__")
