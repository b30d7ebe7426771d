"""Engines and request forms in front of a stub server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from fakes.native_server import NativeServer
from fakes.openai_server import MODEL, serving
from fakes.sglang_server import SGLangShaped
from fakes.vllm_server import VLLMShaped
from rocketeval.config import EngineConfig
from rocketeval.engines.http import HttpClient
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.probe import ProbeResult, probe
from rocketeval.engines.readout import Readout
from rocketeval.engines.replies import UsageMeter
from rocketeval.engines.server import inspect_server
from rocketeval.engines.transports.base import ServerConnection

FORMS: dict[str, Callable[[], NativeServer]] = {
    "chat": VLLMShaped,
    "chat_exact": VLLMShaped,
    "chat_batch": VLLMShaped,
    "completions": VLLMShaped,
    "generative_scoring": VLLMShaped,
    "sglang_generate": SGLangShaped,
    "sglang_score": SGLangShaped,
}
"""Every request form, with a stub of a server that supports it."""
SEVERAL = ("chat_batch", "completions", "generative_scoring", "sglang_generate", "sglang_score")
"""Forms that ask all items of a response in one call."""
RAW = ("completions", "generative_scoring", "sglang_generate", "sglang_score")
"""Forms that render the chat template themselves."""


@asynccontextmanager
async def judged(server: NativeServer, **settings: Any) -> AsyncIterator[OpenAIEngine]:
    """Serve the stub, with an engine in front of it."""
    async with serving(server):
        engine = engine_at(server, **settings)
        try:
            yield engine
        finally:
            await engine.aclose()


def engine_at(server: NativeServer, **settings: Any) -> OpenAIEngine:
    """Return an engine for a running stub; SGLang's stub does not report its template."""
    base_url = server.base_url.removesuffix("/v1") + server.prefix + "/v1"
    defaults: dict[str, Any] = {"model": MODEL, "base_url": base_url, "patience": 1}
    if isinstance(server, SGLangShaped):
        defaults["options"] = given_template(server)
    return OpenAIEngine(EngineConfig(**{**defaults, **settings}))


def given_template(server: NativeServer) -> dict[str, str]:
    """Return the options with which a user sets the chat template."""
    return {"chat_head": server.template.head, "chat_tail": server.template.tail}


@asynccontextmanager
async def probed(server: NativeServer, name: str) -> AsyncIterator[ProbeResult]:
    """Serve the stub and probe it with one request form."""
    async with judged(server) as engine:
        http = HttpClient(engine.base_url, key=None, concurrency=4, timeout=5, patience=1)
        try:
            wire = ServerConnection(
                http, await inspect_server(http, MODEL), MODEL, Readout(), top_logprobs=20
            )
            yield await probe(wire, name, engine._frame, UsageMeter())
        finally:
            await http.aclose()
