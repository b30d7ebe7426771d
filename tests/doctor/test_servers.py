"""Examinations over HTTP: every way in which a server disappoints becomes one bad line."""

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
    """Retries wait for milliseconds."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.004)
    monkeypatch.setattr(http, "LONGEST_WAIT", 0.02)


@pytest.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    """A server with a judge that finds every known answer."""
    async with serving(FakeOpenAI(distribution=knowing)) as running:
        yield running


def knowing(prompt: str) -> Mapping[str, float]:
    """Yes where the item in the prompt is to be answered yes."""
    right = next((known for item, known in EXPECTED.items() if item in prompt), True)
    return yes_no(0.9 if right else 0.1)


async def examined(base_url: str, **settings: Any) -> Examination:
    """Examine the judge at an address."""
    config = {"model": MODEL, "base_url": base_url, "patience": 0.2, **settings}
    engine = OpenAIEngine(EngineConfig(**config))
    try:
        return await examine(engine, GradingPrompt())
    finally:
        await engine.aclose()


def only_bad(examination: Examination) -> EngineFinding:
    """The one finding of a judge that could not even be identified."""
    assert examination.verdict is DoctorVerdict.UNUSABLE
    assert examination.fingerprint is None
    assert examination.figures.auc is None
    (finding,) = examination.findings
    assert finding.level == "bad"
    return finding


async def test_a_good_server_is_ready(server: FakeOpenAI) -> None:
    """Server, logprobs, tokens, mass and transport are told; the gold items are really asked."""
    found = await examined(server.base_url)
    assert found.verdict is DoctorVerdict.READY, found.findings
    told = {finding.name: finding.told for finding in found.findings}
    assert "raw, 20 listed" in told["logprobs"]
    assert "'Yes'" in told["yes/no tokens"]
    assert told["transport"].startswith("chat: one item a call")
    assert found.figures.right == 24
    assert found.usage.requests == len(server.chats) == 104


async def test_thinking(server: FakeOpenAI) -> None:
    """A judge that thinks first is refused, with the setting that stops it."""
    server.distribution = lambda _: {"<think>": 0.9, "Yes": 0.1}
    finding = only_bad(await examined(server.base_url))
    assert "thinks before it answers" in finding.told
    assert "enable_thinking: false" in finding.advice


async def test_no_logprobs(server: FakeOpenAI) -> None:
    """A server that tells no log-probabilities is refused."""
    server.always("/v1/chat/completions", without_logprobs)
    finding = only_bad(await examined(server.base_url))
    assert "without log-probabilities" in finding.told
    assert finding.advice


async def test_unsound_logprobs(server: FakeOpenAI) -> None:
    """Values that sum to more than one are refused."""
    server.distribution = lambda _: {"Yes": 0.9, "No": 0.8}
    finding = only_bad(await examined(server.base_url))
    assert "sums to more than one" in finding.told
    assert "raw_logprobs" in finding.advice


async def test_processed_logprobs() -> None:
    """A server whose log-probabilities follow the temperature is usable with care."""

    class Processed(FakeOpenAI):
        """Scales by the temperature before it tells."""

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
    """A judge that answers neither yes nor no is ruled out, its answers are counted missing."""
    server.distribution = lambda _: yes_no(0.5, mass=0.08)
    found = await examined(server.base_url)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert found.figures.answered == 0
    assert found.figures.auc is None
    assert any("low_mass 24" in finding.told for finding in found.findings)


async def test_unreachable() -> None:
    """Nobody there: one line that says where was looked."""
    finding = only_bad(await examined("http://127.0.0.1:9/v1"))
    assert "Cannot reach http://127.0.0.1:9/v1" in finding.told
    assert "base_url" in finding.advice


async def test_wrong_model(server: FakeOpenAI) -> None:
    """A model that is not served: the served ones are named."""
    finding = only_bad(await examined(server.base_url, model="other"))
    assert "does not serve the model 'other'" in finding.told
    assert MODEL in finding.advice


@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions"])
@pytest.mark.parametrize("fault", [status(401), echoed_key(401)])
async def test_a_key_that_is_refused_is_not_shown(
    server: FakeOpenAI, path: str, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """401 says which setting names the key, and the key itself is nowhere."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
    server.always(path, fault)
    found = await examined(server.base_url)
    finding = only_bad(found)
    assert "HTTP 401" in finding.told
    assert "OPENAI_API_KEY is set, but" in finding.advice
    assert "sk-secret-123" not in str(found.to_json())


async def test_a_server_that_dies_is_a_finding(server: FakeOpenAI) -> None:
    """A judge that was identified and then stops answering keeps what was found before."""
    server.fail(status(500), times=1000)
    found = await examined(server.base_url)
    assert found.verdict is DoctorVerdict.UNUSABLE
    assert found.fingerprint is not None
    assert found.reasons[0].name == "latency"
    assert "HTTP 500" in found.reasons[0].told
