"""The status of a working engine: retries, and what it waits for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fakes.batch_server import FakeBatches
from fakes.batch_server import serving as serving_batches
from fakes.openai_server import MODEL, FakeOpenAI, status
from rocketeval.config import EngineConfig
from rocketeval.engines.base import status_of
from rocketeval.engines.batch.engine import OpenAIBatchEngine
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.observer import EngineStatus
from rocketeval.records import GradingTask
from support.make import key

TASK = GradingTask(key("one"), "q", "c", "Shared. ", ("First?", "Second?"))


@pytest.mark.usefixtures("fast_retries")
async def test_retries_are_reported_immediately(server: FakeOpenAI) -> None:
    """Retries are counted before anything is finished."""
    engine = OpenAIEngine(EngineConfig(model=MODEL, base_url=server.base_url))
    try:
        await engine.identify()
        assert status_of(engine) == EngineStatus()
        server.fail(status(503), times=3)
        await engine.grade(TASK, {})
        reported = status_of(engine)
        assert (reported.retries, reported.retry_reasons) == (3, {"HTTP 503": 3})
        assert (reported.at_once, reported.usually_at_once, reported.answered) == (2, 32, 2)
    finally:
        await engine.aclose()


async def test_batch_reports_what_it_waits_for(tmp_path: Path) -> None:
    """It reports collecting, then the open batch with its progress, then nothing."""
    async with serving_batches(FakeBatches()) as server:
        server.stuck = True
        config = EngineConfig(
            engine="openai_batch",
            model=MODEL,
            base_url=server.base_url,
            options={"gather": 0.05, "poll": 0.01},
        )
        engine = OpenAIBatchEngine.create(config, tmp_path / "home")
        try:
            asked = asyncio.create_task(engine.grade(TASK, {}))
            while not status_of(engine).waiting:
                await asyncio.sleep(0.01)
            assert "collecting" in status_of(engine).waiting
            await server.until(lambda: bool(server.batches))
            waiting = status_of(engine).waiting
            assert "1 batch " in waiting
            assert "0 of 2 requests" in waiting
            server.stuck = False
            await asked
            assert status_of(engine).waiting == ""
        finally:
            await engine.aclose()


def test_engine_without_pulse_has_empty_status() -> None:
    """Third-party engines need no pulse."""
    assert status_of(ScriptedEngine()) == EngineStatus()
