"""The HTTP engine: its requests, its handling of malformed answers, and its usage."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fakes.openai_server import (
    MODEL,
    VERSION,
    FakeOpenAI,
    Fault,
    answer,
    array,
    dropped,
    empty_choices,
    status,
    without_choices,
    without_logprobs,
    yes_no,
)
from rocketeval.config import EngineConfig
from rocketeval.engines.base import create_engine
from rocketeval.engines.http import MOST_UNUSABLE
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.scripted import exact_answer
from rocketeval.engines.server import base_url
from rocketeval.errors import ConfigError, EngineRefused, EngineUnavailable, RequestRejected
from rocketeval.records import GradingTask, Status

TASK = GradingTask(b"k", "q", "c", "Shared. ", ("First?", "Second?", "Third?"))


@asynccontextmanager
async def engine_for(server: FakeOpenAI, **settings: Any) -> AsyncIterator[OpenAIEngine]:
    """Yield an engine in front of the fake server, closed afterwards."""
    defaults: dict[str, Any] = {"model": MODEL, "base_url": server.base_url, "patience": 1}
    engine = OpenAIEngine(EngineConfig(**{**defaults, **settings}))
    try:
        yield engine
    finally:
        await engine.aclose()


def choice(**fields: Any) -> Fault:
    """Return a chat completion with one choice of this shape."""
    return answer({"choices": [fields]})


async def test_the_request(server: FakeOpenAI) -> None:
    """One greedy token with top logprobs, prefix and item joined, extra settings added."""
    async with engine_for(server, top_logprobs=7, extra_body={"seed": 3}) as engine:
        await engine.grade(TASK, {})
    assert [seen.prompt for seen in server.chats] == [
        "Shared. First?",
        "Shared. Second?",
        "Shared. Third?",
    ]
    assert server.chats[0].body == {
        "model": MODEL,
        "messages": [{"role": "user", "content": "Shared. First?"}],
        "temperature": 0,
        "max_tokens": 1,
        "logprobs": True,
        "top_logprobs": 7,
        "seed": 3,
    }


async def test_probability_and_mass_are_the_servers(server: FakeOpenAI) -> None:
    """The answer has the server's probability and mass."""
    server.distribution = lambda prompt: yes_no(0.25 if "Second" in prompt else 0.75, mass=0.8)
    async with engine_for(server) as engine:
        answers = (await engine.grade(TASK, {})).answers
    assert [found.p_yes for found in answers] == pytest.approx([0.75, 0.25, 0.75])
    assert [found.mass for found in answers] == pytest.approx([0.8, 0.8, 0.8])


async def test_known_items_are_not_sent(server: FakeOpenAI) -> None:
    """The server sees only items that are not known."""
    async with engine_for(server) as engine:
        graded = await engine.grade(TASK, {0: exact_answer(0.5), 2: exact_answer(0.5)})
    assert [seen.prompt for seen in server.chats] == ["Shared. Second?"]
    assert graded.usage.requests == 1


@pytest.mark.usefixtures("fast_retries")
async def test_usage_counts_retries_and_tokens(server: FakeOpenAI) -> None:
    """Requests include every retry, tokens are as reported, and time is measured."""
    server.fail(status(503), times=2)
    async with engine_for(server) as engine:
        usage = (await engine.grade(TASK, {})).usage
        assert engine.retries == 2
    assert usage.requests == 5
    assert usage.prompt_tokens == 6
    assert usage.cached_tokens == 6
    assert usage.completion_tokens == 3
    assert 0 < usage.seconds < 5


@pytest.mark.usefixtures("fast_retries")
async def test_usage_counts_failed_tasks(server: FakeOpenAI) -> None:
    """The requests of a failed task are counted."""
    async with engine_for(server, patience=0.1) as engine:
        server.rejects = "Second"
        graded = await engine.grade(TASK, {})
    assert graded.failure is not None
    assert graded.usage.requests == 2
    assert graded.usage.completion_tokens == 1


@pytest.mark.usefixtures("fast_retries")
async def test_rejection_differs_from_unavailability(server: FakeOpenAI) -> None:
    """HTTP 400 concerns the task, a dead server the engine."""
    async with engine_for(server, patience=0.05) as engine:
        server.fail(status(400, "too many tokens"))
        rejected = await engine.grade(TASK, {})
        assert rejected.failure.startswith("item 1: HTTP 400: too many tokens (a prompt of ")
        assert (rejected.unavailable, rejected.rejected) == (False, True)
        server.fail(dropped, times=1000)
        lost = await engine.grade(TASK, {})
        assert lost.unavailable
        assert [found.status for found in lost.answers] == [Status.ERROR] * 3


async def test_refusal_is_raised(server: FakeOpenAI) -> None:
    """A key that expires in the middle ends the run instead of failing every task."""
    async with engine_for(server) as engine:
        server.fail(status(401))
        with pytest.raises(EngineRefused):
            await engine.grade(TASK, {})


UNSOUND = choice(logprobs={"content": [{"top_logprobs": [{"token": "Yes", "logprob": 7.5}]}]})


@pytest.mark.usefixtures("fast_retries")
@pytest.mark.parametrize(
    "fault", [without_logprobs, choice(), choice(logprobs={"content": [{"token": "Yes"}]}), UNSOUND]
)
async def test_answer_without_logprobs_is_asked_again(server: FakeOpenAI, fault: Fault) -> None:
    """A reply without probabilities is a fault of the moment; its request is repeated."""
    server.fail(fault, times=2)
    async with engine_for(server) as engine:
        graded = await engine.grade(TASK, {})
    assert graded.failure is None
    assert [answer.status for answer in graded.answers] == [Status.OK] * 3
    assert graded.usage.requests == 5
    assert engine.retries == 2


@pytest.mark.usefixtures("fast_retries")
async def test_what_stays_without_logprobs_is_a_failure(server: FakeOpenAI) -> None:
    """After a few attempts the item fails, the others are answered, and a retry may help."""
    server.fail(without_logprobs, times=MOST_UNUSABLE)
    async with engine_for(server) as engine:
        graded = await engine.grade(TASK, {})
    assert [answer.status for answer in graded.answers] == [Status.ERROR, Status.OK, Status.OK]
    assert graded.failure is not None
    assert "item 1: the server sent no log-probabilities" in graded.failure
    assert (graded.unavailable, graded.rejected) == (False, False)


@pytest.mark.usefixtures("fast_retries")
@pytest.mark.parametrize(
    "error", ["overloaded", {"message": "overloaded"}, {"message": "wait", "code": 503}]
)
async def test_an_error_with_status_200_is_temporary(server: FakeOpenAI, error: Any) -> None:
    """HTTP 200 with an error in its body is retried like a server error."""
    server.fail(answer({"error": error}), times=3)
    async with engine_for(server, patience=10) as engine:
        graded = await engine.grade(TASK, {})
    assert graded.failure is None
    assert engine.retries == 3


async def test_an_error_in_the_body_keeps_its_code(server: FakeOpenAI) -> None:
    """An error in the body whose code means a rejected request is not retried."""
    server.fail(answer({"error": {"message": "too many tokens", "code": 400}}))
    async with engine_for(server) as engine:
        graded = await engine.grade(TASK, {})
    assert graded.rejected
    assert engine.retries == 0


@pytest.mark.parametrize(
    "fault",
    [
        without_choices,
        empty_choices,
        array,
        answer({"choices": ["Yes"]}),
        answer({"choices": {"0": "Yes"}}),
        choice(logprobs="yes"),
        choice(logprobs={"content": ["Yes"]}),
        choice(logprobs={"content": [{"top_logprobs": [{"token": "Yes"}]}]}),
        choice(logprobs={"content": [{"top_logprobs": [{"token": "Yes", "logprob": None}]}]}),
        choice(logprobs={"content": [{"top_logprobs": [{"token": "Yes", "logprob": "high"}]}]}),
    ],
)
@pytest.mark.usefixtures("fast_retries")
async def test_malformed_answer_fails_only_its_item(server: FakeOpenAI, fault: Fault) -> None:
    """JSON of any other shape is retried; if it persists, it fails one item, and never crashes."""
    server.fail(fault, times=MOST_UNUSABLE)
    async with engine_for(server, patience=10) as engine:
        graded = await engine.grade(TASK, {})
        assert graded.failure is not None
        assert graded.failure.startswith("item 1: the server")
        assert [answer.status for answer in graded.answers[1:]] == [Status.OK, Status.OK]
        assert not graded.rejected
        server.fail(fault, times=2)
        assert (await engine.grade(TASK, {})).failure is None


@pytest.mark.parametrize(
    "usage",
    [
        None,
        [],
        "much",
        {"prompt_tokens": "many"},
        {"prompt_tokens": None},
        {"prompt_tokens": -5, "completion_tokens": -1},
        {"prompt_tokens": 10**18},
        {"prompt_tokens": True},
    ],
)
async def test_malformed_usage_keeps_the_answer(server: FakeOpenAI, usage: Any) -> None:
    """The answer counts; its tokens are unknown."""
    reply = server.reply("Well?", {"logprobs": True, "top_logprobs": 5})
    server.fail(answer({**reply, "usage": usage}), times=3)
    async with engine_for(server) as engine:
        graded = await engine.grade(TASK, {})
    assert graded.failure is None
    assert graded.usage.prompt_tokens == 0


async def test_write(server: FakeOpenAI) -> None:
    """The text is returned whole, and a cut-off text is marked."""
    async with engine_for(server) as engine:
        written = await engine.write("List.", max_tokens=50)
        server.fail(choice(message={"content": "1. Is"}, finish_reason="length"))
        cut = await engine.write("List.", max_tokens=2)
        server.fail(choice(message={"content": None}, finish_reason="stop"))
        empty = await engine.write("List.", max_tokens=2)
    assert (written.text, written.finished) == (server.text, True)
    assert (cut.text, cut.finished) == ("1. Is", False)
    assert empty.text == ""
    assert [seen.body["max_tokens"] for seen in server.chats] == [50, 2, 2]
    assert "logprobs" not in server.chats[0].body


@pytest.mark.usefixtures("fast_retries")
async def test_malformed_text_is_rejected(server: FakeOpenAI) -> None:
    """A malformed answer to the author's prompt raises RequestRejected once it persists."""
    async with engine_for(server) as engine:
        for fault in (without_choices, choice(message="hello")):
            server.fail(fault, times=MOST_UNUSABLE)
            with pytest.raises(RequestRejected):
                await engine.write("List.", max_tokens=50)


async def test_identity(server: FakeOpenAI) -> None:
    """The identity includes the server's version."""
    async with engine_for(server, top_logprobs=5) as engine:
        identity = await engine.identify()
    assert (identity.engine, identity.model, identity.endpoint) == ("openai", MODEL, "chat")
    assert (identity.version, identity.logprobs) == (VERSION, "top5")
    assert identity.readout == engine.readout.hash


async def test_llama_cpp_build_comes_from_props(server: FakeOpenAI) -> None:
    """A server without /version may report its build in /props."""
    server.always("/version", status(404))
    server.always("/props", answer({"build_info": "b4567"}))
    async with engine_for(server) as engine:
        assert (await engine.identify()).version == "llamacpp b4567"


async def test_missing_version_is_unknown(server: FakeOpenAI) -> None:
    """A server that reports nothing about itself can still be used."""
    server.always("/version", status(404))
    async with engine_for(server) as engine:
        assert (await engine.identify()).version == "unknown"


@pytest.mark.usefixtures("fast_retries")
async def test_unreachable_version_is_not_unknown(server: FakeOpenAI) -> None:
    """A temporary failure must not change the judge's fingerprint."""
    server.always("/version", dropped)
    async with engine_for(server) as engine:
        with pytest.raises(EngineUnavailable):
            await engine.identify()


async def test_unserved_model_is_refused(server: FakeOpenAI) -> None:
    """A wrong model name is reported before grading, with the served models."""
    async with engine_for(server, model="other") as engine:
        with pytest.raises(EngineRefused, match="other") as caught:
            await engine.identify()
    assert MODEL in caught.value.hint


@pytest.mark.parametrize(
    "listing", [{}, {"data": None}, {"data": 3}, {"data": ["x"]}, {"data": []}]
)
async def test_malformed_model_list_is_ignored(server: FakeOpenAI, listing: Any) -> None:
    """If a server does not list its models properly, the first request decides."""
    server.always("/v1/models", answer(listing))
    async with engine_for(server) as engine:
        assert (await engine.identify()).model == MODEL


async def test_the_key_comes_from_the_environment(
    server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key in the configured variable is sent as a bearer token, and shown nowhere."""
    monkeypatch.setenv("MY_JUDGE_KEY", "sk-hidden")
    async with engine_for(server, api_key_env="MY_JUDGE_KEY") as engine:
        await engine.grade(TASK, {})
        assert "sk-hidden" not in repr(engine) + repr(engine.config)
    assert server.chats[0].headers["Authorization"] == "Bearer sk-hidden"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://host/v1", "not an http"),
        ("localhost:8000/v1", "not an http"),
        ("http://", "not an http"),
        ("http://host:99999/v1", "not an http"),
        ("http://host:port/v1", "not an http"),
        ("http://me:secret@host/v1", "user name or password"),
        ("ftp://me:secret@host/v1", "user name or password"),
        ("http://host/v1?api-version=1", "query or fragment"),
    ],
)
def test_invalid_base_url_is_refused(
    url: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong URL, also from the environment, is refused before anything is sent."""
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ConfigError, match=problem) as caught:
        base_url(EngineConfig(model="m"))
    assert "secret" not in str(caught.value)


def test_base_url_precedence(monkeypatch: pytest.MonkeyPatch) -> None:
    """The config takes precedence over the environment, which precedes the OpenAI API."""
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert base_url(EngineConfig(model="m")) == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://env:1/v1/")
    assert base_url(EngineConfig(model="m")) == "http://env:1/v1"
    assert base_url(EngineConfig(model="m", base_url="http://own:2/v1")) == "http://own:2/v1"


def test_registry_creates_the_engine() -> None:
    """`engine: openai` creates this engine without contacting anything."""
    config = EngineConfig(model="m", base_url="http://127.0.0.1:9/v1")
    assert isinstance(create_engine(config), OpenAIEngine)


async def test_label_hidden_by_top_k_is_bounded(server: FakeOpenAI) -> None:
    """A list of one token gives a proven interval or no probability, never 0 or 1."""
    server.distribution = lambda _: yes_no(0.6)
    async with engine_for(server, top_logprobs=1) as engine:
        found = (await engine.grade(TASK, {})).answers[0]
    assert found.status is Status.UNBOUNDED
    assert found.p_yes is None
    assert found.p_low is not None
    assert found.p_low <= 0.6 <= (found.p_high or 0)
    assert found.logp_yes == pytest.approx(math.log(0.54))


async def test_greedy_request_has_no_sampling_settings(server: FakeOpenAI) -> None:
    """Without a temperature or a seed the request contains neither."""
    async with engine_for(server) as engine:
        await engine.write("List.", max_tokens=9)
        await engine.write("List.", max_tokens=9, temperature=0.7, seed=3)
    greedy, drawn = (seen.body for seen in server.chats)
    messages = [{"role": "user", "content": "List."}]
    asked = {"model": MODEL, "messages": messages, "temperature": 0.0, "max_tokens": 9}
    assert json.dumps(greedy) == json.dumps(asked)
    assert drawn == {**asked, "temperature": 0.7, "seed": 3}
