"""Server detection: by what a server reports, and never by a temporary failure."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fakes.native_server import CONTEXT, LlamaCppShaped, NativeServer, OllamaShaped
from fakes.openai_server import MODEL, FakeOpenAI, answer, dropped, serving, status
from fakes.sglang_server import SGLangShaped
from fakes.vllm_server import VLLMShaped
from rocketeval.engines.http import HttpClient
from rocketeval.engines.server import Server, Tokenizer, inspect_server
from rocketeval.errors import EngineUnavailable


@asynccontextmanager
async def seen(server: FakeOpenAI, prefix: str = "") -> AsyncIterator[tuple[HttpClient, Server]]:
    """Yield a client in front of the stub, and the detected server."""
    async with serving(server):
        base_url = server.base_url.removesuffix("/v1") + prefix + "/v1"
        http = HttpClient(base_url, key=None, concurrency=2, timeout=5, patience=0.1)
        try:
            yield http, await inspect_server(http, MODEL)
        finally:
            await http.aclose()


@pytest.mark.parametrize(
    ("stub", "expected", "slots", "context"),
    [
        (VLLMShaped(), "vllm 0.32.0", None, CONTEXT),
        (SGLangShaped(), "sglang 0.5.9", None, CONTEXT),
        (LlamaCppShaped(slots=2), "llamacpp b4567-abc", 2, None),
        (OllamaShaped(), "ollama 0.12.0", None, None),
        (FakeOpenAI(), "9.9.fake", None, None),
        (NativeServer(), "unknown", None, None),
    ],
)
async def test_servers_are_recognized(
    stub: FakeOpenAI, expected: str, slots: int | None, context: int | None
) -> None:
    """Kind, version, slots and context come from the server's own report."""
    async with seen(stub) as (_, server):
        assert str(server) == expected
        assert (server.slots, server.context, server.served) == (slots, context, (MODEL,))


WEIGHTS = {"n_params": 134515008, "size": 96576768, "ftype": "Q4_1", "n_vocab": 49152}
"""llama.cpp's facts about a model."""


@pytest.mark.parametrize(
    ("stub", "path", "reply", "precision"),
    [
        (
            LlamaCppShaped(),
            "/v1/models",
            {"data": [{"id": MODEL, "meta": WEIGHTS}]},
            "size 96576768, n_params 134515008, ftype Q4_1",
        ),
        (
            SGLangShaped(),
            "/server_info",
            {"tokenizer_path": "toy", "dtype": "bfloat16", "quantization": "fp8"},
            "dtype bfloat16, quantization fp8",
        ),
        (SGLangShaped(), "/server_info", {"tokenizer_path": "toy", "dtype": "auto"}, ""),
        (
            OllamaShaped(),
            "/api/show",
            {"details": {"quantization_level": "Q4_K_M", "parameter_size": "1.5B"}},
            "quantization_level Q4_K_M, parameter_size 1.5B",
        ),
        (OllamaShaped(), "/api/show", {"details": None}, ""),
        (VLLMShaped(), "/server_info", {"dtype": "bfloat16"}, ""),
    ],
)
async def test_reported_precision(stub: FakeOpenAI, path: str, reply: Any, precision: str) -> None:
    """Precision as reported; empty if the weights decide or it is not reported."""
    stub.always(path, answer(reply))
    async with seen(stub) as (_, server):
        assert server.precision == precision


async def test_older_sglang_is_recognized() -> None:
    """Versions before the rename report themselves at another path."""
    stub = SGLangShaped()
    stub.always("/server_info", status(404))
    stub.always("/get_server_info", answer({"mem_fraction_static": 0.8, "version": "0.4.6"}))
    async with seen(stub) as (_, server):
        assert str(server) == "sglang 0.4.6"


@pytest.mark.parametrize(
    ("path", "reply"),
    [
        ("/version", {"version": None}),
        ("/version", ["0.32"]),
        ("/props", {"total_slots": 4}),
        ("/server_info", {"vllm_config": "..."}),
        ("/api/version", {}),
    ],
)
async def test_unrelated_replies_are_not_recognized(path: str, reply: Any) -> None:
    """A gateway that answers every path is not mistaken for an engine."""
    stub = NativeServer()
    stub.always(path, answer(reply))
    async with seen(stub) as (_, server):
        assert server.kind == "unknown"


async def test_root_is_next_to_v1() -> None:
    """A server under a path has its other endpoints under that path."""
    async with seen(VLLMShaped(prefix="/one"), "/one") as (http, server):
        assert server.root == http.base_url.removesuffix("/v1")
        assert server.root.endswith("/one")
        assert server.kind == "vllm"


@pytest.mark.usefixtures("fast_retries")
async def test_dropped_connection_is_not_a_missing_endpoint() -> None:
    """An unreachable server is not one without a version."""
    stub = VLLMShaped()
    stub.always("/version", dropped)
    with pytest.raises(EngineUnavailable):
        async with seen(stub):
            pass


@pytest.mark.parametrize("stub", [VLLMShaped(), SGLangShaped(), LlamaCppShaped()])
async def test_texts_are_tokenized(stub: NativeServer) -> None:
    """Each server's tokenizer gets its own request, and adds no token."""
    async with seen(stub) as (http, server):
        assert await Tokenizer(http, server, MODEL).encode("Well, Yes") == stub.tokens("Well, Yes")


@pytest.mark.parametrize(
    ("stub", "tokens"), [(VLLMShaped(), True), (LlamaCppShaped(), False), (SGLangShaped(), None)]
)
async def test_message_is_rendered(stub: NativeServer, tokens: bool | None) -> None:
    """vLLM returns tokens and text, llama.cpp text, SGLang neither."""
    async with seen(stub) as (http, server):
        found = await Tokenizer(http, server, MODEL).render(" Hi ", {})
    text = stub.template.render(" Hi ")
    expected = {True: (text, stub.tokens(text)), False: (text, None), None: None}
    assert found == expected[tokens]


async def test_unknown_server_gets_no_tokenizer_request() -> None:
    """An unknown server gets no request it would not understand."""
    stub = NativeServer()
    async with seen(stub) as (http, server):
        before = len(stub.seen)
        assert await Tokenizer(http, server, MODEL).encode("Yes") is None
        assert await Tokenizer(http, server, MODEL).render("Yes", {}) is None
    assert len(stub.seen) == before


@pytest.mark.parametrize("reply", [{}, {"tokens": None}, {"tokens": ["Yes"]}, {"tokens": "Yes"}])
async def test_malformed_tokens_are_none(reply: Any) -> None:
    """Anything but a list of numbers is ignored."""
    stub = VLLMShaped()
    stub.always("/tokenize", answer(reply))
    async with seen(stub) as (http, server):
        assert await Tokenizer(http, server, MODEL).encode("Yes") is None
