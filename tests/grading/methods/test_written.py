"""Written judgments and likelihoods: answers, failures and usage."""

from __future__ import annotations

import math

import pytest

from fakes.openai_server import MODEL, FakeOpenAI, answer, serving
from rocketeval.config import JudgeConfig
from rocketeval.engines import http
from rocketeval.engines.base import Likelihood, WrittenText
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import (
    EngineError,
    EngineRefused,
    EngineUnavailable,
    RequestRejected,
    UnusableReply,
)
from rocketeval.grading.ask import Ask, response_likelihood, writes_answers, writes_score
from rocketeval.records import GradingTask, Status, Usage

TASK = GradingTask(b"k", "q", "c", "Judge this. ", ("Q1. Right?\nQ2. Short?",), items=2)
SCORE = GradingTask(b"k", "q", "c", "Judge this. ", ("How good?",), items=1)


class Writer(ScriptedEngine):
    """Writes one text, or raises; keeps its prompts."""

    def __init__(self, written: str | EngineError, *, finished: bool = True) -> None:
        super().__init__()
        self.written = written
        self.finished = finished
        self.asked: list[tuple[str, int]] = []

    async def write(
        self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int | None = None
    ) -> WrittenText:
        self.asked.append((prompt, max_tokens))
        assert temperature == 0.0
        if isinstance(self.written, EngineError):
            raise self.written
        return WrittenText(self.written, Usage(1, 20, 5, 7), self.finished)

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        self.asked.append((prompt + text, 0))
        if isinstance(self.written, EngineError):
            raise self.written
        return Likelihood((-1.0, -3.0), Usage(1, 20))


async def test_written_judgment_is_read_and_counted() -> None:
    """The whole prompt is asked once, within the limit; usage is the engine's."""
    engine = Writer("Q1: Yes\nQ2: No")
    graded = await writes_answers(33)(engine)(TASK, {})
    assert engine.asked == [(TASK.prefix + TASK.suffixes[0], 33)]
    assert [answer.p_yes for answer in graded.answers] == [1.0, 0.0]
    assert graded.usage == Usage(1, 20, 5, 7)
    assert graded.failure is None


async def test_written_score_is_one_answer() -> None:
    """The answer keeps the text it was read from."""
    graded = await writes_score(33)(Writer('{"score": "10"}'))(SCORE, {})
    assert [(answer.p_yes, answer.text) for answer in graded.answers] == [(1.0, '{"score": "10"}')]


async def test_unreadable_text_is_an_unanswered_judgment() -> None:
    """It is paid for, and asking again would give the same: not a failure."""
    graded = await writes_score(33)(Writer("Lovely."))(SCORE, {})
    assert graded.failure is None
    assert graded.answers[0].status is Status.UNREADABLE


@pytest.mark.parametrize(("finished", "status"), [(True, Status.OK), (False, Status.UNREADABLE)])
async def test_truncated_number_is_not_read(finished: bool, status: Status) -> None:
    """At the token limit, `score: 1` may be the start of 10."""
    graded = await writes_score(33)(Writer("score: 1", finished=finished))(SCORE, {})
    assert graded.answers[0].status is status


@pytest.mark.parametrize("ask", [writes_answers(9), writes_score(9), response_likelihood])
@pytest.mark.parametrize(
    "error", [EngineUnavailable("gone"), RequestRejected("too long"), UnusableReply("empty")]
)
async def test_failure_is_reported_and_counted(ask: object, error: EngineError) -> None:
    """It may be billed, and is marked unavailable or rejected as with checklists."""
    asking: Ask = ask(Writer(error))  # type: ignore[operator]
    graded = await asking(TASK, {})
    assert graded.failure == error.message
    assert graded.unavailable is isinstance(error, EngineUnavailable)
    assert graded.rejected is (type(error) is RequestRejected)
    assert {answer.status for answer in graded.answers} == {Status.ERROR}
    assert graded.usage.requests == 1


async def test_every_attempt_of_a_failed_text_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replies without a usable text are billed too, and the server says for how much."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.004)
    usage = {"prompt_tokens": 1000, "completion_tokens": 400}
    async with serving(FakeOpenAI()) as server:
        server.fail(answer({"choices": [], "usage": usage}), times=http.MOST_UNUSABLE)
        engine = OpenAIEngine.create(JudgeConfig(model=MODEL, base_url=server.base_url))
        graded = await writes_score(400)(engine)(SCORE, {})
        await engine.aclose()
    assert graded.failure is not None
    used = graded.usage
    assert (used.requests, used.prompt_tokens, used.completion_tokens) == (6, 6000, 2400)


@pytest.mark.parametrize("ask", [writes_score(9), response_likelihood])
async def test_refusal_is_raised(ask: object) -> None:
    """An engine that does not support the method ends it with its own message."""
    with pytest.raises(EngineRefused, match="cannot"):
        await ask(Writer(EngineRefused("cannot")))(SCORE, {})  # type: ignore[operator]


async def test_likelihood_is_one_over_perplexity() -> None:
    """The mean log-probability decides, not the length."""
    engine = Writer("")
    graded = await response_likelihood(engine)(SCORE, {})
    (answer,) = graded.answers
    assert answer.p_yes == pytest.approx(math.exp(-2.0))
    assert answer.logp_yes == -2.0
    assert graded.usage.prompt_tokens == 20
