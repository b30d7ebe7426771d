"""Every request form of vLLM, in front of a real server.

ROCKETEVAL_TEST_VLLM_URL is the base URL (ending in `/v1`) of a vLLM server; serve its model in fp32
(`--dtype float32`), because low precision answers differently from batch to batch.
ROCKETEVAL_TEST_VLLM_PROCESSED_URL is one started with `--logprobs-mode processed_logprobs`.
"""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import pytest

from contracts.engine_contract import EngineContract
from fakes.openai_server import MODEL, serving
from fakes.vllm_server import VLLMShaped
from rocketeval.config import EngineConfig
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.records import Answer, GradingTask
from rocketeval.testing import EngineCase

from .server import ServedJudge, listed_judge

TOO_LONG = "many words " * 40_000
EXACT = ("chat_exact", "chat_batch", "completions", "generative_scoring")
FP32 = 1e-5
"""Largest difference of two request forms in fp32; other batch sizes moved answers by 3e-6."""
TASKS = tuple(
    GradingTask(
        name.encode(),
        "honey",
        name,
        f"Query: How is honey made?\nResponse: {text}\nQuestion: ",
        tuple(
            f"{item}\nAnswer with one word, Yes or No.\nAnswer:"
            for item in (
                "Are bees mentioned?",
                "Is the response written in verse?",
                "Does the response say how honey keeps?",
                "  Is it short?",
            )
        ),
    )
    for name, text in (
        ("long", "Bees carry nectar home and fan it until the water has gone. " * 12),
        ("short", "By bees."),
    )
)


def judge_at(variable: str) -> ServedJudge:
    """Return the judge at the URL in the environment; skip the test without one."""
    url = os.environ.get(variable)
    if not url:
        pytest.skip(f"no real vLLM here: set {variable} to the base address of one")
    return listed_judge(url.rstrip("/"))


@pytest.fixture(scope="module")
def vllm() -> ServedJudge:
    """Return a running vLLM server."""
    return judge_at("ROCKETEVAL_TEST_VLLM_URL")


def engine(judge: ServedJudge, transport: str) -> OpenAIEngine:
    """Return an engine with one request form; a judge at chance level may have little mass."""
    return OpenAIEngine(
        EngineConfig(
            model=judge.name,
            base_url=judge.base_url,
            transport=transport,
            min_mass=0.0,
            max_width=1.0,
        )
    )


async def answers(judge: ServedJudge, transport: str) -> list[Answer]:
    """Return the answers to all tasks."""
    asked = engine(judge, transport)
    try:
        graded = [await asked.grade(task, {}) for task in TASKS]
    finally:
        await asked.aclose()
    assert [one.failure for one in graded] == [None] * len(TASKS)
    return [answer for one in graded for answer in one.answers]


class VLLMContract(EngineContract):
    """The engine contract for one request form."""

    name: ClassVar[str]

    @pytest.fixture
    def case(self, vllm: ServedJudge) -> EngineCase:
        return EngineCase(partial(engine, vllm, self.name), TOO_LONG, FP32)


class TestChat(VLLMContract):
    """`/chat/completions` with the most likely tokens."""

    name = "chat"


class TestChatExact(VLLMContract):
    """`/chat/completions` with label tokens."""

    name = "chat_exact"


class TestChatBatch(VLLMContract):
    """`/chat/completions/batch`."""

    name = "chat_batch"


class TestCompletions(VLLMContract):
    """`/completions` with a list of prompts."""

    name = "completions"


class TestGenerativeScoring(VLLMContract):
    """`/generative_scoring`."""

    name = "generative_scoring"


async def test_all_forms_agree(vllm: ServedJudge) -> None:
    """Exact forms give one p_yes; top tokens give an interval that contains it."""
    exact = {name: await answers(vllm, name) for name in EXACT}
    listed = await answers(vllm, "chat")
    assert len({round(one.p_yes or 0, 4) for one in listed}) > len(listed) // 2
    for name in EXACT:
        for mine, reference in zip(exact[name], exact["chat_batch"], strict=True):
            assert mine.p_yes == pytest.approx(reference.p_yes, abs=FP32), name
            assert mine.p_low == mine.p_high
    for one, reference in zip(listed, exact["chat_batch"], strict=True):
        assert reference.p_yes is not None
        assert one.p_low is not None
        assert one.p_high is not None
        assert one.p_low - FP32 <= reference.p_yes <= one.p_high + FP32


async def test_best_form_is_chosen(vllm: ServedJudge) -> None:
    """A current vLLM gets one exact call per response, and every request form works."""
    asked = engine(vllm, "auto")
    try:
        assert (await asked.identify()).endpoint == "chat_batch"
        findings = {finding.name: finding for finding in await asked.findings()}
    finally:
        await asked.aclose()
    assert findings["transport"].told.endswith("(5 of 5 work)")
    assert findings["logprobs"].told.startswith("raw")


async def test_processed_log_probabilities_are_detected(vllm: ServedJudge) -> None:
    """A server that scales by temperature is detected, and gives the same answers as a raw one."""
    processed = judge_at("ROCKETEVAL_TEST_VLLM_PROCESSED_URL")
    asked = engine(processed, "auto")
    try:
        assert "processed" in (await asked.identify()).logprobs
    finally:
        await asked.aclose()
    for name in ("chat_batch", "completions", "generative_scoring"):
        mine = await answers(processed, name)
        assert [one.p_yes for one in mine] == pytest.approx(
            [one.p_yes for one in await answers(vllm, name)], abs=0.1
        )


async def test_stub_has_the_format_of_the_real_server(vllm: ServedJudge) -> None:
    """A real server sends everything that the tests' stub sends, in the same places."""
    stub = VLLMShaped()
    async with serving(stub):
        asked = OpenAIEngine(EngineConfig(model=MODEL, base_url=stub.base_url))
        try:
            await asked.findings()
        finally:
            await asked.aclose()
    bodies = {seen.path: seen.body for seen in stub.seen if seen.path in stub.endpoints()}
    assert set(bodies) == set(stub.endpoints())
    for path, body in bodies.items():
        if body is not None:
            body = {**body, "model": vllm.name}
        pretended = stub.endpoints()[path](bodies[path])
        assert keys(pretended) <= keys(real(vllm, path, body)), path


def real(judge: ServedJudge, path: str, body: Mapping[str, Any] | None) -> Any:
    """Return a real server's reply."""
    request = urllib.request.Request(
        judge.base_url.removesuffix("/v1") + path,
        data=None if body is None else json.dumps(body).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)


def keys(value: Any, path: str = "") -> set[str]:
    """Return every key path in a reply; token names are content, not format."""
    if isinstance(value, list):
        return {found for item in value for found in keys(item, path + "[]")}
    if not isinstance(value, dict):
        return set()
    named = {
        ("token_id" if name.startswith("token_id:") else name): child
        for name, child in value.items()
    }
    here = {f"{path}.{name}" for name in named}
    return here.union(*(keys(child, f"{path}.{name}") for name, child in named.items()))
