"""The reward server over HTTP: scores, batches, tokens, back-pressure, errors and shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web

from rocketeval import Grader, ScriptedEngine
from rocketeval.rewards.server import RewardServer, openapi
from support.needs import need

ONE = {"query": "q", "response": "good", "checklist": ["Is it fine?"]}


def engine(**settings: Any) -> ScriptedEngine:
    """Return a judge that likes responses that say good, and fails on broken ones."""
    return ScriptedEngine(
        lambda prefix, item: 0.9 if "good" in prefix else 0.2, fail_on="broken", **settings
    )


@asynccontextmanager
async def serving(
    judge: ScriptedEngine, **settings: Any
) -> AsyncIterator[tuple[aiohttp.ClientSession, RewardServer]]:
    """Serve on a free port, with a client."""
    with Grader(judge) as grader:
        server = RewardServer(grader, **settings)
        runner = web.AppRunner(server.application(), shutdown_timeout=5)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        async with aiohttp.ClientSession(base) as client:
            yield client, server
        await runner.cleanup()


async def test_scores_and_batches() -> None:
    """One response has its items; a batch has a reward per response."""
    async with serving(engine()) as (client, _):
        one = await (await client.post("/v1/score", json=ONE)).json()
        assert (one["score"], one["items"][0]["p_yes"]) == (0.9, 0.9)
        batch = {"query": ["pgood", "pbad"], "prompts": ["p", "p"], "labels": [["a?"], ["a?"]]}
        many = await (await client.post("/v1/rewards", json=batch)).json()
        assert many["rewards"] == many["scores"] == [0.9, 0.2]


async def test_web_pages_may_not_ask_without_a_token() -> None:
    """A page that the user visits, or a name that leads to this machine, spends nothing."""
    judge = engine()
    async with serving(judge) as (client, server):
        for headers, why in (
            ({"Origin": "https://evil.example", "Content-Type": "text/plain"}, "web pages"),
            ({"Sec-Fetch-Site": "cross-site"}, "web pages"),
            ({"Host": "host.docker.internal:8750"}, "not at 'host.docker.internal:8750'"),
        ):
            reply = await client.post("/v1/score", json=ONE, headers=headers)
            assert reply.status == 403
            told = await reply.json()
            assert why in told["error"]
            assert "--token-env" in told["hint"]
        assert server.grader.asked == 0
        local = await client.post("/v1/score", json=ONE, headers={"Host": "localhost:8750"})
        assert local.status == 200
    async with serving(engine(), token="secret") as (client, _):
        behind = {"Host": "scores.example", "Authorization": "Bearer secret"}
        assert (await client.post("/v1/score", json=ONE, headers=behind)).status == 200


async def test_failed_grade_is_an_error_and_never_a_number() -> None:
    """A judge that fails is HTTP 502 with its reason, for one response and for a batch."""
    async with serving(engine()) as (client, _):
        reply = await client.post("/v1/score", json={**ONE, "response": "broken"})
        assert reply.status == 502
        assert "scripted to fail" in (await reply.json())["error"]
        batch = {"query": ["pgood", "pbroken"], "prompts": ["p", "p"], "labels": [["a?"]] * 2}
        reply = await client.post("/v1/rewards", json=batch)
        error = (await reply.json())["error"]
        assert reply.status == 502
        assert error.startswith("1 of 2 responses have no grade: ")
        assert "scripted to fail" in error


async def test_token_is_needed() -> None:
    """Without the token only health, metrics and the description are open."""
    async with serving(engine(), token="secret") as (client, _):
        assert (await client.post("/v1/score", json=ONE)).status == 401
        wrong = {"Authorization": "Bearer other"}
        assert (await client.post("/v1/score", json=ONE, headers=wrong)).status == 401
        right = {"Authorization": "Bearer secret"}
        assert (await client.post("/v1/score", json=ONE, headers=right)).status == 200
        assert (await client.get("/health")).status == 200


async def test_too_much_work_is_turned_away() -> None:
    """More responses than allowed get HTTP 429 with Retry-After; the others are graded."""
    async with serving(engine(delay=0.2), most_waiting=2) as (client, server):
        given = [{**ONE, "response": f"good {n}"} for n in range(6)]
        replies = await asyncio.gather(*(client.post("/v1/score", json=one) for one in given))
        statuses = sorted(reply.status for reply in replies)
        assert statuses == [200, 200, 429, 429, 429, 429]
        assert {reply.headers.get("Retry-After") for reply in replies} == {None, "1"}
        assert server.counts.waiting == 0


async def test_batch_that_never_fits_is_too_large() -> None:
    """It gets HTTP 413 with the limit, not 429, which would be sent again for ever."""
    async with serving(engine(), most_waiting=2) as (client, server):
        for responses, status in ((3, 413), (2, 200)):
            batch = {"query": ["pgood"] * responses, "prompts": ["p"] * responses}
            reply = await client.post("/v1/rewards", json=batch)
            assert reply.status == status
            if status == 413:
                error = (await reply.json())["error"]
                assert "has 3 responses" in error
                assert "at most 2 (--most-waiting)" in error
                assert "Retry-After" not in reply.headers
        assert server.counts.waiting == 0


async def test_wrong_requests_say_what_is_wrong() -> None:
    """Mistakes are HTTP 400 or 404 with a reason, not a traceback."""
    async with serving(engine()) as (client, _):
        for body, word in (
            ({"query": "q"}, "`response`"),
            ({**ONE, "checklist": ["", "a?"]}, "item 1"),
            ({**ONE, "history": [1]}, "`history`"),
            ({**ONE, "history": [{"role": "user", "content": None}]}, "`history`"),
            ({**ONE, "context": "one text"}, "`context`"),
            ({**ONE, "reference": 5}, "`reference`"),
            ({**ONE, "system": ["x"]}, "`system`"),
            ({**ONE, "referense": "42"}, "'reference'"),
        ):
            reply = await client.post("/v1/score", json=body)
            assert reply.status == 400
            assert word in (await reply.json())["error"]
        assert (await client.post("/v1/score", data=b"{")).status == 400
        assert (
            await client.post("/v1/rewards", json={"query": ["a"], "prompts": []})
        ).status == 400
        damaged = {"query": ["pa"], "prompts": ["p"], "labels": ["[a?"]}
        reply = await client.post("/v1/rewards", json=damaged)
        assert reply.status == 400
        assert "'[a?' is not JSON" in (await reply.json())["error"]
        assert (await client.get("/nothing")).status == 404


async def test_operators_see_figures_and_the_description() -> None:
    """Metrics count outcomes and requests; the description lists every route."""
    async with serving(engine()) as (client, server):
        await client.post("/v1/score", json=ONE)
        await client.post("/v1/score", json=ONE)
        await client.post("/v1/score", json={**ONE, "response": "broken"})
        text = await (await client.get("/metrics")).text()
        assert 'rocketeval_responses_total{outcome="graded"} 2' in text
        assert 'rocketeval_responses_total{outcome="failed"} 1' in text
        assert 'rocketeval_answers_total{from="file"} 1' in text
        assert "rocketeval_answers_kept 1\n" in text
        assert 'rocketeval_request_seconds_bucket{le="+Inf"} 3' in text
        described = await (await client.get("/openapi.json")).json()
        assert described == openapi()
        routes = {route.resource.canonical for route in server.application().router.routes()}
        assert set(described["paths"]) == routes


async def test_replies_are_as_described() -> None:
    """Requests and replies of every kind follow the schemas of the description."""
    need("jsonschema", "jsonschema checks the replies: pip install jsonschema")
    from jsonschema import Draft202012Validator

    def check(schema: str, body: object) -> None:
        where = {"$ref": f"#/components/schemas/{schema}", "components": openapi()["components"]}
        Draft202012Validator(where).validate(body)

    full = {
        **ONE,
        "checklist": ["Is it fine?", {"text": "Is it short?", "weight": 2}],
        "reference": "42",
        "system": "Be brief.",
        "context": ["a page"],
        "history": [{"role": "user", "content": "Hello"}],
    }
    batch = {"query": ["pgood", "pbad"], "prompts": ["p", "p"], "labels": [["a?"], '["b?"]']}
    async with serving(engine()) as (client, server):
        for body, status in ((ONE, 200), (full, 200), ({**ONE, "response": "broken"}, 502)):
            check("ScoreRequest", body)
            reply = await client.post("/v1/score", json=body)
            assert reply.status == status
            check("Score" if status == 200 else "Error", await reply.json())
        check("RewardsRequest", batch)
        check("Rewards", await (await client.post("/v1/rewards", json=batch)).json())
        check("Health", await (await client.get("/health")).json())
        server.counts.closing = True
        check("Health", await (await client.get("/health")).json())


async def test_closing_server_takes_no_new_work() -> None:
    """After the signal, health is 503 and new work is turned away."""
    async with serving(engine()) as (client, server):
        server.counts.closing = True
        assert (await client.get("/health")).status == 503
        assert (await client.post("/v1/score", json=ONE)).status == 429
