"""Judge replicas on loopback, and a real router as a process in front of them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp import web
from loopback import free_port

from fakes.native_server import NativeServer
from fakes.openai_server import MODEL, serving
from fakes.sglang_server import SGLangShaped
from fakes.toy_tokenizer import ToyTokenizer
from fakes.vllm_server import VLLMShaped

START_SECONDS = 60.0
LOOK_SECONDS = 0.1


class Timed(NativeServer):
    """A stub with latency, so that requests overlap, and a health endpoint for the router."""

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(self.latency)
        return await super()._handle(request)

    def endpoints(self) -> dict[str, Callable[[Any], Any]]:
        """Return the handlers by path."""
        return {**super().endpoints(), "/health": lambda _: {}}


class VLLMReplica(Timed, VLLMShaped):
    """One of several vLLM servers."""


class SGLangReplica(Timed, SGLangShaped):
    """One of several SGLang servers, with an endpoint that reports its model to the router."""

    def endpoints(self) -> dict[str, Callable[[Any], Any]]:
        """Return the handlers by path."""
        described = {"model_path": MODEL, "served_model_name": MODEL}
        return {
            **super().endpoints(),
            "/model_info": lambda _: described,
            "/server_info": lambda _: {"tokenizer_path": "toy", "version": "0.5.9", **described},
        }


@dataclass(frozen=True)
class Router:
    """A router that can be installed as a Python package."""

    package: str
    """Name in the package registry."""
    module: str
    """Module to start with `python -m`."""

    def command(self, policy: str, port: int, workers: Sequence[str]) -> list[str]:
        """Return the command that starts it in front of `workers`.

        `manual/min_load` is the policy `manual` that assigns new sessions by load.
        """
        name, _, mode = policy.partition("/")
        return [
            *(sys.executable, "-m", self.module),
            *("--host", "127.0.0.1", "--port", str(port)),
            *("--prometheus-port", str(free_port()), "--worker-startup-check-interval", "1"),
            *(("--assignment-mode", mode) if mode else ()),
            *("--policy", name, "--worker-urls", *workers),
        ]


VLLM_ROUTER = Router("vllm-router", "vllm_router.launch_router")
SGLANG_ROUTER = Router("sglang-router", "sglang_router.launch_router")


@asynccontextmanager
async def replicas(
    kind: type[NativeServer], number: int, latency: float = 0.0
) -> AsyncIterator[list[NativeServer]]:
    """Serve `number` replicas for the length of the block."""
    tokenizer = ToyTokenizer()
    made = [kind(latency=latency, tokenizer=tokenizer) for _ in range(number)]
    async with AsyncExitStack() as stack:
        for server in made:
            await stack.enter_async_context(serving(server))
        yield made


@asynccontextmanager
async def routed(router: Router, policy: str, behind: Sequence[NativeServer]) -> AsyncIterator[str]:
    """Yield the URL (with /v1) of a router in front of `behind`; it ends with the block."""
    port = free_port()
    workers = [server.base_url.removesuffix("/v1") for server in behind]
    process = subprocess.Popen(
        router.command(policy, port, workers),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        await _knows_its_workers(f"http://127.0.0.1:{port}/workers", len(workers), process)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait(30)


async def _knows_its_workers(url: str, number: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until the router has found all its replicas healthy."""
    deadline = time.monotonic() + START_SECONDS
    async with aiohttp.ClientSession() as session:
        while time.monotonic() < deadline and process.poll() is None:
            with suppress(aiohttp.ClientError):
                async with session.get(url) as reply:
                    workers = (await reply.json(content_type=None))["workers"]
                    if sum(worker["is_healthy"] for worker in workers) == number:
                        return
            await asyncio.sleep(LOOK_SECONDS)
    raise RuntimeError(f"the router did not start: {process.args}")


def touched(behind: Sequence[NativeServer], about: Callable[[str], str]) -> dict[str, Counter[int]]:
    """Return how many prompts each replica answered, grouped by what they are `about`."""
    found: dict[str, Counter[int]] = defaultdict(Counter)
    for number, server in enumerate(behind):
        for prompt in (prompt for call in server.calls for prompt in call.prompts):
            found[about(prompt)][number] += 1
    return found
