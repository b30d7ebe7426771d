"""Behind a real router one replica answers all items of a response, and all have work."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from routing.fleet import (
    SGLANG_ROUTER,
    VLLM_ROUTER,
    Router,
    SGLangReplica,
    VLLMReplica,
    replicas,
    routed,
    touched,
)

from fakes.native_server import NativeServer
from fakes.openai_server import MODEL
from rocketeval.config import EngineConfig
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.records import GradingTask
from support.needs import need

REPLICAS = 3
ITEMS = 6
TASKS = [
    GradingTask(
        f"key {number}".encode(),
        f"q{number}",
        "c",
        f"Response {number}. ",
        tuple(f"Is it {item}?" for item in range(ITEMS)),
    )
    for number in range(30)
]


def needs(router: Router) -> None:
    """Skip if the router is not installed; fail in CI, where it must be."""
    need(
        router.module.partition(".")[0],
        f"no {router.package} here: pip install 'rocketeval[routers]'",
        in_ci=sys.platform == "linux",
    )


async def judge_all(url: str, **settings: str) -> str:
    """Judge all tasks at once; return the request form used."""
    engine = OpenAIEngine(EngineConfig(model=MODEL, base_url=url, patience=5, **settings))
    try:
        graded = await asyncio.gather(*(engine.grade(task, {}) for task in TASKS))
        assert [each.failure for each in graded] == [None] * len(TASKS)
        return (await engine.identify()).endpoint
    finally:
        await engine.aclose()


async def write_all(url: str) -> None:
    """Have a text written for each of many prompts."""
    engine = OpenAIEngine(EngineConfig(model=MODEL, base_url=url, patience=5))
    try:
        await asyncio.gather(
            *(engine.write(f"{task.prefix}Go on.", max_tokens=9) for task in TASKS)
        )
    finally:
        await engine.aclose()


def check_one_replica_per_response(behind: Sequence[NativeServer]) -> None:
    """Check that one replica saw each response and none was idle; then reset the records."""
    seen = touched(behind, lambda prompt: prompt.partition(".")[0])
    assert [len(where) for where in seen.values()] == [1] * len(TASKS)
    assert sum(bool(server.calls) for server in behind) == REPLICAS
    for server in behind:
        server.calls.clear()


async def test_vllm_router() -> None:
    """Consistent hashing works with our defaults, item by item and in one call."""
    needs(VLLM_ROUTER)
    async with (
        replicas(VLLMReplica, REPLICAS) as behind,
        routed(VLLM_ROUTER, "consistent_hash", behind) as url,
    ):
        assert await judge_all(url, transport="chat") == "chat"
        check_one_replica_per_response(behind)
        assert await judge_all(url) == "chat_batch"
        check_one_replica_per_response(behind)
        await write_all(url)
        check_one_replica_per_response(behind)


async def test_sglang_router() -> None:
    """The manual policy works with its own header."""
    needs(SGLANG_ROUTER)
    async with (
        replicas(SGLangReplica, REPLICAS) as behind,
        routed(SGLANG_ROUTER, "manual/min_load", behind) as url,
    ):
        assert await judge_all(url, session_header="x-smg-routing-key") == "chat"
        check_one_replica_per_response(behind)
