"""The command line in a separate process, as a user runs it."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

from support.forked import Forked, run_forked

SCRIPTED = """\
name: {name}
benchmark: {{path: benchmark}}
judge: {{engine: scripted, model: {name}}}
ranking: {{bootstrap: 50}}
"""
"""A config for the folder `benchmark`; the judge has the run's name."""


def run_scripted(folder: Path, *names: str) -> None:
    """Write a config for each name next to the folder's benchmark, and run it."""
    for name in names:
        (folder / f"{name}.yaml").write_text(SCRIPTED.format(name=name))
        cli(folder, "run", f"{name}.yaml", "--quiet")


def cli(folder: Path, *args: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder`; assert its exit code and that it prints no traceback."""
    done = run_forked(folder, args)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done


class StartedCommand:
    """A running command, for tests whose event loop serves it."""

    def __init__(self, process: Forked) -> None:
        self._process = process
        self.kill, self.send_signal = process.kill, process.send_signal

    @property
    def returncode(self) -> int | None:
        """Return its exit code, negative for a signal; None while it runs."""
        return self._process.returncode

    async def wait(self) -> int:
        """Wait for its end."""
        while self._process.returncode is None:
            await asyncio.sleep(0.01)
        return self._process.wait()

    async def communicate(self) -> tuple[bytes, bytes]:
        """Wait for its end; return its output."""
        await self.wait()
        out, err = self._process.communicate()
        return out.encode(), err.encode()


async def start_cli(folder: Path, *args: str) -> StartedCommand:
    """Start the command in `folder`, as a process that can be killed."""
    return StartedCommand(await asyncio.to_thread(Forked, folder, args))
