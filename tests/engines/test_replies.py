"""Replies of careless or hostile servers: sizes, usage, models, and keys that they repeat."""

from __future__ import annotations

import asyncio
import gzip
import time
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from aiohttp import web

from fakes.openai_server import MODEL, FakeOpenAI, Fault, answer, serving, status
from rocketeval import workers
from rocketeval.config import EngineConfig, JudgeConfig
from rocketeval.engines import http, replies
from rocketeval.engines.http import HttpClient
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.replies import (
    Redactor,
    ReplyWatch,
    UsageMeter,
    secrets_in,
)
from rocketeval.errors import EngineRefused, EngineUnavailable, JudgeChanged, RequestRejected
from rocketeval.records import GradingTask
from rocketeval.text import is_secret
from support.timed_replies import Reply, TimedReplies
from support.virtual_time import run_in_virtual_time

KEY = "sk-proj-0123456789abcdefGHIJ"
TASK = GradingTask(b"k", "q", "c", "Shared. ", ("First?", "Second?", "Third?"))


def engine_at(server: FakeOpenAI, **settings: Any) -> OpenAIEngine:
    """Return an engine for the fake server."""
    return OpenAIEngine(EngineConfig(model=MODEL, base_url=server.base_url, **settings))


def sends(body: bytes, encoding: str | None = None) -> Fault:
    """Return a fault that sends these bytes."""

    async def fault(_: web.Request) -> web.StreamResponse:
        headers = {} if encoding is None else {"Content-Encoding": encoding}
        return web.Response(body=body, headers=headers, content_type="application/json")

    return fault


@pytest.mark.parametrize("packed", [False, True])
async def test_a_huge_reply_is_cut_off(
    server: FakeOpenAI, packed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply above the limit fails its item, also if it is small before decompression."""
    monkeypatch.setattr(replies, "MOST_BYTES", 1 << 20)
    body = b'{"choices": "' + b" " * (8 << 20) + b'"}'
    server.fail(sends(gzip.compress(body), "gzip") if packed else sends(body))
    engine = engine_at(server)
    graded = await engine.grade(TASK, {})
    await engine.aclose()
    assert graded.failure is not None
    assert "larger than" in graded.failure


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 90}}, (7, 7)),
        ({"prompt_tokens": -7, "prompt_tokens_details": {"cached_tokens": -9}}, (0, 0)),
        ({"prompt_tokens": 10**18, "completion_tokens": 10**18}, (0, 0)),
    ],
)
def test_impossible_usage_is_not_counted(usage: Any, tokens: tuple[int, int]) -> None:
    """Negative, absurd and contradictory token counts never make a reply cheaper than free."""
    meter = UsageMeter()
    meter.answered({"usage": usage})
    found = meter.usage
    assert (found.prompt_tokens, found.cached_tokens) == tokens
    assert found.completion_tokens == 0


@pytest.mark.parametrize(
    "shown",
    [
        KEY,
        KEY.upper(),
        f"Incorrect key: {KEY[:12]}****{KEY[-8:]}",
        f"Bearer {KEY[5:20]}",
        KEY[-8:],
    ],
)
def test_parts_of_a_key_are_hidden(shown: str) -> None:
    """Eight or more consecutive characters of a key are never shown."""
    safe = Redactor(KEY)(f"you sent {shown} to us")
    assert "***" in safe
    folded = safe.casefold()
    parts = {KEY.casefold()[at : at + 8] for at in range(len(KEY) - 7)}
    assert not any(part in folded for part in parts)
    assert safe.startswith("you sent ")
    assert safe.endswith(" to us")


def test_other_text_is_not_hidden() -> None:
    """Text without parts of the key stays as it is."""
    text = "stra\u00dfe \u0130stanbul sk-proj 0123456"
    assert Redactor(KEY)(text) == text
    assert Redactor("")(text) == text
    assert Redactor("short")("a short key") == "a *** key"


@pytest.mark.parametrize(
    "name",
    [
        "api_key",
        "apiKeys",
        "API-KEY",
        "x-api-key",
        "accessToken",
        "privateKey",
        "auth",
        "jwt",
        "Cookie",
        "Authorization",
        "x_token",
        "token",
        "HF_TOKEN",
        "client_secret",
        "dbPassword",
        "access_tokens",
        "credentials",
        "basic_auth",
        "bearer",
        "set-cookie",
        "key",
    ],
)
def test_secret_names(name: str) -> None:
    """Names of common secrets are recognized, in snake, kebab and camel case."""
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "max_tokens",
        "maxTokens",
        "stop_token",
        "token_ids",
        "author",
        "keywords",
        "api_key_env",
        "prompt_cache_key",
        "n",
        "stop",
        "min_tokens",
        "authored",
        "",
        "monkey",
    ],
)
def test_other_names(name: str) -> None:
    """Settings of a request are shown."""
    assert not is_secret(name)


def test_secrets_in_settings_are_found() -> None:
    """Values under secret names are secrets, at any depth."""
    settings = {"provider": {"api_key": "abc-123", "order": ["x"]}, "headers": {"x-token": "t-9"}}
    assert sorted(secrets_in(settings)) == ["abc-123", "t-9"]
    assert secrets_in({"max_tokens": 5, "stop": ["a"], "token_ids": [1]}) == []
    assert secrets_in({"api_keys": ["a"]}, {"credentials": {"value": "b"}}) == ["a", "b"]


def test_a_text_of_another_length_in_lower_case_hides_no_key_less() -> None:
    """A letter whose lower case has two characters does not show keys with capitals."""
    assert Redactor(KEY)(f"\u0130 {KEY} \u00df") == "\u0130 *** \u00df"
    assert Redactor(KEY)(f"\u0130 {KEY.upper()[:12]}!") == "\u0130 ***!"


async def test_keys_are_hidden_wherever_a_server_repeats_them() -> None:
    """Redirects, model lists and settings show no key."""
    location = {"Location": f"https://other.test/?key={KEY}"}
    secret = "extra-secret-value"
    places: list[tuple[str, Fault]] = [
        ("/v1/chat/completions", status(307, headers=location)),
        ("/v1/chat/completions", status(400, f"bad settings: {secret}")),
        ("/v1/models", answer({"data": [{"id": f"model-{KEY}"}]})),
    ]
    for path, fault in places:
        async with serving(FakeOpenAI()) as fresh:
            fresh.always(path, fault)
            client = HttpClient(
                fresh.base_url, key=KEY, concurrency=1, timeout=5, patience=1, secrets=[secret]
            )
            engine = engine_at(fresh)
            engine._http = client
            with pytest.raises(EngineRefused) as caught:
                await engine.identify()
            await engine.aclose()
            shown = str(caught.value)
            assert KEY[:8] not in shown
            assert secret not in shown


def test_a_key_with_a_line_break_is_refused() -> None:
    """A key that no header can carry is an error in words."""
    with pytest.raises(EngineRefused, match="control character"):
        HttpClient("http://x/v1", key="sk-12\n34", concurrency=1, timeout=1, patience=1)


def test_another_model_name_is_an_error() -> None:
    """The first reply names the judge; a reply of another model ends the run."""
    author = ReplyWatch(judges=False)
    for name in ("backend-1", "backend-2"):
        author.check({"model": name})
    watch = ReplyWatch()
    watch.check({"model": "judge-2024", "system_fingerprint": "fp_1"})
    watch.check({"model": "judge-2024", "system_fingerprint": "fp_2"})
    watch.check({"model": None, "system_fingerprint": 7})
    assert (watch.model, watch.fingerprints) == ("judge-2024", ["fp_1", "fp_2"])
    with pytest.raises(JudgeChanged, match="judge-2025"):
        watch.check({"model": "judge-2025"})


def test_an_earlier_process_names_the_judge() -> None:
    """A resumed run compares with the model that answered before."""
    watch = ReplyWatch()
    watch.check({"model": "b"})
    with pytest.raises(JudgeChanged, match="'b'"):
        watch.resume("a", ["fp_1"])
    watch = ReplyWatch()
    watch.check({"model": "a", "system_fingerprint": "fp_2"})
    watch.resume("a", ["fp_1"])
    assert watch.fingerprints == ["fp_1", "fp_2"]


async def test_a_server_that_loads_is_waited_for(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP 503 at first contact is a model that is still loading."""
    monkeypatch.setattr(http, "LOADING_POLL", 0.01)
    monkeypatch.setattr(http, "FIRST_WAIT", 0.01)
    left = [12]
    loading, ready = status(503, "Loading model"), answer({"data": [{"id": MODEL}]})

    async def loads(request: web.Request) -> web.StreamResponse:
        left[0] -= 1
        return await (loading if left[0] > 0 else ready)(request)

    server.always("/v1/models", loads)
    engine = engine_at(server, patience=20)
    assert (await engine.identify()).model == MODEL
    await engine.aclose()
    assert left[0] <= 0


async def test_loading_costs_at_most_the_patience(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that never finishes loading is given up after `patience`."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.01)
    server.always("/v1/models", status(503, "Loading model"))
    engine = engine_at(server, patience=0.5)
    started = time.monotonic()
    with pytest.raises(EngineUnavailable, match="Loading model"):
        await engine.identify()
    await engine.aclose()
    assert 0.4 < time.monotonic() - started < 10


def test_independent_rejections_do_not_stop_a_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """At 60% HTTP 429 without Retry-After, the rate is at least a quarter of the full one."""
    monkeypatch.setattr(http, "random", Random(0))
    busy = Reply(429, seconds=0.0)

    async def seconds(reply_to: Callable[[int], Reply]) -> float:
        """Return the time for 400 answers of 0.05 s each, on the clock of the loop."""
        server = TimedReplies(reply_to, {"concurrency": 16, "timeout": 30, "patience": 120})
        left = iter(range(400))

        async def worker() -> None:
            for _ in left:
                await server.client.post("/chat/completions", {}, UsageMeter())

        await asyncio.gather(*(worker() for _ in range(16)))
        return asyncio.get_running_loop().time()

    full, thinned = (
        run_in_virtual_time(seconds(reply_to), monkeypatch, http, workers)
        for reply_to in (
            lambda _: Reply(),
            lambda number: busy if number % 5 in (0, 2, 4) else Reply(),
        )
    )
    assert full < 1.5 * 400 * 0.05 / 16
    assert full / thinned >= 0.25, (full, thinned)


async def test_too_large_replies_are_no_answers(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reply that is too large is an error of this request, in words."""
    assert replies.MOST_BYTES == 64 << 20
    monkeypatch.setattr(replies, "MOST_BYTES", 1 << 20)
    client = HttpClient(server.base_url, key=None, concurrency=1, timeout=300, patience=1)
    server.fail(sends(b"[" + b"1," * (1 << 20) + b"1]"))
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Well?"}]}
    with pytest.raises(RequestRejected, match="larger than 1 MB"):
        await client.post("/chat/completions", body, UsageMeter())
    await client.aclose()


def test_only_a_judge_must_keep_its_model_name() -> None:
    """An author behind a router that names its backend is no error."""
    settings = {"model": "m", "base_url": "http://127.0.0.1:9/v1"}
    assert OpenAIEngine.create(JudgeConfig.model_validate(settings)).watch.judges
    assert not OpenAIEngine.create(EngineConfig.model_validate(settings)).watch.judges
