"""Before an author is paid: whatever would make its checklists useless is found out first."""

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
"""A port on which nobody listens."""


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
    """Make a run of both servers, with other settings of judge and author if given."""
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
    ("settings", "told"),
    [
        pytest.param({"base_url": CLOSED}, "Cannot reach", id="down"),
        pytest.param({"model": "other"}, "other", id="misnamed"),
        pytest.param({}, "log-prob", id="without logprobs"),
    ],
)
async def test_a_judge_that_cannot_be_used_costs_no_author_call(
    make: Make, author: FakeOpenAI, judge: FakeOpenAI, settings: dict[str, Any], told: str
) -> None:
    """Down, misnamed or without log-probabilities: said before the first checklist is bought."""
    if not settings:
        judge.always("/v1/chat/completions", without_logprobs)
    with pytest.raises(EngineError, match=told):
        await make(settings).to_judgments()
    assert author.chats == []


async def test_an_author_that_is_down_costs_the_judge_nothing(
    make: Make, judge: FakeOpenAI
) -> None:
    """The author is asked first whether it is there, which is free."""
    with pytest.raises(EngineUnavailable, match="Cannot reach"):
        await make(written={"base_url": CLOSED}).to_judgments()
    assert judge.seen == []


async def test_a_cache_that_cannot_be_written_costs_nothing(
    make: Make, author: FakeOpenAI, tmp_path: Path
) -> None:
    """Lists that could not be kept are not bought."""
    (tmp_path / "cache").write_text("a file in the way of a folder")
    with pytest.raises(StoreError, match="cache cannot be written"):
        await make().to_judgments()
    assert author.chats == []


async def test_the_judge_is_contacted_once(
    make: Make, author: FakeOpenAI, judge: FakeOpenAI
) -> None:
    """Grading goes on with what was found out before the checklists were written."""
    await make().to_judgments()
    looks = [seen for seen in judge.seen if seen.path == "/v1/models"]
    assert len(looks) == 1
    assert len(author.chats) == len(QUERIES)


async def test_checklists_that_are_there_need_no_author_and_a_finished_run_nobody(
    make: Make, author: FakeOpenAI, judge: FakeOpenAI
) -> None:
    """Nobody is contacted for what is there already."""
    await make().to_judgments()
    author.seen.clear()
    judge.seen.clear()
    await make().to_judgments()
    assert author.seen == judge.seen == []


async def test_checklists_alone_need_no_judge(make: Make, author: FakeOpenAI) -> None:
    """`rocketeval checklist` is for those who have no judge yet, too."""
    await make({"base_url": CLOSED}).to_checklists()
    assert len(author.chats) == len(QUERIES)


async def test_a_useless_author_ends_the_run(
    make: Make, author: FakeOpenAI, tmp_path: Path
) -> None:
    """Its last words are in the message, and no more is asked than it takes to be sure."""
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
