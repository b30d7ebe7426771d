"""Problems that would make checklists useless are found before the author is paid."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from fakes.openai_server import MODEL, FakeOpenAI, serving, without_logprobs
from rocketeval.engines import http
from rocketeval.errors import EngineError, EngineRefused, EngineUnavailable, StoreError
from rocketeval.pipeline import Run
from support.make import QUERIES, make_config

Make = Callable[..., Run]
CLOSED = "http://127.0.0.1:9/v1"
"""A closed port."""


@pytest.fixture
async def author() -> AsyncIterator[FakeOpenAI]:
    """The author's server."""
    async with serving(FakeOpenAI()) as running:
        yield running


@pytest.fixture
async def judge() -> AsyncIterator[FakeOpenAI]:
    """The judge's server."""
    async with serving(FakeOpenAI()) as running:
        yield running


@pytest.fixture
def make(
    tmp_path: Path, author: FakeOpenAI, judge: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> Make:
    """Create a run with both servers and optional settings of judge and author."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.004)

    def made(judged: dict[str, Any] | None = None, written: dict[str, Any] | None = None) -> Run:
        judging = {"model": MODEL, "base_url": judge.base_url, "patience": 0.1, **(judged or {})}
        writing = {"model": MODEL, "base_url": author.base_url, "patience": 0.1, **(written or {})}
        config = make_config(
            tmp_path, judge=judging, author={"kind": "instance", "engine": writing}
        )
        return Run(config)

    return made


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        pytest.param({"base_url": CLOSED}, "Cannot reach", id="down"),
        pytest.param({"model": "other"}, "other", id="misnamed"),
        pytest.param({}, "log-prob", id="without logprobs"),
    ],
)
async def test_unusable_judge_costs_no_author_call(
    make: Make, author: FakeOpenAI, judge: FakeOpenAI, settings: dict[str, Any], problem: str
) -> None:
    """Unreachable, misnamed or without log-probabilities: reported before the first checklist."""
    if not settings:
        judge.always("/v1/chat/completions", without_logprobs)
    with pytest.raises(EngineError, match=problem):
        await make(settings).to_judgments()
    assert author.chats == []


async def test_unreachable_author_costs_no_judge_call(make: Make, judge: FakeOpenAI) -> None:
    """The author is contacted first, which is free."""
    with pytest.raises(EngineUnavailable, match="Cannot reach"):
        await make(written={"base_url": CLOSED}).to_judgments()
    assert judge.seen == []


async def test_unwritable_cache_costs_nothing(
    make: Make, author: FakeOpenAI, tmp_path: Path
) -> None:
    """Checklists that cannot be stored are not requested."""
    (tmp_path / "cache").write_text("a file in the way of a folder")
    with pytest.raises(StoreError, match="cache cannot be written"):
        await make().to_judgments()
    assert author.chats == []


async def test_the_judge_is_contacted_once(
    make: Make, author: FakeOpenAI, judge: FakeOpenAI
) -> None:
    """Grading reuses the check made before the checklists were written."""
    await make().to_judgments()
    looks = [seen for seen in judge.seen if seen.path == "/v1/models"]
    assert len(looks) == 1
    assert len(author.chats) == len(QUERIES)


async def test_existing_checklists_need_no_author(
    make: Make, author: FakeOpenAI, judge: FakeOpenAI
) -> None:
    """And a finished run contacts nobody."""
    await make().to_judgments()
    author.seen.clear()
    judge.seen.clear()
    await make().to_judgments()
    assert author.seen == judge.seen == []


async def test_checklists_alone_need_no_judge(make: Make, author: FakeOpenAI) -> None:
    """Checklists can be written before there is a judge."""
    await make({"base_url": CLOSED}).to_checklists()
    assert len(author.chats) == len(QUERIES)


async def test_unreadable_author_ends_the_run(
    make: Make, author: FakeOpenAI, tmp_path: Path
) -> None:
    """The error shows its last text, and the number of calls is bounded."""
    author.text = "I am sorry, but as a language model I write no lists."
    queries = tmp_path / "benchmark" / "queries.jsonl"
    run = make()
    queries.write_text("".join(f'{{"id": "q{n}", "text": "Why {n}?"}}\n' for n in range(50)))
    for each in (tmp_path / "benchmark").rglob("*.jsonl"):
        if each != queries:
            each.unlink()
    rows = "".join(f'{{"query_id": "q{n}", "text": "Because."}}\n' for n in range(50))
    (tmp_path / "benchmark" / "responses" / "one.jsonl").write_text(rows)
    with pytest.raises(EngineRefused, match="I write no lists"):
        await run.to_judgments()
    assert len(author.chats) <= 12
