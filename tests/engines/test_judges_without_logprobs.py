"""Judges without log-probabilities: written answers over HTTP, and a decision endpoint."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fakes.openai_server import MODEL, FakeOpenAI, serving, status
from rocketeval import Grader, Judge, evaluate_async
from rocketeval.config import JudgeConfig
from rocketeval.doctor.examine import examine
from rocketeval.engines.base import create_engine
from rocketeval.engines.sampled import binomial_interval, count_answers
from rocketeval.errors import EngineError
from rocketeval.grader import ResponseToGrade
from rocketeval.grading.loop import calls
from rocketeval.items import AnswerLabels
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import GradingTask, Status

YES_NO = AnswerLabels(("Yes", "No"))


@dataclass
class WritingJudge(FakeOpenAI):
    """A server that writes yes with a known probability and never sends log-probabilities."""

    p_yes: float = 0.75

    def reply(self, prompt: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a completion whose text is drawn by the prompt and the seed."""
        drawn = hashlib.sha256(f"{prompt} {body.get('seed')}".encode()).digest()[0] / 256
        text = "Yes" if drawn < self.p_yes else "No."
        choice = {"index": 0, "finish_reason": "stop", "message": {"content": text}}
        usage = {"prompt_tokens": 10, "completion_tokens": 1}
        return {"object": "chat.completion", "choices": [choice], "usage": usage}


def task(items: int = 2) -> GradingTask:
    """Return a task with some items."""
    return GradingTask(b"key", "q", "c", "prefix ", tuple(f"item {n}" for n in range(items)))


async def test_shares_are_estimates_with_intervals() -> None:
    """The share of yes is the answer, its interval covers the truth, and its status says so."""
    async with serving(WritingJudge(p_yes=0.75)) as server:
        config = JudgeConfig(
            engine="openai_sampled", model=MODEL, base_url=server.base_url, options={"samples": 64}
        )
        engine = create_engine(config)
        graded = await engine.grade(task(), {})
        identity = await engine.identify()
        (finding,) = await engine.findings()
        await engine.aclose()
    for answer in graded.answers:
        assert answer.status is Status.SAMPLED
        assert answer.p_low < 0.75 < answer.p_high  # type: ignore[operator]
        assert answer.p_low < answer.p_yes < answer.p_high  # type: ignore[operator]
    assert graded.usage.requests == 128
    assert identity.logprobs == "sampled64@1"
    assert "64 requests per item" in finding.told
    assert calls(engine, 3) == 192


async def test_failed_sample_fails_the_item() -> None:
    """A rejected request fails its item by number; earlier items keep their answer."""
    async with serving(WritingJudge(rejects="item 1")) as server:
        config = JudgeConfig(
            engine="openai_sampled", model=MODEL, base_url=server.base_url, options={"samples": 2}
        )
        engine = create_engine(config)
        graded = await engine.grade(task(), {})
        await engine.aclose()
    assert graded.failure is not None
    assert graded.failure.startswith("item 2: ")
    assert graded.rejected
    assert [answer.status for answer in graded.answers] == [Status.SAMPLED, Status.ERROR]


async def test_grader_carries_the_interval_into_the_score() -> None:
    """The score of sampled answers has an interval, narrower than that of one item."""
    async with serving(WritingJudge(p_yes=0.75)) as server:
        judge = Judge(MODEL, server.base_url, engine="openai_sampled")
        with Grader(judge) as grader:
            graded = await grader.grade_async(
                ResponseToGrade("q", "r", ["a?", "b?", "c?", {"text": "d?", "weight": -1}])
            )
    assert graded.low is not None
    assert graded.low < graded.score < graded.high  # type: ignore[operator]
    widest = max(item.answer.p_high - item.answer.p_low for item in graded.items)  # type: ignore
    assert graded.high - graded.low < widest  # type: ignore[operator]


async def test_run_and_doctor_use_a_sampled_judge(tmp_path: Path) -> None:
    """A whole run works, without false alarms of its canaries; the doctor names the kind and cost.

    Ten judgments are enough for canaries to be asked at the end.
    """
    rows = [
        {"question": f"q{n}", "model": name, "output": f"reply {n} of {name}"}
        for n in range(6)
        for name in ("a", "b")
    ]
    async with serving(WritingJudge(p_yes=0.5)) as server:
        judge = Judge(
            MODEL, server.base_url, engine="openai_sampled", options={"samples": 2, "seeds": False}
        )
        server.reply = random_reply  # type: ignore[method-assign]
        result = await evaluate_async(
            rows, judge=judge, checklists=["x?", "y?"], name="run", output=tmp_path, progress=False
        )
        engine = create_engine(JudgeConfig.model_validate(judge.settings))
        found = await examine(engine, GradingPrompt(), quick=True)
        await engine.aclose()
    assert len(result.ranking) == 2
    assert {row.status for row in result.answers} == {"sampled"}
    (finding,) = [each for each in found.findings if each.name == "answers"]
    assert "2 requests per item" in finding.told


def random_reply(prompt: str, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a completion that differs each time."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": next(ANSWERS)}}
    return {"object": "chat.completion", "choices": [choice], "usage": {"prompt_tokens": 1}}


ANSWERS = cycle(["Yes", "No", "Yes", "Yes", "No"])


def test_unreadable_texts_are_no_answer() -> None:
    """Texts that are mostly no label are unreadable; a few are left out."""
    assert count_answers(["Maybe", "Hm", "Yes"], YES_NO).status is Status.UNREADABLE
    answer = count_answers(["**Yes**", "no, because", "Hm", "Yes"], YES_NO)
    assert (answer.p_yes, answer.mass) == (pytest.approx(2 / 3), 0.75)


def test_levels_and_inapplicable_answers_are_counted() -> None:
    """Levels become the mean level; "not applicable" has a share of its own."""
    labels = AnswerLabels(("3", "2", "1"), "NA")
    answer = count_answers(["3", "2", "NA", "3"], labels)
    assert answer.p_yes == pytest.approx((1 + 0.5 + 1) / 3)
    assert (answer.p_na, answer.text) == (0.25, "3")


def test_one_written_answer_is_not_certain() -> None:
    """One yes leaves nearly everything open; more samples narrow the interval."""
    assert binomial_interval(1, 1)[0] == pytest.approx(0.025)
    widths = [high - low for low, high in (binomial_interval(n / 2, n) for n in (2, 8, 32, 128))]
    assert widths == sorted(widths, reverse=True)


@dataclass
class DecisionServer:
    """A stub of a decision endpoint in the documented shape."""

    bodies: list[Any] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        """Answer predicates with a probability, choices with all of it on the first value."""
        body = await request.json()
        self.bodies.append(body)
        rows: list[dict[str, Any]] = []
        for question in body["questions"]:
            if question["type"] == "predicate":
                rows.append({"type": "predicate", "name": question["name"], "probability": 0.9})
            else:
                values = [each["value"] for each in question["choices"]]
                shares = [
                    {"value": value, "probability": float(value == values[0])} for value in values
                ]
                rows.append({"type": "choice", "choice": values[0], "probabilities": shares})
        usage = {"input_tokens": 50, "output_tokens": 0, "total_tokens": 50}
        return web.json_response({"answers": rows, "model": "m", "usage": usage})


async def test_decision_endpoint_answers_a_checklist_in_one_request() -> None:
    """One request holds all items: a shared input, and a predicate or choice per item."""
    stub = DecisionServer()
    app = web.Application()
    app.router.add_post("/v1/decisions", stub.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    config = JudgeConfig(engine="decisions", model="m", base_url=url)
    engine = create_engine(config)
    labels = (None, None, AnswerLabels(("3", "2", "1"), "NA"))
    given = GradingTask(b"k", "q", "c", "prefix ", ("a?", "b?", "c?"), labels=labels)
    graded = await engine.grade(given, {})
    await engine.aclose()
    await runner.cleanup()
    assert [answer.p_yes for answer in graded.answers] == [0.9, 0.9, 1.0]
    assert graded.answers[2].p_na == 0.0
    assert graded.usage.requests == 1
    (body,) = stub.bodies
    assert body["input"] == "prefix "
    assert [question["type"] for question in body["questions"]] == [
        "predicate",
        "predicate",
        "choice",
    ]


async def test_decision_endpoint_that_is_down_is_named() -> None:
    """A server without the endpoint is an error, not an answer."""
    async with serving(FakeOpenAI()) as server:
        server.always("/v1/decisions", status(404))
        judge = Judge(MODEL, server.base_url, engine="decisions")
        with Grader(judge) as grader, pytest.raises(EngineError):
            await grader.grade_async(ResponseToGrade("q", "r", ["a?"]))
