"""Faults of the moment are not answers: neither in the ledger, nor in the cache of other runs."""

from __future__ import annotations

import random
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fakes.openai_server import MODEL, FakeOpenAI, serving
from rocketeval.config import RunConfig, parse_config
from rocketeval.engines import http
from rocketeval.errors import EngineRefused
from rocketeval.pipeline import Run
from rocketeval.records import Status
from rocketeval.store.schema import complete_rows
from support.make import write_grid

FAULTS: dict[str, Any] = {
    "error body": {"error": {"message": "the model is overloaded"}},
    "no choices": {"object": "chat.completion"},
    "no logprobs": {"choices": [{"message": {"content": "Yes"}, "logprobs": None}]},
    "unsound": {
        "choices": [
            {"logprobs": {"content": [{"top_logprobs": [{"token": "Yes", "logprob": 9.5}]}]}}
        ]
    },
}


class Faulty(FakeOpenAI):
    """Answers a share of the chats with a fault."""

    share = 0.0
    fault: Any = None

    async def _chat(self, request: web.Request, body: Any) -> web.StreamResponse:
        probing = body["messages"][-1]["content"].startswith("Read the response, then")
        if not probing and self.dice.random() < self.share:
            return web.json_response(self.fault)
        return await super()._chat(request, body)

    dice = random.Random(3)


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "FIRST_WAIT", 0.004)
    monkeypatch.setattr(http, "LONGEST_WAIT", 0.02)


def config(folder: Path, name: str, url: str) -> RunConfig:
    """Return the config of a run over the benchmark in `folder`."""
    return parse_config(
        {
            "name": name,
            "benchmark": {"path": str(folder / "benchmark")},
            "judge": {"model": MODEL, "base_url": url, "patience": 20},
            "output": str(folder / "runs"),
            "cache": str(folder / "cache"),
        }
    )


def statuses(run: Run) -> set[str]:
    """Return every status in the run's ledger."""
    return {
        status
        for table in run.store.judgments(["status"])
        for row in table["status"].to_pylist()
        for status in row
    }


@pytest.mark.parametrize("name", list(FAULTS))
async def test_half_of_the_replies_are_faults(tmp_path: Path, name: str) -> None:
    """At 50% faults, all responses are judged, and no fault is in the ledger."""
    write_grid(tmp_path / "benchmark", queries=5, candidates=3, items=4)
    faulty = Faulty()
    faulty.share, faulty.fault = 0.5, FAULTS[name]
    async with serving(faulty) as server:
        for _ in range(3):
            run = Run(config(tmp_path, "half", server.base_url))
            facts = await run.to_judgments()
            if not facts.unfinished:
                break
    assert facts.unfinished == 0
    assert statuses(run) == {"ok"}


class Broke(FakeOpenAI):
    """Refuses chats for lack of money after some answers; remembers the prompts it answered."""

    def __init__(self, answers: int, refusals: int) -> None:
        super().__init__(latency=0.02, text="Yes")
        self.answers, self.refusals = answers, refusals
        self.answered: list[str] = []
        self.refused = 0

    async def _chat(self, request: web.Request, body: Any) -> web.StreamResponse:
        prompt = body["messages"][-1]["content"]
        if not prompt.startswith("Read the response, then"):
            if len(self.answered) >= self.answers and self.refusals:
                self.refusals -= 1
                self.refused += 1
                return web.json_response({"error": {"message": "no credit"}}, status=402)
            self.answered.append(prompt)
        return await super()._chat(request, body)


@pytest.mark.parametrize("refusals", [1, 1000])
@pytest.mark.parametrize("judge", ["openai", "openai_sampled", "sequential"])
async def test_refusal_keeps_the_answers_before_it(
    tmp_path: Path, judge: str, refusals: int
) -> None:
    """After HTTP 402, no answer is lost, the next command asks only for the others, and the bill
    has every request of both."""
    write_grid(tmp_path / "benchmark", queries=5, candidates=3, items=4)
    broke = Broke(answers=21, refusals=refusals)
    async with serving(broke) as server:
        settings = config(tmp_path, "broke", server.base_url).model_dump(mode="json")
        settings["judge"]["canaries"] = 0
        if judge == "openai_sampled":
            settings["judge"] |= {"engine": judge, "options": {"samples": 1}}
        elif judge == "sequential":
            settings["method"] = {"kind": judge}
        with pytest.raises(EngineRefused, match="no credit"):
            await Run(parse_config(settings)).to_judgments()
        broke.refusals = 0
        facts = await Run(parse_config(settings)).to_judgments()
    assert facts.unfinished == 0
    assert len(broke.answered) == len(set(broke.answered)) == 5 * 3 * 4
    assert facts.usage_of_ledger is not None
    asked = facts.usage_of_ledger.requests + facts.unjudged_of_run.requests
    assert asked == len(broke.answered) + broke.refused


@pytest.mark.parametrize("name", ["no logprobs", "unsound"])
async def test_a_server_that_recovers_is_asked_again(tmp_path: Path, name: str) -> None:
    """What a fault took away is a failure, is not shared, and the next command asks it again."""
    write_grid(tmp_path / "benchmark", queries=5, candidates=3, items=4)
    faulty = Faulty()
    faulty.share, faulty.fault = 0.9, FAULTS[name]
    async with serving(faulty) as server:
        run = Run(config(tmp_path, "first", server.base_url))
        with suppress(EngineRefused):
            await run.to_judgments()
        left = {failure.key for failure in run.store.failures()}
        assert left
        assert not left & run.store.finished()
        for table in run.store.judgments():
            assert complete_rows(table).num_rows == table.num_rows
        faulty.share = 0.0
        other = Run(config(tmp_path, "second", server.base_url))
        assert (await other.to_judgments()).unfinished == 0
        assert statuses(other) == {"ok"}
        again = Run(config(tmp_path, "first", server.base_url))
        assert (await again.to_judgments()).unfinished == 0
        assert statuses(again) == {"ok"}
        assert again.store.failures() == []
        answers = [
            answer
            for judgment in again.store.judgments_of(
                k.hex() for k in again.store.finished()
            ).values()
            for answer in judgment.answers
        ]
        assert {answer.status for answer in answers} == {Status.OK}
        assert all(answer.p_yes is not None for answer in answers)
