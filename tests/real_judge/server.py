"""Start and stop a real judge for tests, with the scripts that users run."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import URLError

SCRIPTS = Path(__file__).resolve().parents[2] / "studies" / "judges"
START_SECONDS = 240.0
ANSWER_SECONDS = 240.0
SLOTS = 4
"""Number of cached prompts: with one, every probe would evict the next task's prefix."""


class ServedJudge(NamedTuple):
    """The URL and name of a real judge."""

    base_url: str
    """OpenAI-compatible base URL, ending in `/v1`."""
    name: str
    """The name to put into a request's `model` field."""


def fetched_weights(judge: str) -> Path:
    """Return the GGUF file of the judge, from the cache or downloaded."""
    fetched = subprocess.run(
        [sys.executable, str(SCRIPTS / "fetch_weights.py"), judge],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    )
    return Path(fetched.stdout.strip())


@contextmanager
def llamacpp_judge(gguf: Path, name: str, log: Path) -> Iterator[ServedJudge]:
    """Serve the file with llama.cpp on a free port for the length of the `with` block."""
    # One thread: two that wait for each other are slower while other tests run.
    command = [sys.executable, str(SCRIPTS / "serve_llamacpp.py"), str(gguf)]
    command += ["--name", name, "--threads", "1", "--slots", str(SLOTS)]
    with (
        log.open("w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            judge = _ready_judge(process, log)
            _wait_until_healthy(judge)
            yield judge
        finally:
            _stop(process)


def listed_judge(base_url: str) -> ServedJudge:
    """Return the judge that a running server lists first."""
    with urllib.request.urlopen(f"{base_url}/models", timeout=ANSWER_SECONDS) as reply:
        return ServedJudge(base_url, json.load(reply)["data"][0]["id"])


def post_chat(judge: ServedJudge, fields: dict[str, Any]) -> dict[str, Any]:
    """Return the judge's decoded reply to one chat completion request."""
    request = urllib.request.Request(
        f"{judge.base_url}/chat/completions",
        data=json.dumps({"model": judge.name, **fields}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=ANSWER_SECONDS) as reply:
        decoded: dict[str, Any] = json.load(reply)
    return decoded


def _ready_judge(process: subprocess.Popen[str], log: Path) -> ServedJudge:
    assert process.stdout is not None
    # A server that hangs while loading would block readline forever.
    deadline = threading.Timer(START_SECONDS, process.kill)
    deadline.start()
    try:
        line = process.stdout.readline()
    finally:
        deadline.cancel()
    match line.split():
        case ["ready", base_url, name]:
            return ServedJudge(base_url, name)
    raise RuntimeError(f"the judge did not start: {line!r}\n{log.read_text()}")


def _wait_until_healthy(judge: ServedJudge) -> None:
    health = f"{judge.base_url.removesuffix('/v1')}/health"
    give_up = time.monotonic() + START_SECONDS
    while True:
        try:
            with urllib.request.urlopen(health, timeout=ANSWER_SECONDS):
                return
        except URLError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.1)


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(timeout=120)
    except subprocess.TimeoutExpired:
        process.kill()
        raise
