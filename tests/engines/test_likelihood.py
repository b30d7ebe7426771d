"""The likelihood of a text: every token reported, or a refusal with its reason."""

from __future__ import annotations

import math
from typing import Any

import pytest

from fakes.native_server import CONTEXT, LlamaCppShaped, NativeServer, OllamaShaped
from fakes.openai_server import FakeOpenAI, answer, serving
from fakes.sglang_server import SGLangShaped
from fakes.toy_tokenizer import ToyTemplate
from fakes.vllm_server import VLLMShaped
from rocketeval.engines.base import usage_of
from rocketeval.engines.likelihood import ChatText, chat_text
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import EngineRefused, RequestRejected
from support.judges import engine_at, judged

PROMPT = "Name a city."
TEXT = "Paris, of course."
COMPLETIONS = "/v1/completions"


def truth(server: NativeServer, prompt: str = PROMPT, text: str = TEXT) -> list[float]:
    """Return the stub's log-probability of every token of the text."""
    framed = server.template.render(prompt)
    start, whole = len(server.tokens(framed)), server.tokens(framed + text)
    return [server.read_logp(whole[: place + 1]) for place in range(start, len(whole))]


SERVERS = {
    "vllm": VLLMShaped,
    "vllm without prompt_logprobs": lambda: VLLMShaped(tells_prompts=False),
    "trimming template": lambda: VLLMShaped(template=ToyTemplate(trims=True)),
    "sglang": SGLangShaped,
}


@pytest.mark.parametrize("name", SERVERS)
async def test_every_token_has_its_logprob(name: str) -> None:
    """The likelihood covers only the text, with either kind of server."""
    server = SERVERS[name]()
    async with judged(server) as engine:
        result = await engine.likelihood(PROMPT, TEXT)
    assert list(result.logprobs) == truth(server)
    assert len(result.logprobs) == len(server.tokens(TEXT))
    assert result.usage.requests == (2 if "without" in name else 1)
    assert result.usage.prompt_tokens > len(result.logprobs)


async def test_the_request() -> None:
    """The prompt is sent as tokens, together with the user's own settings."""
    server = VLLMShaped()
    extra = {"priority": 7, "chat_template_kwargs": {"enable_thinking": False}}
    async with judged(server, extra_body=extra) as engine:
        await engine.likelihood(PROMPT, TEXT)
    (body,) = (call.seen.body for call in server.calls if call.path == COMPLETIONS)
    assert server.tokenizer.decode(body["prompt"]) == server.template.render(PROMPT) + TEXT
    assert (body["prompt_logprobs"], body["max_tokens"], body["priority"]) == (0, 1, 7)
    assert "chat_template_kwargs" not in body


@pytest.mark.parametrize("server", [VLLMShaped(swallowed=3), SGLangShaped(swallowed=3)])
async def test_tokens_hidden_by_a_prefix_cache_are_refused(server: NativeServer) -> None:
    """A shorter list is refused, because the mean of the rest would be wrong."""
    async with judged(server) as engine:
        with pytest.raises(RequestRejected, match=r"left out the log-probabilities of [23] of"):
            await engine.likelihood(PROMPT, TEXT)


def rows(server: NativeServer, change: Any) -> list[Any]:
    """Return vLLM's rows with one of them changed."""
    tokens = server.tokens(server.template.render(PROMPT) + TEXT)
    result: list[Any] = [None, *({str(token): {"logprob": -1.0}} for token in tokens[1:])]
    result[2] = change(tokens[2])
    return result


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda token: None, "left out the log-probabilities of 1 of"),
        (lambda token: {}, "left out"),
        (lambda token: {str(token): None}, "left out"),
        (lambda token: {str(token): {"logprob": None}}, "left out"),
        (lambda token: {str(token): {"logprob": -9999.0}}, "left out"),
        (lambda token: {str(token + 1): {"logprob": -1.0}}, "left out"),
        (lambda token: {str(token): {"logprob": 12.5}}, "not log-probabilities"),
        (lambda token: {str(token): -1.0}, "not a completion with"),
        (lambda token: "Yes", "not a completion with"),
    ],
)
async def test_invalid_logprob_is_refused(change: Any, reason: str) -> None:
    """An invalid value is refused anywhere, also in the prompt before the text."""
    server = VLLMShaped()
    async with judged(server) as engine:
        await engine.identify()
        server.fail(answer({"choices": [{"prompt_logprobs": rows(server, change)}]}))
        with pytest.raises(RequestRejected, match=reason):
            await engine.likelihood(PROMPT, TEXT)


@pytest.mark.parametrize(
    ("logprobs", "reason"),
    [
        (None, "not a completion that repeats"),
        ({"token_logprobs": [-0.1]}, "left out"),
        ({"token_logprobs": [None, *[-0.1] * 200]}, "reports 201 tokens"),
    ],
)
async def test_server_that_does_not_echo_is_refused(logprobs: Any, reason: str) -> None:
    """A server that ignores `echo`, or adds tokens, is refused."""
    server = SGLangShaped()
    async with judged(server) as engine:
        await engine.identify()
        server.fail(answer({"choices": [{"logprobs": logprobs}]}))
        with pytest.raises(RequestRejected, match=reason):
            await engine.likelihood(PROMPT, TEXT)


async def test_reply_without_likelihood_is_counted() -> None:
    """The error has its cost: the server computed and billed it."""
    server = SGLangShaped()
    async with judged(server) as engine:
        await engine.identify()
        server.fail(answer({"choices": [{"logprobs": None}], "usage": {"prompt_tokens": 70}}))
        with pytest.raises(RequestRejected) as caught:
            await engine.likelihood(PROMPT, TEXT)
    used = usage_of(caught.value)
    assert (used.requests, used.prompt_tokens) == (1, 70)


@pytest.mark.parametrize("server", [LlamaCppShaped(), OllamaShaped(), FakeOpenAI()])
async def test_unsupported_servers_are_refused(server: FakeOpenAI) -> None:
    """The error names what is needed, and the judge is not probed."""
    async with serving(server):
        stub = NativeServer(base_url=server.base_url)
        engine = engine_at(stub)
        try:
            with pytest.raises(EngineRefused, match="likelihood") as caught:
                await engine.likelihood(PROMPT, TEXT)
        finally:
            await engine.aclose()
    assert "vLLM" in caught.value.hint
    assert not any(seen.path.endswith("completions") for seen in server.seen)


async def test_unknown_chat_template_is_refused() -> None:
    """SGLang does not report its template; the hint names the settings."""
    async with judged(SGLangShaped(), options={}) as engine:
        with pytest.raises(EngineRefused, match="chat template") as caught:
            await engine.likelihood(PROMPT, TEXT)
    assert "chat_head" in caught.value.hint


async def test_empty_and_too_long_texts_are_rejected() -> None:
    """Both are rejected, and other texts are not affected."""
    server = VLLMShaped()
    async with judged(server) as engine:
        with pytest.raises(RequestRejected, match="empty"):
            await engine.likelihood(PROMPT, "")
        with pytest.raises(RequestRejected, match="max_model_len"):
            await engine.likelihood(PROMPT, "long " * CONTEXT)
        assert list((await engine.likelihood(PROMPT, TEXT)).logprobs) == truth(server)


def test_text_starts_where_tokens_differ() -> None:
    """Also if the text's beginning merges with the end of the prompt."""
    assert chat_text([1, 2, 3], [1, 2, 3, 4]) == ChatText([1, 2, 3, 4], 3)
    assert chat_text([1, 2, 3], [1, 2, 9, 4]) == ChatText([1, 2, 9, 4], 2)
    for whole in ([1, 2, 3], [1, 2], [9, 2, 3]):
        with pytest.raises(RequestRejected, match="empty"):
            chat_text([1, 2, 3], whole)


async def test_scripted_likelihood_depends_on_preceding_bytes() -> None:
    """Each byte depends only on the bytes before it, as with a model."""
    engine = ScriptedEngine(fail_on="boom")
    short = (await engine.likelihood(PROMPT, "Paris")).logprobs
    long = (await engine.likelihood(PROMPT, "Paris it is")).logprobs
    other = (await engine.likelihood("Name a town.", "Paris")).logprobs
    assert long[: len(short)] == short
    assert len(short) == 5
    assert short != other
    assert all(logp <= 0 and math.isfinite(logp) for logp in long)
    with pytest.raises(RequestRejected, match="scripted to fail"):
        await engine.likelihood(PROMPT, "boom")
