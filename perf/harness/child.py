"""A method in a separate process and possibly another interpreter, driven by lines of JSON.

It prepares once, then runs or resets on command and is idle in between, so that rounds of several
methods can alternate. The output of its libraries goes to a log file.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from harness.measured import Measured, Method

PERF = Path(__file__).parents[1]
END_SECONDS = 60.0


class ChildFailed(RuntimeError):
    """Raised if a method's process fails; the message names its log."""


class Child:
    """A method in another process; `facts` is its description of itself once prepared."""

    def __init__(
        self,
        module: str,
        python: str,
        settings: Mapping[str, Any],
        log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._log = log
        with log.open("wb") as stream:
            self._process = subprocess.Popen(
                [python, "-m", module],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stream,
                cwd=PERF,
                env={**os.environ, **(environment or {})},
            )
        self.facts = self._ask({"do": "prepare", **settings})

    def run(self) -> Measured:
        """Grade the whole workload once in the child process."""
        return Measured(**self._ask({"do": "run"}))

    def reset(self) -> None:
        """Empty the prefix cache of the child's engine."""
        self._ask({"do": "reset"})

    def ask(self, command: str, **settings: Any) -> dict[str, Any]:
        """Send a method-specific command and return its answer."""
        return self._ask({"do": command, **settings})

    def close(self) -> None:
        """Let it end by itself, so that its own processes end too; kill it if it does not."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.terminate()
            self._process.wait(END_SECONDS)

    def _ask(self, command: Mapping[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(command).encode() + b"\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = b""
        if not answer:
            raise ChildFailed(f"a method's process ended; see {self._log}")
        found: dict[str, Any] = json.loads(answer)
        if "error" in found:
            raise ChildFailed(f"{found['error']}; see {self._log}")
        return found


Prepare = Callable[[dict[str, Any]], tuple[Method, dict[str, Any]]]


def serve(prepare: Prepare) -> None:
    """Answer the commands on standard input until it closes (the child's side)."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    # Libraries print to standard output; only answers may go to the parent.
    os.dup2(2, 1)
    method: Method | None = None
    try:
        for line in sys.stdin:
            command = json.loads(line)
            try:
                if command["do"] == "prepare":
                    method, facts = prepare(command)
                else:
                    facts = _execute(method, command)
            except Exception as error:
                answers.write(json.dumps({"error": f"{type(error).__name__}: {error}"}) + "\n")
                raise
            answers.write(json.dumps(facts) + "\n")
    finally:
        if method is not None:
            method.close()


def _execute(method: Method | None, command: dict[str, Any]) -> dict[str, Any]:
    assert method is not None
    name = command.pop("do")
    found = getattr(method, name)(**command)
    return asdict(found) if isinstance(found, Measured) else dict(found or {})
