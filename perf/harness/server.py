"""A vLLM server, started here or already running, with its cache, tokenizer and counters."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

START_SECONDS = 1800.0
END_SECONDS = 120.0
BLOCK_SIZE = 32
"""Block size of the prefix cache in tokens; suits a CPU and is the same for every engine here."""
MAX_MODEL_LEN = 8192
MARK = "RESPONSE-GOES-HERE"
_COUNTER = re.compile(r"^(?P<name>[\w:]+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$")


class VLLMServer:
    """A connection to one server; `close` ends the server only if it was started here."""

    def __init__(self, base_url: str, process: subprocess.Popen[bytes] | None = None) -> None:
        self.base_url = base_url.rstrip("/")
        self.root = self.base_url.removesuffix("/v1")
        self._process = process
        self.model = str(self.get("/v1/models")["data"][0]["id"])

    @classmethod
    def start(
        cls, python: str, folder: Path, log: Path, dtype: str, flags: Sequence[str] = ()
    ) -> VLLMServer:
        """Start a server for the weights in `folder` and return it once it answers."""
        port = _free_port()
        command = [
            *(python, "-m", "vllm.entrypoints.openai.api_server"),
            *("--model", str(folder), "--served-model-name", folder.name.removesuffix("-bf16")),
            *("--host", "127.0.0.1", "--port", str(port), "--dtype", dtype),
            *("--max-model-len", str(MAX_MODEL_LEN), "--max-logprobs", "50"),
            *("--enable-prefix-caching", "--block-size", str(BLOCK_SIZE)),
            "--enable-prompt-tokens-details",
            *flags,
        ]
        with log.open("wb") as stream:
            process = subprocess.Popen(command, stdout=stream, stderr=stream, env=environment())
        _await_health(f"http://127.0.0.1:{port}", process, log)
        return cls(f"http://127.0.0.1:{port}/v1", process)

    def reset_prefix_cache(self) -> None:
        """Empty the prefix cache; raise if the server refuses."""
        for _ in range(20):
            if self.post("/reset_prefix_cache", {}).get("success"):
                return
            time.sleep(0.2)
        raise RuntimeError(f"{self.root} does not empty its prefix cache.")

    def tokenize(self, text: str) -> list[int]:
        """Return the tokens of a plain text."""
        body = {"model": self.model, "prompt": text, "add_special_tokens": False}
        return [int(token) for token in self.post("/tokenize", body)["tokens"]]

    def chat_tokens(self, prompt: str) -> list[int]:
        """Return the tokens the judge sees when `prompt` is the user's turn."""
        messages = [{"role": "user", "content": prompt}]
        found = self.post("/tokenize", {"model": self.model, "messages": messages})
        return [int(token) for token in found["tokens"]]

    def chat_template_ends(self) -> tuple[str, str]:
        """Return what the judge's chat template puts before and after a user's turn."""
        tokens = self.chat_tokens(MARK)
        text = str(self.post("/detokenize", {"model": self.model, "tokens": tokens})["prompt"])
        before, after = text.split(MARK)
        return before, after

    def counters(self) -> dict[str, float]:
        """Return the server's counters, by `name` or `name{labels}` without the engine label."""
        with urllib.request.urlopen(f"{self.root}/metrics", timeout=30) as reply:
            lines = reply.read().decode().splitlines()
        found = filter(None, map(_COUNTER.match, lines))
        return {_plain(match): float(match["value"]) for match in found}

    def get(self, path: str) -> dict[str, Any]:
        """Return the JSON at `path`."""
        with urllib.request.urlopen(self.root + path, timeout=30) as reply:
            answer: dict[str, Any] = json.load(reply)
        return answer

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON answer to `body`."""
        request = urllib.request.Request(
            self.root + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                answer: dict[str, Any] = json.load(reply)
        except urllib.error.HTTPError as error:
            hint = " (start it with VLLM_SERVER_DEV_MODE=1)" if "reset" in path else ""
            raise RuntimeError(f"{self.root}{path}: HTTP {error.code}{hint}") from None
        return answer

    def close(self) -> None:
        """End the server if it was started here."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(END_SECONDS)


def environment() -> dict[str, str]:
    """Return the environment of our vLLM, the same in-process and behind HTTP."""
    ours = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_SERVER_DEV_MODE": "1",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_CPU_OMP_THREADS_BIND": f"0-{(os.cpu_count() or 1) - 1}",
    }
    return {**ours, **os.environ}


def _plain(match: re.Match[str]) -> str:
    labels = [
        label
        for label in (match["labels"] or "").split(",")
        if label and not label.startswith(("engine=", "model_name="))
    ]
    return f"{match['name']}{{{','.join(labels)}}}" if labels else match["name"]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _await_health(root: str, process: subprocess.Popen[bytes], log: Path) -> None:
    ends = time.monotonic() + START_SECONDS
    while time.monotonic() < ends:
        if process.poll() is not None:
            raise RuntimeError(f"the vLLM server ended while starting; see {log}")
        try:
            urllib.request.urlopen(f"{root}/health", timeout=5).close()
        except OSError:
            time.sleep(1.0)
        else:
            return
    process.terminate()
    raise RuntimeError(f"the vLLM server did not start in {START_SECONDS:.0f} s; see {log}")
