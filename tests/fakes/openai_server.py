"""A fake OpenAI-compatible server on loopback with rule-based answers and faults.

Probe requests of the engine are answered normally: they use up no fault and are not among the
`chats`.

In a test: `async with serving(FakeOpenAI()) as server`, then `server.fail(status(503), times=2)`.
As a separate process that can be killed: `python openai_server.py --port 8123 --log seen.jsonl`;
with `--holds-after` it holds later requests until SIGUSR1.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import json
import math
import signal
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiohttp import web

from rocketeval.engines.probe import PREFIX

MODEL = "fake-judge"
VERSION = "9.9.fake"
HOTTEST = 2.0
"""Servers reject a higher temperature."""
FILLER = 30
"""Other tokens that share the remaining probability."""

Distribution = Callable[[str], Mapping[str, float]]
Fault = Callable[[web.Request], Awaitable[web.StreamResponse]]


def by_content(prompt: str) -> dict[str, float]:
    """Return the full next-token distribution, determined by the prompt's content."""
    number = int.from_bytes(hashlib.sha256(prompt.encode()).digest()[:8], "big")
    p_yes = 0.02 + 0.96 * number / 2**64
    return yes_no(p_yes)


def yes_no(p_yes: float, mass: float = 0.9) -> dict[str, float]:
    """Return a distribution with `mass` on yes and no, and the rest on other words."""
    rest = {f"word{number}": (1 - mass) / FILLER for number in range(FILLER)}
    return {"Yes": mass * p_yes, "No": mass * (1 - p_yes), **rest}


def grades(prompt: str) -> dict[str, float]:
    """Return a distribution over the grades 5 to 1 and other words, determined by the prompt."""
    weights = [1 + byte for byte in hashlib.sha256(prompt.encode()).digest()[:5]]
    rest = {f"word{number}": 0.1 / FILLER for number in range(FILLER)}
    shares = (0.9 * weight / sum(weights) for weight in weights)
    return {**dict(zip("54321", shares, strict=True)), **rest}


@dataclass(frozen=True)
class Seen:
    """One request that the server received."""

    path: str
    headers: Mapping[str, str]
    body: Any
    at: float
    """Event loop time of its arrival."""

    @property
    def prompt(self) -> str:
        """Return the user message of a chat request."""
        content: str = self.body["messages"][-1]["content"]
        return content


@dataclass
class FakeOpenAI:
    """A scriptable server; `serving` puts it on a port."""

    distribution: Distribution = by_content
    text: str = "1. Is it right?\n2. Is it clear?\n3. Is it short?"
    """The text it writes if no log-probabilities are requested."""
    rejects: str | None = None
    """Prompts that contain this text get HTTP 400."""
    latency: float = 0.0
    log: Path | None = None
    """File to which every answered chat prompt is appended as a line of JSON."""
    holds_after: int | None = None
    """Number of chats to answer at once; later ones wait for `release`."""
    release: asyncio.Event = field(default_factory=asyncio.Event)
    base_url: str = ""
    seen: list[Seen] = field(default_factory=list)
    most_in_flight: int = 0
    _in_flight: int = 0
    _begun: int = 0
    _faults: deque[Fault] = field(default_factory=deque)
    _path_faults: dict[str, Fault] = field(default_factory=dict)

    def fail(self, fault: Fault, *, times: int = 1) -> None:
        """Answer the next `times` chat requests with `fault`."""
        self._faults.extend([fault] * times)

    def always(self, path: str, fault: Fault) -> None:
        """Answer every request to `path` with `fault`."""
        self._path_faults[path] = fault

    @property
    def chats(self) -> list[Seen]:
        """Return the chat requests, in order of arrival."""
        return [
            seen
            for seen in self.seen
            if seen.path == "/v1/chat/completions" and not seen.prompt.startswith(PREFIX)
        ]

    def application(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self._handle)
        return app

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        body = await request.json() if request.method == "POST" else None
        now = asyncio.get_running_loop().time()
        self.seen.append(Seen(request.path, dict(request.headers), body, now))
        if request.path in self._path_faults:
            return await self._path_faults[request.path](request)
        if request.path == "/v1/models":
            return web.json_response({"object": "list", "data": [{"id": MODEL}]})
        if request.path == "/version":
            return web.json_response({"version": VERSION})
        if request.path != "/v1/chat/completions":
            return web.json_response({"error": {"message": "no such path"}}, status=404)
        self._in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self._in_flight)
        try:
            return await self._chat(request, body)
        finally:
            self._in_flight -= 1

    async def _chat(self, request: web.Request, body: Any) -> web.StreamResponse:
        if body.get("temperature", 0) > HOTTEST:
            return web.json_response({"error": {"message": "temperature too high"}}, status=400)
        if body["messages"][-1]["content"].startswith(PREFIX):
            return web.json_response(self.reply(body["messages"][-1]["content"], body))
        fault = self._faults.popleft() if self._faults else None
        await asyncio.sleep(self.latency)
        self._begun += 1
        if self.holds_after is not None and self._begun > self.holds_after:
            await self.release.wait()
        if fault is not None:
            return await fault(request)
        prompt = body["messages"][-1]["content"]
        if self.rejects is not None and self.rejects in prompt:
            return web.json_response({"error": {"message": "the prompt is too long"}}, status=400)
        if self.log is not None:
            with self.log.open("a") as stream:
                stream.write(json.dumps(prompt) + "\n")
        return web.json_response(self.reply(prompt, body))

    def reply(self, prompt: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return the chat completion for `prompt`."""
        listed = sorted(self.distribution(prompt).items(), key=lambda pair: -pair[1])
        choice: dict[str, Any] = {"index": 0, "finish_reason": "length", "logprobs": None}
        if body.get("logprobs"):
            rows = [
                {"token": token, "logprob": math.log(p)}
                for token, p in listed[: body["top_logprobs"]]
            ]
            choice["message"] = {"role": "assistant", "content": rows[0]["token"]}
            choice["logprobs"] = {"content": [{**rows[0], "top_logprobs": rows}]}
        else:
            choice["message"] = {"role": "assistant", "content": self.text}
            choice["finish_reason"] = "stop"
        usage = {
            "prompt_tokens": len(prompt.split()),
            "completion_tokens": 1,
            "prompt_tokens_details": {"cached_tokens": 2},
        }
        return {"object": "chat.completion", "choices": [choice], "usage": usage}


@asynccontextmanager
async def serving(server: FakeOpenAI, port: int = 0) -> AsyncIterator[FakeOpenAI]:
    """Serve on loopback (by default on a free port) for the length of the `async with` block."""
    runner = web.AppRunner(server.application(), shutdown_timeout=0.05)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True)
    await site.start()
    server.base_url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    try:
        yield server
    finally:
        await runner.cleanup()


def status(code: int, message: str = "scripted", headers: Mapping[str, str] | None = None) -> Fault:
    """Return a fault that sends an HTTP status with an error body."""

    async def fault(_: web.Request) -> web.StreamResponse:
        return web.json_response({"error": {"message": message}}, status=code, headers=headers)

    return fault


def echoed_key(code: int, padding: str = "") -> Fault:
    """Return a fault whose body repeats the Authorization header, as careless servers do."""

    async def fault(request: web.Request) -> web.StreamResponse:
        text = padding + "you sent " + request.headers.get("Authorization", "")
        return web.Response(text=text, status=code)

    return fault


def answer(body: Any) -> Fault:
    """Return a fault that sends HTTP 200 with any JSON."""

    async def fault(_: web.Request) -> web.StreamResponse:
        return web.json_response(body)

    return fault


async def garbage(_: web.Request) -> web.StreamResponse:
    """Send HTTP 200 with half of a JSON object."""
    return web.Response(text='{"choices": [', content_type="application/json")


async def dropped(request: web.Request) -> web.StreamResponse:
    """Cut the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    return web.Response()


async def hang(_: web.Request) -> web.StreamResponse:
    """Keep the connection open without an answer."""
    await asyncio.sleep(3600)
    return web.Response()


array = answer([1, 2, 3])
without_choices = answer({"object": "chat.completion"})
empty_choices = answer({"choices": []})
without_logprobs = answer({"choices": [{"message": {"content": "Yes"}, "logprobs": None}]})


async def _serve_for_ever(
    port: int, log: Path, latency: float, holds_after: int | None = None
) -> None:
    fake = FakeOpenAI(latency=latency, log=log, holds_after=holds_after)
    asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, fake.release.set)
    async with serving(fake, port):
        print("ready", flush=True)  # noqa: T201 - the parent process waits for this line
        await asyncio.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--latency", type=float, default=0.005)
    parser.add_argument("--holds-after", type=int)
    result = parser.parse_args()
    asyncio.run(_serve_for_ever(result.port, result.log, result.latency, result.holds_after))
