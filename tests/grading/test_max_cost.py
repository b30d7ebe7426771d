"""max_cost is kept, by the bill of the server itself."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fakes.openai_server import MODEL, PREFIX, FakeOpenAI, dropped, serving
from rocketeval.budget import TEMPLATE_TOKENS
from rocketeval.config import RunConfig
from rocketeval.engines import http
from rocketeval.errors import BudgetSpent, ConfigError
from rocketeval.pipeline import Run
from support.make import make_config

PRICE = {"prompt": 1000.0, "completion": 2000.0}
"""A price of a thousandth per token."""


def dense(prompt: str) -> int:
    """Return the largest possible number of tokens."""
    return len(prompt.encode()) + TEMPLATE_TOKENS


def usual(prompt: str) -> int:
    """Return a typical number of tokens for English."""
    return len(prompt) // 4


@dataclass
class Billing(FakeOpenAI):
    """Counts the cost of every request that arrives, even if its answer is lost."""

    tokens: Callable[[str], int] = usual
    tells: bool = True
    bill: float = 0.0
    contact: float = 0.0
    """The part of it that was spent on the first contact."""

    async def _chat(self, request: web.Request, body: Any) -> web.StreamResponse:
        used = self.used(body)
        cost = used["prompt_tokens"] * PRICE["prompt"]
        cost = (cost + used["completion_tokens"] * PRICE["completion"]) / 1e6
        self.bill += cost
        if body["messages"][-1]["content"].startswith(PREFIX):
            self.contact += cost
        return await super()._chat(request, body)

    def used(self, body: Any) -> dict[str, int]:
        """Return the tokens of one request."""
        written = 1 if body.get("logprobs") else min(body["max_tokens"], 40)
        prompt = self.tokens(body["messages"][-1]["content"])
        return {"prompt_tokens": prompt, "completion_tokens": written}

    def reply(self, prompt: str, body: Any) -> dict[str, Any]:
        reply, usage = super().reply(prompt, body), self.used(body)
        return {**reply, "usage": usage} if self.tells else {**reply, "usage": None}


def settings(tmp_path: Path, server: FakeOpenAI, **changes: Any) -> RunConfig:
    """Return a config with 3 queries, 2 candidates, 2 items each, and a price."""
    judge = {"model": MODEL, "base_url": server.base_url, "price": PRICE, "patience": 5}
    return make_config(tmp_path, judge=judge | changes.pop("judge", {}), **changes)


@pytest.mark.parametrize("concurrency", [1, 3, 8])
@pytest.mark.parametrize(
    ("tokens", "limit", "asked"),
    [
        (dense, 10.0, "none"),
        (dense, 16.0, "some"),
        (dense, 25.0, "all"),
        (usual, 2.0, "none"),
        (usual, 3.0, "some"),
        (usual, 5.0, "all"),
    ],
)
async def test_bill_never_exceeds_the_limit(
    tmp_path: Path, limit: float, concurrency: int, tokens: Callable[[str], int], asked: str
) -> None:
    """For any limit, concurrency and tokenizer the bill is within the limit; then it resumes.

    What is paid for is kept, and without a limit the same run asks each of the rest once.
    """
    async with serving(Billing(tokens=tokens, latency=0.002)) as server:
        judge = {"concurrency": concurrency}
        run = Run(settings(tmp_path, server, max_cost=limit, judge=judge))
        with suppress(BudgetSpent):
            await run.to_judgments()
        assert run.budget is not None
        assert max(server.bill, run.budget.spent) <= limit
        before = len(server.chats)
        assert (before > 0, before == 12) == (asked != "none", asked == "all")
        await Run(settings(tmp_path, server)).to_judgments()
        prompts = [seen.prompt for seen in server.chats]
        assert len(prompts) == len(set(prompts)) == 12


async def test_raising_the_limit_pays_nothing_twice(tmp_path: Path) -> None:
    """Each command spends at most its limit, and together they ask every item once."""
    async with serving(Billing()) as server:
        commands = 0
        while True:
            paid = server.bill
            run = Run(settings(tmp_path, server, max_cost=3.3))
            commands += 1
            try:
                facts = await run.to_judgments()
            except BudgetSpent:
                assert server.bill - paid <= 3.3
                assert commands < 12
                continue
            break
        assert commands == 3
        assert facts.unfinished == 0
        # Every command probed the judge, and paid for that.
        assert facts.paid.cost == pytest.approx(server.bill)
        prompts = [seen.prompt for seen in server.chats]
        assert len(prompts) == len(set(prompts)) == 12


async def test_lost_answer_counts_in_full(tmp_path: Path) -> None:
    """A request whose connection broke may be billed, so it counts."""
    async with serving(Billing(tokens=dense)) as server:
        server.fail(dropped, times=3)
        run = Run(settings(tmp_path, server, max_cost=100.0, judge={"concurrency": 1}))
        facts = await run.to_judgments()
        assert facts.usage.requests == facts.overhead.requests + 12 + 3
        assert run.budget is not None
        assert server.bill <= run.budget.spent


@dataclass
class Speechless(Billing):
    """Writes nothing about one candidate, and bills that."""

    def reply(self, prompt: str, body: Any) -> dict[str, Any]:
        reply = super().reply(prompt, body)
        return {**reply, "choices": []} if "left explains" in prompt else reply


async def test_unusable_texts_are_on_the_bill(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A written judgment that fails costs all its attempts, in the bill and in the budget."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.004)
    async with serving(Speechless(tokens=dense)) as server:
        run = Run(settings(tmp_path, server, max_cost=1000.0, method={"kind": "cot"}))
        facts = await run.to_judgments()
        assert facts.unfinished == 3
        assert run.budget is not None
        assert server.bill <= run.budget.spent
        assert facts.usage.requests - facts.overhead.requests == 3 + 3 * http.MOST_UNUSABLE
        assert facts.paid.cost == pytest.approx(server.bill)


async def test_server_without_usage_counts_in_full(tmp_path: Path) -> None:
    """Without reported tokens, the reserved amount counts as spent."""
    async with serving(Billing(tokens=dense, tells=False)) as server:
        run = Run(settings(tmp_path, server, max_cost=21.0))
        with pytest.raises(BudgetSpent):
            await run.to_judgments()
        assert run.budget is not None
        assert server.chats
        assert max(server.bill, run.budget.spent) <= 21.0


@pytest.mark.parametrize("limit", [5.0, 18.0, 30.0])
@pytest.mark.parametrize("concurrency", [1, 4])
async def test_author_counts_toward_the_limit(
    tmp_path: Path, limit: float, concurrency: int
) -> None:
    """Checklists are paid from the same budget; those that were written are kept."""
    async with serving(Billing(tokens=dense)) as server:
        engine = {"model": MODEL, "base_url": server.base_url, "concurrency": concurrency}
        author = {"kind": "instance", "engine": engine, "price": PRICE, "attempts": 2}
        run = Run(settings(tmp_path, server, max_cost=limit, author=author))
        with pytest.raises(BudgetSpent, match=r"are not (written|judged)"):
            await run.to_judgments()
        assert run.budget is not None
        assert max(server.bill, run.budget.spent) <= limit
        await Run(settings(tmp_path, server, author=author)).to_judgments()
        prompts = [seen.prompt for seen in server.chats]
        assert len(prompts) == len(set(prompts)) == 3 + 18


async def test_missing_price_is_refused_before_contact(tmp_path: Path) -> None:
    """A limit without a price is a config error, found before any contact."""
    async with serving(FakeOpenAI()) as server:
        run = Run(settings(tmp_path, server, max_cost=1.0, judge={"price": None}))
        with pytest.raises(ConfigError, match="has no price"):
            await run.all()
        assert not server.seen


async def test_complete_run_spends_nothing(tmp_path: Path) -> None:
    """With all judgments present, the smallest limit is enough."""
    async with serving(Billing()) as server:
        await Run(settings(tmp_path, server)).to_judgments()
        run = Run(settings(tmp_path, server, max_cost=1e-9))
        facts = await run.to_judgments()
        assert facts.judged == 0
        assert run.budget is not None
        assert math.isclose(run.budget.spent, 0)


async def test_probes_and_canaries_are_on_the_bill(tmp_path: Path) -> None:
    """The cost of a run is that of all requests the server got, and a resumed run adds its own."""
    async with serving(Billing()) as server:
        run = Run(settings(tmp_path, server, max_cost=100.0, judge={"canaries": 0.5}))
        facts = await run.to_judgments()
        assert run.budget is not None
        assert server.contact > 0.0
        assert run.budget.spent == pytest.approx(server.bill)
        assert facts.usage.cost == facts.paid.cost == pytest.approx(server.bill)
        assert facts.usage.requests - facts.overhead.requests == 12
        again = await Run(settings(tmp_path, server)).to_judgments()
        assert again.usage.requests == 0
        assert again.paid == facts.paid
