"""Examinations over HTTP: every fault of a server becomes one bad finding."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from fakes.openai_server import (
    MODEL,
    FakeOpenAI,
    Fault,
    echoed_key,
    serving,
    status,
    without_logprobs,
    yes_no,
)
from rocketeval.config import EngineConfig
from rocketeval.doctor.examine import DoctorVerdict, Examination, examine
from rocketeval.engines import http
from rocketeval.engines.base import EngineFinding
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.prompts.render import GradingPrompt

from .judges import EXPECTED


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the waits between retries."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.004)
    monkeypatch.setattr(http, "LONGEST_WAIT", 0.02)


@pytest.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    """A server with a judge that answers every reference item correctly."""
    async with serving(FakeOpenAI(distribution=knowing)) as running:
        yield running


def knowing(prompt: str) -> Mapping[str, float]:
    """Return the correct answer to the item in the prompt."""
    right = next((known for item, known in EXPECTED.items() if item in prompt), True)
    return yes_no(0.9 if right else 0.1)


async def examined(base_url: str, **settings: Any) -> Examination:
    """Examine the judge at a URL."""
    config = {"model": MODEL, "base_url": base_url, "patience": 0.2, **settings}
    engine = OpenAIEngine(EngineConfig(**config))
    try:
        return await examine(engine, GradingPrompt())
    finally:
        await engine.aclose()


def only_bad(examination: Examination) -> EngineFinding:
    """Return the only finding of a judge that could not be identified."""
    assert examination.verdict is DoctorVerdict.UNUSABLE
    assert examination.fingerprint is None
    assert examination.figures.auc is None
    (finding,) = examination.findings
    assert finding.level == "bad"
    return finding


async def test_good_server_is_ready(server: FakeOpenAI) -> None:
    """Log-probabilities, tokens and transport are reported, and all items are asked."""
    found = await examined(server.base_url)
    assert found.verdict is DoctorVerdict.READY, found.findings
    messages = {finding.name: finding.told for finding in found.findings}
    assert "raw, 20 listed" in messages["logprobs"]
    assert "'Yes'" in messages["yes/no tokens"]
    assert messages["transport"].startswith("chat: ")
    assert found.figures.right == 24
    assert found.usage.requests == len(server.chats) == 104


async def test_thinking(server: FakeOpenAI) -> None:
    """A judge that thinks first is refused, and the advice names the setting."""
    server.distribution = lambda _: {"<think>": 0.9, "Yes": 0.1}
    finding = only_bad(await examined(server.base_url))
    assert "thinks" in finding.told
    assert "enable_thinking: false" in finding.advice


async def test_no_logprobs(server: FakeOpenAI) -> None:
    """A server without log-probabilities is refused."""
    server.always("/v1/chat/completions", without_logprobs)
    finding = only_bad(await examined(server.base_url))
    assert "log-probabilities" in finding.told
    assert finding.advice


async def test_unsound_logprobs(server: FakeOpenAI) -> None:
    """Probabilities that sum to more than one are refused."""
    server.distribution = lambda _: {"Yes": 0.9, "No": 0.8}
    finding = only_bad(await examined(server.base_url))
    assert "more than one" in finding.told
    assert "raw_logprobs" in finding.advice


async def test_processed_logprobs() -> None:
    """A server whose log-probabilities follow the temperature is usable with care."""

    class Processed(FakeOpenAI):
        """A server that applies the temperature to its log-probabilities."""

        def reply(self, prompt: str, body: Mapping[str, Any]) -> dict[str, Any]:
            """Answer from the tempered distribution."""
            heat = body["temperature"] or 0.2
            scaled = {token: math.pow(p, 1 / heat) for token, p in knowing(prompt).items()}
            whole = math.fsum(scaled.values())
            tempered = {token: p / whole for token, p in scaled.items()}
            return FakeOpenAI(distribution=lambda _: tempered).reply(prompt, body)

    async with serving(Processed()) as server:
        found = await examined(server.base_url)
        assert {seen.body["temperature"] for seen in server.chats} == {1.0}
    assert found.verdict is DoctorVerdict.CARE
    assert [finding.name for finding in found.reasons] == ["logprobs"]
    assert "processed" in found.reasons[0].told
    assert found.gold[0].answer.p_yes == pytest.approx(0.9)


async def test_little_mass_everywhere(server: FakeOpenAI) -> None:
    """A judge that answers neither yes nor no is unusable, and its items are unanswered."""
    server.distribution = lambda _: yes_no(0.5, mass=0.08)
    found = await examined(server.base_url)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert found.figures.answered == 0
    assert found.figures.auc is None
    assert any("low_mass 24" in finding.told for finding in found.findings)


async def test_unreachable() -> None:
    """The finding names the URL of an unreachable server."""
    finding = only_bad(await examined("http://127.0.0.1:9/v1"))
    assert "Cannot reach http://127.0.0.1:9/v1" in finding.told
    assert "base_url" in finding.advice


async def test_wrong_model(server: FakeOpenAI) -> None:
    """The advice names the served models."""
    finding = only_bad(await examined(server.base_url, model="other"))
    assert "'other'" in finding.told
    assert MODEL in finding.advice


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions"])
@pytest.mark.parametrize("fault", [status(401), echoed_key(401)])
async def test_rejected_key_is_not_shown(
    server: FakeOpenAI, path: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finding names the key's variable, and the key is not shown."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
    server.always(path, fault)
    found = await examined(server.base_url)
    finding = only_bad(found)
    assert "HTTP 401" in finding.told
    assert "OPENAI_API_KEY" in finding.advice
    assert "sk-secret-123" not in str(found.to_json())


async def test_server_that_stops_answering_is_a_finding(server: FakeOpenAI) -> None:
    """Findings from before the failure are kept."""
    server.fail(status(500), times=1000)
    found = await examined(server.base_url)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert found.fingerprint is not None
    assert found.reasons[0].name == "latency"
    assert "HTTP 500" in found.reasons[0].told
