"""A run that lacks nothing needs no judge; one that lacks something needs the very same."""

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
    """A run that such a server has judged."""
    async with serving(server):
        asked = config(folder, server.base_url)
        await Run(asked).all()
    return asked


async def test_a_finished_run_is_scored_without_its_judge(tmp_path: Path) -> None:
    """The server is gone: everything is made again from what is there."""
    asked = await judged(tmp_path, FakeOpenAI())
    before = (Run(asked).store.path / "scores.parquet").read_bytes()
    again = await Run(asked).all()
    facts = again.stages.grade
    assert (facts.judged, facts.unfinished) == (0, 0)
    assert (again.path / "scores.parquet").read_bytes() == before


async def test_what_is_missing_needs_the_judge(tmp_path: Path) -> None:
    """A new response is not passed over in silence."""
    asked = await judged(tmp_path, FakeOpenAI())
    add_a_response(tmp_path)
    with pytest.raises(EngineUnavailable):
        await Run(asked).all()


async def test_what_is_missing_needs_the_same_judge(tmp_path: Path) -> None:
    """Somebody else behind the address is noticed before anything is asked."""
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


async def test_other_settings_are_another_judge(tmp_path: Path) -> None:
    """What the config says now is not what the run was judged with: the engine is asked."""
    asked = await judged(tmp_path, FakeOpenAI())
    other = asked.judge.model_copy(update={"extra_body": {"seed": 1}})
    with pytest.raises(EngineUnavailable):
        await Run(asked.model_copy(update={"judge": other})).all()


async def test_an_engine_of_ones_own_is_always_asked(tmp_path: Path) -> None:
    """The config does not describe it, so that the run cannot remember it."""
    server = FakeOpenAI()
    asked = await judged(tmp_path, server)
    engine = create_engine(asked.judge)
    with pytest.raises(EngineUnavailable):
        await Run(asked, judge=engine).all()
    await engine.aclose()
