"""A complete run needs no judge; an incomplete one needs the same judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fakes.openai_server import MODEL, FakeOpenAI, answer, serving
from rocketeval.config import RunConfig
from rocketeval.engines.base import create_engine
from rocketeval.errors import EngineUnavailable, RunMismatch
from rocketeval.pipeline import Run
from support.make import QUERIES, make_config, write_jsonl


def config(folder: Path, base_url: str, **judge: Any) -> RunConfig:
    settings = {"model": MODEL, "base_url": base_url, "patience": 0.2, **judge}
    return make_config(folder, judge=settings, cache=None)


def add_a_response(folder: Path) -> None:
    row = {"query_id": QUERIES[0], "candidate": "late", "text": "A late one."}
    write_jsonl(folder / "benchmark" / "responses" / "late.jsonl", [row])


async def judged(folder: Path, server: FakeOpenAI) -> RunConfig:
    """Return a run that this server has judged."""
    async with serving(server):
        asked = config(folder, server.base_url)
        await Run(asked).all()
    return asked


async def test_finished_run_is_scored_without_its_judge(tmp_path: Path) -> None:
    """With the server stopped, every result is recomputed from the ledger."""
    asked = await judged(tmp_path, FakeOpenAI())
    before = (Run(asked).store.path / "scores.parquet").read_bytes()
    again = await Run(asked).all()
    facts = again.stages.grade
    assert (facts.judged, facts.unfinished) == (0, 0)
    assert (again.path / "scores.parquet").read_bytes() == before


async def test_missing_judgment_needs_the_judge(tmp_path: Path) -> None:
    """A new response is not skipped silently."""
    asked = await judged(tmp_path, FakeOpenAI())
    add_a_response(tmp_path)
    with pytest.raises(EngineUnavailable):
        await Run(asked).all()


async def test_missing_judgment_needs_the_same_judge(tmp_path: Path) -> None:
    """Another judge behind the URL is detected before anything is asked."""
    server = FakeOpenAI()
    async with serving(server):
        asked = config(tmp_path, server.base_url)
        await Run(asked).all()
        server.always("/version", answer({"version": "another"}))
        add_a_response(tmp_path)
        chats = len(server.chats)
        with pytest.raises(RunMismatch, match="another"):
            await Run(asked).all()
        assert len(server.chats) == chats


async def test_changed_settings_identify_the_judge_again(tmp_path: Path) -> None:
    """If the config differs from the run's, the engine is identified again."""
    asked = await judged(tmp_path, FakeOpenAI())
    other = asked.judge.model_copy(update={"extra_body": {"seed": 1}})
    with pytest.raises(EngineUnavailable):
        await Run(asked.model_copy(update={"judge": other})).all()


async def test_custom_engine_is_always_identified(tmp_path: Path) -> None:
    """The config does not describe it, so the run cannot recognize it."""
    server = FakeOpenAI()
    asked = await judged(tmp_path, server)
    engine = create_engine(asked.judge)
    with pytest.raises(EngineUnavailable):
        await Run(asked, judge=engine).all()
    await engine.aclose()
