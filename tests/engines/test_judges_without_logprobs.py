"""Judges without log-probabilities: written answers over HTTP, and a decision endpoint."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from fakes.openai_server import MODEL, FakeOpenAI, empty_choices, serving, status
from fakes.openai_server import answer as replying
from rocketeval import Grader, Judge, evaluate_async
from rocketeval.config import JudgeConfig
from rocketeval.doctor.examine import examine
from rocketeval.engines.base import EngineAnswers, create_engine
from rocketeval.engines.http import MOST_UNUSABLE
from rocketeval.engines.sampled import SampledEngine, binomial_interval, count_answers, fit_scale
from rocketeval.errors import ConfigError, EngineError
from rocketeval.grader import ResponseToGrade
from rocketeval.grading.loop import calls
from rocketeval.items import AnswerLabels
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Answer, GradingTask, Status

YES_NO = AnswerLabels(("Yes", "No"))


@dataclass
class WritingJudge(FakeOpenAI):
    """A server that writes yes with a known probability and never sends log-probabilities."""

    p_yes: float = 0.75
    several: bool = True
    """Whether it writes as many answers as `n` says."""

    def reply(self, prompt: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Return a completion whose text is drawn by the prompt and the seed."""
        count = body.get("n", 1) if self.several else 1
        choices = []
        for index in range(count):
            seed = None if body.get("seed") is None else body["seed"] + index
            drawn = hashlib.sha256(f"{prompt} {seed}".encode()).digest()[0] / 256
            message = {"content": "Yes" if drawn < self.p_yes else "No."}
            choices.append({"index": index, "finish_reason": "stop", "message": message})
        usage = {"prompt_tokens": 10, "completion_tokens": count}
        return {"object": "chat.completion", "choices": choices, "usage": usage}


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


async def sampled(server: FakeOpenAI, **options: Any) -> EngineAnswers:
    """Return the answers of a sampled judge to two items."""
    config = JudgeConfig(
        engine="openai_sampled", model=MODEL, base_url=server.base_url, options=options
    )
    engine = create_engine(config)
    try:
        return await engine.grade(task(), {})
    finally:
        await engine.aclose()


async def test_one_request_has_several_answers() -> None:
    """With `n`, the same answers come from fewer requests, and the prompt is paid once."""
    async with serving(WritingJudge(p_yes=0.75)) as server:
        alone = await sampled(server, samples=10)
        together = await sampled(server, samples=10, per_request=4)
    assert together.answers == alone.answers
    assert (alone.usage.requests, together.usage.requests) == (20, 6)
    assert (alone.usage.prompt_tokens, together.usage.prompt_tokens) == (200, 60)


def test_most_written_counts_every_answer_of_a_request() -> None:
    """A request for several answers may write the limit of tokens for each of them."""

    def most(extra_body: Mapping[str, Any] | None = None, **options: Any) -> int:
        config = JudgeConfig(
            engine="openai_sampled",
            model=MODEL,
            base_url="http://x/v1",
            options=options,
            extra_body=dict(extra_body or {}),
        )
        return SampledEngine(config).most_written

    assert most(samples=10, max_tokens=5) == 5
    assert most(samples=10, max_tokens=5, per_request=4) == 20
    assert most(samples=3, max_tokens=5, per_request=128) == 15
    assert most({"max_tokens": 50}, samples=10, per_request=4) == 200


async def test_server_without_several_answers_is_named() -> None:
    """A server that ignores `n` is a message that names the option."""
    async with serving(WritingJudge(several=False)) as server:
        graded = await sampled(server, samples=8, per_request=8)
    assert graded.rejected
    assert "1 answer to a request for 8" in (graded.failure or "")


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


@pytest.mark.usefixtures("fast_retries")
async def test_fault_of_the_moment_is_not_rejected() -> None:
    """A reply without a usable answer fails its item, and a later command may ask it again."""
    async with serving(WritingJudge()) as server:
        server.fail(empty_choices, times=MOST_UNUSABLE)
        graded = await sampled(server, samples=1)
    assert (graded.failure or "").startswith("item 1: ")
    assert not graded.rejected


@pytest.mark.usefixtures("fast_retries")
async def test_every_attempt_of_a_failed_sample_is_counted() -> None:
    """The usage has the tokens of all answers, also of those that could not be used."""
    usage = {"prompt_tokens": 1000, "completion_tokens": 400}
    async with serving(WritingJudge()) as server:
        server.fail(replying({"choices": [], "usage": usage}), times=2 * MOST_UNUSABLE)
        used = (await sampled(server, samples=2)).usage
    assert (used.requests, used.prompt_tokens, used.completion_tokens) == (12, 12_000, 4800)


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


def both_kinds(temperature: float, samples: int) -> tuple[list[Answer], list[Answer]]:
    """Return written and exact answers to the same items; shares are as near as counts can be."""
    known = [0.02 + 0.04 * n for n in range(25)]
    shares = [1 / (1 + ((1 - p) / p) ** (1 / temperature)) for p in known]
    texts = [["Yes"] * round(samples * q) + ["No"] * (samples - round(samples * q)) for q in shares]
    return (
        [count_answers(text, YES_NO) for text in texts],
        [Answer(Status.OK, p, p, p, 1.0) for p in known],
    )


def test_scale_undoes_a_temperature() -> None:
    """Answers written at another temperature are put back on the scale of probabilities."""
    sampled, exact = both_kinds(0.5, samples=1000)
    scale = fit_scale(sampled, exact, 1000)
    assert scale.slope == pytest.approx(2.0, rel=0.05)
    assert scale.intercept == pytest.approx(0.0, abs=0.05)
    for answer, known in zip(sampled, exact, strict=True):
        scaled = scale.applied(answer)
        assert scaled.p_yes == pytest.approx(known.p_yes, abs=0.03)
        assert scaled.p_low < known.p_yes < scaled.p_high  # type: ignore[operator]
        assert scaled.status is Status.SAMPLED


def test_scale_needs_answers_that_rise_together() -> None:
    """Too few items, a constant judge, and one that only ever takes a side give no scale."""
    sampled, exact = both_kinds(1.0, samples=8)
    with pytest.raises(ConfigError, match="19 items"):
        fit_scale(sampled[:19], exact[:19], 8)
    for texts in (["Yes"] * 4 + ["No"] * 4, ["Yes"] * 8):
        with pytest.raises(ConfigError, match="do not follow"):
            fit_scale([count_answers(texts, YES_NO)] * 25, exact, 8)
    certain = [count_answers(["Yes" if known.p_yes > 0.5 else "No"] * 8, YES_NO) for known in exact]  # type: ignore[operator]
    with pytest.raises(ConfigError, match="do not follow"):
        fit_scale(certain, exact, 8)


async def test_scaled_judge_is_another_judge() -> None:
    """A scale changes yes/no answers and the fingerprint, not levels; the doctor names it."""
    scale = fit_scale(*both_kinds(0.5, samples=64), 64)
    options = {"samples": 64, "scale": scale.model_dump()}
    async with serving(WritingJudge(p_yes=0.9)) as server:
        config = JudgeConfig(
            engine="openai_sampled", model=MODEL, base_url=server.base_url, options=options
        )
        engine = create_engine(config)
        labels = (None, AnswerLabels(("Yes", "No"), "NA"))
        given = GradingTask(b"k", "q", "c", "prefix ", ("a?", "a?"), labels=labels)
        scaled, plain = (await engine.grade(given, {})).answers
        identity = await engine.identify()
        (finding,) = await engine.findings()
        await engine.aclose()
    assert 0.5 < scaled.p_yes < plain.p_yes  # type: ignore[operator]
    assert identity.logprobs.startswith("sampled64@1 scale ")
    assert "calibrated on 25 items" in finding.told


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


@asynccontextmanager
async def endpoint(path: str, answer: Any) -> AsyncIterator[str]:
    """Serve one route and yield the base URL."""
    app = web.Application()
    app.router.add_post(path, answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    await runner.cleanup()


async def decided(
    engine_name: str, url: str, *labels: AnswerLabels | None, own: tuple[str, ...] = ("Yes", "No")
) -> EngineAnswers:
    """Return the answers of a decision endpoint, whose own labels are given, to one item each."""
    config = JudgeConfig(engine=engine_name, model="m", base_url=url, labels=own)
    engine = create_engine(config)
    items = tuple(f"{name}?" for name in "abcdefgh"[: len(labels)])
    graded = await engine.grade(GradingTask(b"k", "q", "c", "prefix ", items, labels=labels), {})
    await engine.aclose()
    return graded


LEVELS = AnswerLabels(("3", "2", "1"), "NA")
DIGITS = tuple("9876543210")


async def test_decision_endpoint_answers_a_checklist_in_one_request() -> None:
    """One request holds all items: a shared input, and a predicate or choice per item."""
    stub = DecisionServer()
    async with endpoint("/v1/decisions", stub.answer) as url:
        graded = await decided("decisions", url, None, None, LEVELS)
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


async def test_graded_items_are_choices() -> None:
    """A judge whose own labels are grades is asked for one, and its answer is the mean grade."""
    stub, other = DecisionServer(), SystemOneStub()
    async with endpoint("/v1/decisions", stub.answer) as url:
        best = await decided("decisions", url, None, YES_NO, own=DIGITS)
    async with endpoint("/v1/systemone", other.answer) as url:
        middle = await decided("systemone", url, None, own=DIGITS)
    assert [(each.p_yes, each.text) for each in best.answers] == [(1.0, "9"), (1.0, None)]
    assert [(each.p_yes, each.text) for each in middle.answers] == [(pytest.approx(17 / 18), "9")]
    graded, checked = stub.bodies[0]["questions"]
    assert [choice["value"] for choice in graded["choices"]] == list(DIGITS)
    assert [choice["value"] for choice in checked["choices"]] == ["Yes", "No"]
    assert list(other.bodies[0]["questions"]["i1"]["criteria"]) == list(DIGITS)


@pytest.mark.parametrize(
    ("engine_name", "readout"),
    [("decisions", "probability"), ("systemone", "90a23d2ed1ff023e64afcee50c6fcb40")],
)
async def test_own_labels_are_part_of_a_decision_judge(engine_name: str, readout: str) -> None:
    """Judges with other labels are other judges; one that answers yes or no stays the same."""

    async def identified(*labels: str) -> str:
        config = JudgeConfig(engine=engine_name, model="m", base_url="http://x/v1", labels=labels)
        return (await create_engine(config).identify()).readout

    assert await identified("Yes", "No") == readout
    assert len({readout, await identified(*DIGITS), await identified(*"54321")}) == 3


async def test_decision_endpoint_that_is_down_is_named() -> None:
    """A server without the endpoint is an error, not an answer."""
    async with serving(FakeOpenAI()) as server:
        server.always("/v1/decisions", status(404))
        judge = Judge(MODEL, server.base_url, engine="decisions")
        with Grader(judge) as grader, pytest.raises(EngineError):
            await grader.grade_async(ResponseToGrade("q", "r", ["a?"]))


@dataclass
class SystemOneStub:
    """A stub of a System One endpoint in the documented shape; no model is behind it."""

    bodies: list[Any] = field(default_factory=list)
    left_out: str = ""
    mass: float | None = 0.98

    async def answer(self, request: web.Request) -> web.Response:
        """Answer yes/no questions with 0.8, choices with 0.5 for each of the first two options."""
        body = await request.json()
        self.bodies.append(body)
        answers: dict[str, Any] = {}
        for name, question in body["questions"].items():
            if question["type"] == "noul":
                row = {"noul": 0.8, "probabilities": {"yes": 0.8, "no": 0.2}, "confidence": 0.8}
            else:
                options = list(question["criteria"])
                shares = {option: 0.5 * (at < 2) for at, option in enumerate(options)}
                row = {"choice": options[0], "probabilities": shares, "confidence": 0.5}
            answers[name] = {"type": question["type"], **row}
        answers.pop(self.left_out, None)
        reply: dict[str, Any] = {"answers": answers, "model": "m"}
        if self.mass is not None:
            told = {"label_mass": self.mass, "argmax_is_label": True}
            reply["diagnostics"] = dict.fromkeys(answers, told)
        usage = {"input_tokens": 70, "output_tokens": 0}
        return web.json_response({**reply, "usage": usage})


async def test_system_one_answers_a_checklist_in_one_request() -> None:
    """Questions are named, levels are choices, and the mass of the labels is kept."""
    stub = SystemOneStub()
    async with endpoint("/v1/systemone", stub.answer) as url:
        graded = await decided("systemone", url, None, LEVELS)
    assert [answer.p_yes for answer in graded.answers] == [0.8, 0.75]
    assert [answer.mass for answer in graded.answers] == [0.98, 0.98]
    assert (graded.usage.requests, graded.usage.prompt_tokens) == (1, 70)
    (body,) = stub.bodies
    assert body["state"] == "prefix "
    assert body["questions"] == {
        "i1": {"type": "noul", "instructions": "a?"},
        "i2": {
            "type": "choice",
            "instructions": "b?",
            "criteria": {"3": None, "2": None, "1": None, "NA": None},
        },
    }


async def test_system_one_gives_no_answer_it_does_not_have() -> None:
    """A question left out is unreadable, labels without probability mass are no answer."""
    async with endpoint("/v1/systemone", SystemOneStub(left_out="i2").answer) as url:
        graded = await decided("systemone", url, None, None)
    assert [answer.status for answer in graded.answers] == [Status.OK, Status.UNREADABLE]
    async with endpoint("/v1/systemone", SystemOneStub(mass=0.02).answer) as url:
        graded = await decided("systemone", url, None)
    assert (graded.answers[0].status, graded.answers[0].p_yes) == (Status.LOW_MASS, None)
    async with endpoint("/v1/systemone", SystemOneStub(mass=None).answer) as url:
        graded = await decided("systemone", url, None)
    assert (graded.answers[0].p_yes, graded.answers[0].mass) == (0.8, 1.0)


@pytest.mark.parametrize(
    "reply",
    [
        {"answers": []},
        {"answers": {"i1": {"type": "noul", "noul": 1.2}}},
        {"answers": {"i1": {"type": "noul"}}},
        {"answers": {"i1": 0.5}},
        {"answers": {"i1": {"noul": 0.5}}, "diagnostics": {"i1": {"label_mass": "all"}}},
        {"answers": {"i1": {"noul": 0.5}}, "diagnostics": {"i1": {}}},
    ],
)
@pytest.mark.usefixtures("fast_retries")
async def test_system_one_refuses_other_shapes(reply: dict[str, Any]) -> None:
    """A reply in another shape fails its items and invents no probability."""

    async def answer(_: web.Request) -> web.Response:
        return web.json_response(reply)

    async with endpoint("/v1/systemone", answer) as url:
        graded = await decided("systemone", url, None)
    assert graded.failure is not None
    assert not graded.rejected
    assert graded.answers[0].p_yes is None


async def test_model_without_system_one_is_named() -> None:
    """HTTP 501, as vLLM answers for most models, is an error and not retried."""

    async def answer(_: web.Request) -> web.Response:
        message = "The model does not support the structured decision API"
        return web.json_response({"error": {"message": message}}, status=501)

    async with endpoint("/v1/systemone", answer) as url:
        judge = Judge("m", url, engine="systemone")
        with Grader(judge) as grader, pytest.raises(EngineError, match="does not support"):
            await grader.grade_async(ResponseToGrade("q", "r", ["a?"]))
