"""The fake OpenAI server as a process that can be killed."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from fakes import openai_server


class Served:
    """A server process; the constructor does not wait until it listens."""

    def __init__(
        self,
        port: int,
        log: Path,
        latency: float | None = None,
        holds_after: int | None = None,
    ) -> None:
        command = [sys.executable, openai_server.__file__]
        command += ["--port", str(port), "--log", str(log)]
        if latency is not None:
            command += ["--latency", str(latency)]
        if holds_after is not None:
            command += ["--holds-after", str(holds_after)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self._stdout = self._process.stdout

    def wait_until_ready(self) -> None:
        """Wait for the line that says it listens."""
        assert self._stdout.readline() == b"ready\n"

    def release(self) -> None:
        """Let it answer the requests it holds."""
        self._process.send_signal(signal.SIGUSR1)

    def kill(self) -> None:
        """Kill it without warning, like a power cut."""
        self._process.kill()
        self._process.wait(240)
        self._stdout.close()
