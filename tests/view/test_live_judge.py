"""Asking the judge from the page: what is asked, what is refused, and what is never written."""

from __future__ import annotations

import asyncio
import json
import signal
import time
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from fakes.openai_server import MODEL, FakeOpenAI, answer, hang, serving, status, yes_no
from rocketeval.pipeline import Run
from rocketeval.view import live_judge
from support.make import make_config, write_jsonl
from support.viewing import View, Viewing, files_of, finish
from view.test_serve import base, shown

TEXT = "The sky scatters light. Blue light scatters most. Nice day!"
QUESTION = {"query": "sky", "candidate": "left", "item": 2}
PLACE = "influence?query=sky&candidate=left&item=2"


def knows_blue(prompt: str) -> dict[str, float]:
    """Return a high probability of yes if the response has the sentence that matters."""
    return yes_no(0.9 if "Blue light scatters most" in prompt else 0.25)


@pytest.fixture
async def judge() -> AsyncIterator[FakeOpenAI]:
    """A judge that looks for one sentence."""
    async with serving(FakeOpenAI(distribution=knows_blue)) as running:
        yield running


async def _finished(folder: Path, server: FakeOpenAI, **changes: Any) -> Path:
    """Return a finished run, judged over HTTP, whose first response has three sentences."""
    settings = {"model": MODEL, "base_url": server.base_url, "concurrency": 2, "timeout": 5}
    price = {"prompt": 1.0, "completion": 2.0, "currency": "EUR"}
    config = make_config(folder, judge={**settings, "price": price}, **changes)
    rows = [{"query_id": q, "text": TEXT if q == "sky" else f"{q}."} for q in ("sky", "sea", "sun")]
    write_jsonl(folder / "benchmark" / "responses" / "left.jsonl", rows)
    return (await Run(config).all()).path


async def _ask(
    view: View, question: object = QUESTION, origin: str | None = None, **headers: str
) -> tuple[int, list[dict[str, Any]]]:
    """Send a question like a page of the server; return the status and the steps."""
    address = f"http://127.0.0.1:{view.port}"
    sent = {"Origin": address if origin is None else origin, **headers}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{address}/run/run/influence", json=question, headers=sent) as reply,
    ):
        lines = (await reply.text()).splitlines()
        return reply.status, [json.loads(line) for line in lines] if reply.ok else []


async def test_the_decisive_sentence_is_found_and_nothing_is_written(
    tmp_path: Path, viewing: Viewing, judge: FakeOpenAI
) -> None:
    """The offer asks nothing; the answer is kept in memory, so that a second click is free."""
    await _finished(tmp_path, judge)
    before, requests = files_of(tmp_path), len(judge.seen)
    view = await viewing(tmp_path / "runs", ask_judge=True)
    assert (await view.json("/run/run/head.json"))["live"]["asks_judge"]
    offer = await view.json(f"/run/run/{PLACE}")
    assert len(judge.seen) == requests
    assert (offer["judge"], offer["refused"], offer["known"]) == (MODEL, "", None)
    cost = offer["cost"]
    assert (cost["requests"], cost["units"], cost["asked"], cost["currency"]) == (4, 3, 3, "EUR")
    assert cost["tokens"] > 100
    assert cost["cost"] > 0
    judge.seen.clear()
    code, steps = await _ask(view)
    found = steps[-1]["result"]
    assert code == 200
    assert len(judge.chats) == found["requests"] == 4
    assert [piece["clear"] for piece in found["pieces"]] == [False, True, False]
    assert found["pieces"][1]["change"] == pytest.approx(0.65)
    assert "".join(piece["text"] for piece in found["pieces"]) == TEXT
    assert (found["repeated"], found["stored"]) == (True, pytest.approx(0.9))
    requests = len(judge.seen)
    assert (await view.json(f"/run/run/{PLACE}"))["known"] == found
    assert (await _ask(view))[1][-1]["result"] == found
    assert len(judge.seen) == requests
    assert files_of(tmp_path) == before


async def test_asking_is_off_by_default_and_only_for_own_pages(
    tmp_path: Path, viewing: Viewing, judge: FakeOpenAI
) -> None:
    """Without the option, from elsewhere, without the token, or as another type: refused."""
    await _finished(tmp_path, judge)
    judge.seen.clear()
    plain = await viewing(tmp_path / "runs")
    assert not (await plain.json("/run/run/head.json"))["live"]["asks_judge"]
    assert (await plain.get(f"/run/run/{PLACE}")).status == 404
    assert (await _ask(plain))[0] == 405
    view = await viewing(tmp_path / "runs", ask_judge=True)
    for origin in ("http://elsewhere.example", f"http://127.0.0.1:{plain.port}", ""):
        assert (await _ask(view, origin=origin))[0] == 403
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert (await _ask(view, **cross))[0] == 403
    assert (await _ask(view, **{"Content-Type": "text/plain"}))[0] == 403
    guarded = await viewing(tmp_path / "runs", ask_judge=True, token="secret")
    assert (await _ask(guarded))[0] == 403
    assert (await guarded.get(f"/run/run/{PLACE}")).status == 403
    assert judge.seen == []


async def test_wrong_questions(tmp_path: Path, viewing: Viewing, judge: FakeOpenAI) -> None:
    """Are answered with a sentence, and ask nothing."""
    await _finished(tmp_path, judge)
    judge.seen.clear()
    view = await viewing(tmp_path / "runs", ask_judge=True)
    for wrong in ([], {}, {**QUESTION, "item": "x"}, {**QUESTION, "item": 0}):
        assert (await _ask(view, wrong))[0] == 400
    for wrong in ({"query": "no"}, {"candidate": "no"}, {"item": 9}):
        _, steps = await _ask(view, {**QUESTION, **wrong})
        assert steps[-1]["problem"].endswith(".")
    assert (await view.get("/run/run/influence?query=sky")).status == 400
    assert (await view.get("/run/run/influence?query=sky&candidate=no&item=1")).status == 400
    assert judge.seen == []


async def test_another_judge_is_refused(
    tmp_path: Path, viewing: Viewing, judge: FakeOpenAI
) -> None:
    """Also if it replaced the run's judge since the last question."""
    await _finished(tmp_path, judge)
    view = await viewing(tmp_path / "runs", ask_judge=True)
    assert (await _ask(view))[1][-1]["result"]
    judge.always("/version", answer({"version": "1.0.other"}))
    judge.seen.clear()
    _, steps = await _ask(view, {**QUESTION, "item": 1})
    assert "another judge" in steps[-1]["problem"]
    assert "1.0.other" in steps[-1]["problem"]
    assert judge.chats == []


async def test_changed_answers_are_said(
    tmp_path: Path, viewing: Viewing, judge: FakeOpenAI
) -> None:
    """A judge that answers the whole response differently than in the run."""
    await _finished(tmp_path, judge)
    judge.distribution = lambda prompt: yes_no(0.5 if "scatters light" in prompt else 0.25)
    view = await viewing(tmp_path / "runs", ask_judge=True)
    _, steps = await _ask(view)
    found = steps[-1]["result"]
    assert not found["repeated"]
    assert (found["stored"], found["whole"]) == (pytest.approx(0.9), pytest.approx(0.5))


async def test_a_judge_that_fails_is_a_sentence(
    tmp_path: Path, viewing: Viewing, judge: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors and an unreachable server; the page's server goes on."""
    monkeypatch.setattr(live_judge, "PATIENCE", 0.2)
    await _finished(tmp_path, judge)
    view = await viewing(tmp_path / "runs", ask_judge=True)
    judge.fail(status(400, "too long"), times=1)
    _, steps = await _ask(view)
    assert "too long" in steps[-1]["problem"]
    judge.always("/v1/models", status(500))
    judge.always("/v1/chat/completions", status(500))
    _, steps = await _ask(view)
    assert steps[-1]["problem"].count(".") >= 1
    assert steps[-1]["result"] is None
    assert (await view.get("/run/run/head.json")).status == 200


async def test_a_closed_page_cancels_what_is_in_flight(
    tmp_path: Path, viewing: Viewing, judge: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No further request is sent, and the next question is answered."""
    monkeypatch.setattr(live_judge, "BEAT_SECONDS", 0.05)
    await _finished(tmp_path, judge)
    view = await viewing(tmp_path / "runs", ask_judge=True)
    judge.seen.clear()
    judge.fail(hang)
    asking = asyncio.create_task(_ask(view))
    while not judge.chats:
        await asyncio.sleep(0.02)
    asking.cancel()
    await asyncio.sleep(0.5)
    assert len(judge.chats) == 1
    assert (await asyncio.wait_for(_ask(view), 30))[1][-1]["result"]


async def test_stopping_the_server_cancels_what_is_in_flight(
    tmp_path: Path, viewing: Viewing, judge: FakeOpenAI
) -> None:
    """The page gets a sentence at once."""
    await _finished(tmp_path, judge)
    judges = live_judge.LiveJudges()
    question = live_judge.ItemQuestion("sky", "left", 2)
    judge.seen.clear()
    judge.fail(hang)
    steps = judges.steps(tmp_path / "runs" / "run", question)
    async for _ in steps:
        if judge.chats:
            break
    await asyncio.wait_for(judges.aclose(), 5)
    assert [step.problem async for step in steps] == ["The server is stopping."]


async def test_methods_that_do_not_ask_independently_are_refused(
    tmp_path: Path, viewing: Viewing, judge: FakeOpenAI
) -> None:
    """Before the cost is shown, with the reason."""
    await _finished(tmp_path, judge, method={"kind": "sequential"})
    view = await viewing(tmp_path / "runs", ask_judge=True)
    offer = await view.json(f"/run/run/{PLACE}")
    assert offer["cost"] is None
    assert "'sequential' does not ask items independently" in offer["refused"]


async def test_the_limit_of_the_config_holds_for_all_questions(
    tmp_path: Path, viewing: Viewing, judge: FakeOpenAI
) -> None:
    """A question that does not fit into `max_cost` is not asked."""
    path = await _finished(tmp_path, judge, max_cost=5.0)
    config = path / "run.yaml"
    config.write_text(config.read_text().replace("max_cost: 5.0", "max_cost: 0.001"))
    view = await viewing(tmp_path / "runs", ask_judge=True)
    judge.seen.clear()
    _, steps = await _ask(view)
    assert "does not fit into the budget" in steps[-1]["problem"]
    assert judge.chats == []


def test_ctrl_c_ends_a_question(tmp_path: Path) -> None:
    """With a judge that takes an hour per answer, the command ends at once, without a traceback."""
    config = finish(tmp_path) / "run.yaml"
    slow = config.read_text().replace(
        "engine: scripted", "engine: scripted\n  options: {delay: 3600}"
    )
    config.write_text(slow.replace("  options: {}\n", ""))
    with shown(tmp_path, "runs", "--ask-judge") as (process, address):
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
        browser.open(address).close()
        headers = {"Content-Type": "application/json", "Origin": base(address).rstrip("/")}
        question = urllib.request.Request(
            base(address) + "run/run/influence", json.dumps(QUESTION).encode(), headers
        )
        with browser.open(question, timeout=60) as reply:
            while json.loads(reply.readline())["of"] == 0:
                pass
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate()
    assert (process.returncode, output, errors) == (0, "Stopped.\n", "")
    assert time.monotonic() - began < 30
