"""The grader: answers kept and reused, offline use, failures, and many callers at once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any, cast

import pytest

from fakes.openai_server import MODEL, FakeOpenAI, serving, status
from rocketeval import Grader, Judge, ScriptedEngine
from rocketeval.engines.base import EngineAnswers
from rocketeval.errors import ConfigError, EngineError, EngineRefused, EngineUnavailable
from rocketeval.grader import ResponseToGrade
from rocketeval.integrations.shared import explain_grade
from rocketeval.records import Answer, GradingTask, Status, Turn

ITEMS = ["Is it right?", "Is it short?", {"text": "Is it rude?", "weight": -2}]


def engine(p_yes: float = 0.8, **settings: object) -> ScriptedEngine:
    """Return a scripted engine with one answer to everything."""
    return ScriptedEngine(lambda prefix, item: p_yes, **settings)  # type: ignore[arg-type]


def test_score_weighs_penalties() -> None:
    """The score is the weighted mean; a penalty counts one minus its answer."""
    with Grader(engine(0.8)) as grader:
        graded = grader.grade("q", "r", ITEMS)
    assert graded.score == pytest.approx((0.8 + 0.8 + 2 * 0.2) / 4)
    assert [item.text for item in graded.failed] == ["Is it rude?"]
    assert (graded.low, graded.high) == (graded.score, graded.score)


class _Prompts:
    """Keeps the prompts of a scripted judge."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def __call__(self, prefix: str, item: str) -> float:
        """Keep a prompt and answer it."""
        self.seen.append(prefix + item)
        return 0.8


def test_text_as_context_is_one_passage() -> None:
    """A context of one text is shown like a list of that text, not letter by letter."""
    prompts, item = _Prompts(), {"text": "Is it grounded?", "uses": ["context"]}
    with Grader(ScriptedEngine(prompts)) as grader:
        grader.grade("q", "r", [item], context="Berlin is a city.")
        again = grader.grade("q", "r", [item], context=["Berlin is a city."])
    assert "Berlin is a city." in prompts.seen[0]
    assert again.usage.requests == 0


def test_history_of_objects() -> None:
    """Messages in the style of the OpenAI API are shown like turns."""
    prompts = _Prompts()
    with Grader(ScriptedEngine(prompts)) as grader:
        grader.grade("q", "r", ["a?"], history=[{"role": "user", "content": "Hello there"}])
        again = grader.grade("q", "r", ["a?"], history=[Turn("user", "Hello there")])
    assert "Hello there" in prompts.seen[0]
    assert again.usage.requests == 0


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"response": None}, "`response` must be a text, but is missing"),
        ({"response": float("nan")}, "`response` must be a text, but is missing"),
        ({"response": 7}, "`response` must be a text, but is of type int"),
        ({"query": None}, "`query` must be a text, but is missing"),
        ({"context": ["a", None]}, r"`context\[1\]` must be a text"),
        ({"context": 7}, "`context` must be a text or a list of texts"),
        ({"history": "Hello"}, "`history` must be a list of messages"),
        ({"history": ["Hello"]}, r"`history\[0\]` is not a message"),
        ({"history": [{"role": "user"}]}, r"`history\[0\]\.content` must be a text"),
    ],
)
def test_wrong_argument_is_named(given: dict[str, Any], named: str) -> None:
    """An argument that is missing or of another type is an error that names it."""
    arguments = {"query": "q", "response": "r", "checklist": ["a?"], **given}
    with Grader(engine()) as grader, pytest.raises(ConfigError, match=named):
        grader.grade(**arguments)


async def test_judge_names_a_wrong_argument() -> None:
    """So does a judge without a grader."""
    judge, missing = Judge(engine=engine()), cast(str, None)
    with pytest.raises(ConfigError, match="`response` must be a text"):
        await judge.answers("q", missing, ["a?"])


def test_explanation_shows_the_answer_to_a_penalty() -> None:
    """Other frameworks show a failed penalty with its mark, and the judge's yes."""
    with Grader(engine(0.92)) as grader:
        graded = grader.grade("q", "r", ITEMS)
    line = "failed (yes 0.92): Is it rude? [penalty of weight 2]"
    assert explain_grade(graded).splitlines()[1:] == [line]


def test_new_item_alone_is_asked(tmp_path: Path) -> None:
    """A longer checklist asks only its new item, also in another process's grader."""
    path, judge = tmp_path / "answers.jsonl", engine()
    with Grader(judge, answers=path) as grader:
        grader.grade("q", "r", ITEMS)
    with Grader(judge, answers=path) as grader:
        graded = grader.grade("q", "r", ["Is it new?", *ITEMS])
    assert (graded.usage.requests, graded.reused, judge.items_asked) == (1, 3, 4)


def test_weights_cost_nothing(tmp_path: Path) -> None:
    """Another weight changes the score and asks nothing."""
    with Grader(engine()) as grader:
        plain = grader.grade("q", "r", ["a?", {"text": "b?", "weight": 1}])
        heavy = grader.grade("q", "r", ["a?", {"text": "b?", "weight": -3}])
    assert (plain.score, heavy.score) == (0.8, pytest.approx((0.8 + 3 * 0.2) / 4))
    assert heavy.usage.requests == 0


def test_code_checks_need_no_judge() -> None:
    """A checklist of code checks is decided without contacting a judge."""
    words = {"text": "At most 3 words", "check": {"fn": "words", "args": {"max": 3}}}
    with Grader("nobody", "http://127.0.0.1:9/v1", offline=True) as grader:
        graded = grader.grade("q", "one two", [words])
    assert (graded.score, graded.judge) == (1.0, None)


def test_damaged_line_is_asked_again(tmp_path: Path) -> None:
    """A changed figure in the file is never a score: its answers are asked again."""
    path, judge = tmp_path / "answers.jsonl", engine()
    with Grader(judge, answers=path) as grader:
        grader.grade("q", "r", ["a?"])
    path.write_text(path.read_text().replace("0.8", "0.1"))
    with Grader(judge, answers=path) as grader:
        assert grader.grade("q", "r", ["a?"]).score == 0.8
    assert judge.items_asked == 2


def test_torn_line_affects_no_other(tmp_path: Path) -> None:
    """What a killed process left of its line does not swallow the next answers."""
    path, judge = tmp_path / "answers.jsonl", engine()
    with Grader(judge, answers=path) as grader:
        grader.grade("q", "r", ["a?"])
    with path.open("ab") as stream:
        stream.write(b'{"judge": "ab')
    with Grader(judge, answers=path) as grader:
        grader.grade("q", "r", ["b?"])
    with Grader(judge, answers=path) as grader:
        assert grader.grade("q", "r", ["b?"]).usage.requests == 0


def test_two_graders_see_each_others_answers(tmp_path: Path) -> None:
    """An answer that another process appended meanwhile is reused."""
    path, judge = tmp_path / "answers.jsonl", engine()
    with Grader(judge, answers=path) as one, Grader(judge, answers=path) as other:
        one.grade("q", "r", ["a?"])
        assert other.grade("q", "r", ["a?"]).usage.requests == 0


def test_same_response_at_once_is_asked_once() -> None:
    """Equal responses that arrive together share one request."""
    judge = engine(delay=0.01)
    with Grader(judge) as grader:
        many = grader.grade_all([ResponseToGrade("q", "r", ["a?"])] * 20)
    assert judge.items_asked == 1
    assert {one.score for one in many if not isinstance(one, EngineError)} == {0.8}


def test_failure_is_an_error_and_nothing_is_lost(tmp_path: Path) -> None:
    """A failed item is an error that names the query; answers before it are kept."""
    failing = ScriptedEngine(lambda prefix, item: 0.8, fail_on="b?")
    path = tmp_path / "answers.jsonl"
    with Grader(failing, answers=path) as grader:
        with pytest.raises(EngineError, match="no answer about 'the query': item 2"):
            grader.grade("the query", "r", ["a?", "b?"])
        assert grader.grade("the query", "r", ["a?"]).usage.requests == 0


async def test_answers_must_be_probabilities() -> None:
    """A judge's 80 is an error in the grader and in `Judge`, not a score of 80."""
    wrong = "ScriptedEngine answered item 1 with 80.0"
    with Grader(engine(80.0)) as grader, pytest.raises(EngineRefused, match=wrong):
        grader.grade("q", "r", ["a?"])
    with pytest.raises(EngineRefused, match=wrong):
        await Judge(engine=engine(80.0)).answers("q", "r", ["a?"])


def test_time_limit_is_an_error() -> None:
    """A slow judge is an error after the time limit."""
    with (
        Grader(engine(delay=60), timeout=0.05) as grader,
        pytest.raises(EngineUnavailable, match=r"No answer within 0.05 s"),
    ):
        grader.grade("q", "r", ["a?"])


async def test_awaited_in_any_loop() -> None:
    """Callers await it in their own event loop."""
    with Grader(engine()) as grader:
        one = ResponseToGrade("q", "r", ["a?"])
        found = await asyncio.gather(*(grader.grade_async(one) for _ in range(5)))
    assert [each.score for each in found] == [0.8] * 5


async def test_recorded_answers_work_without_the_server(tmp_path: Path) -> None:
    """A server is identified and asked once; offline, nothing is contacted, on any URL."""
    path = tmp_path / "answers.jsonl"
    async with serving(FakeOpenAI()) as server:
        with Grader(Judge(MODEL, server.base_url), answers=path) as grader:
            first = await grader.grade_async(ResponseToGrade("q", "r", ["a?", "b?"]))
    elsewhere = Judge(MODEL, "http://127.0.0.1:9/v1")
    with Grader(elsewhere, answers=path, offline=True) as grader:
        again = await grader.grade_async(ResponseToGrade("q", "r", ["a?", "b?"]))
        assert (again.score, again.judge, again.reused) == (first.score, first.judge, 2)
        with pytest.raises(EngineRefused, match="1 of 1 items have no recorded answer"):
            await grader.grade_async(ResponseToGrade("q", "other", ["a?"]))
    with (
        Grader("other-judge", answers=path, offline=True) as grader,
        pytest.raises(EngineRefused, match="has no answers of other-judge"),
    ):
        await grader.grade_async(ResponseToGrade("q", "r", ["a?"]))


async def test_changed_judge_is_asked_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Another server version is another judge: its answers are not mixed with the former ones."""
    path = tmp_path / "answers.jsonl"
    async with serving(FakeOpenAI()) as server:
        with Grader(Judge(MODEL, server.base_url), answers=path) as grader:
            await grader.grade_async(ResponseToGrade("q", "r", ["a?"]))
        server.always("/version", status(404))
        with Grader(Judge(MODEL, server.base_url), answers=path) as grader:
            graded = await grader.grade_async(ResponseToGrade("q", "r", ["a?", "b?"]))
    assert graded.usage.requests == 2
    assert "changed (version)" in caplog.text


def test_memory_of_answers_is_limited() -> None:
    """The oldest answers are dropped; they are asked again."""
    judge = engine()
    with Grader(judge, most_answers=2) as grader:
        for query in ("a", "b", "c", "a"):
            grader.grade(query, "r", ["x?"])
        assert grader.grade("c", "r", ["x?"]).usage.requests == 0
    assert judge.items_asked == 4


def test_grades_are_spans_of_opentelemetry() -> None:
    """With the SDK of OpenTelemetry in use, each grade is a span with its score; errors too."""
    sdk = pytest.importorskip("opentelemetry.sdk.trace", reason="the SDK is not installed")
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    trace = pytest.importorskip("opentelemetry.trace")
    spans = memory.InMemorySpanExporter()
    provider = sdk.TracerProvider()
    provider.add_span_processor(export.SimpleSpanProcessor(spans))
    trace.set_tracer_provider(provider)
    with Grader(engine(0.8, fail_on="broken")) as grader:
        with trace.get_tracer("test").start_as_current_span("caller"):
            grader.grade("q", "r", ["a?"])
        with pytest.raises(EngineError):
            grader.grade("q", "broken", ["a?"])
    good, caller, bad = spans.get_finished_spans()
    assert good.parent.span_id == caller.context.span_id
    assert good.attributes["gen_ai.evaluation.score.value"] == 0.8
    assert good.attributes["rocketeval.judge.requests"] == 1
    assert not bad.status.is_ok


def test_closing_ends_work_that_waits() -> None:
    """Closing a grader cancels a response in work, so that nobody waits for it forever."""
    grader = Grader(ScriptedEngine(lambda prefix, item: 0.5, delay=600))
    waiting = grader.submit(ResponseToGrade("q", "r", ["a?"]))
    grader.close()
    with pytest.raises(CancelledError):
        waiting.result(timeout=60)


class SilentAtFirst(ScriptedEngine):
    """Sends no log-probabilities in its first reply."""

    silent = True

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Hide the probabilities once."""
        graded = await super().grade(task, known)
        silent, self.silent = self.silent, False
        hidden = tuple(Answer(Status.NO_LOGPROBS) for _ in graded.answers)
        return EngineAnswers(hidden, graded.usage, None) if silent else graded


def test_reply_without_an_answer_is_not_kept(tmp_path: Path) -> None:
    """The item is asked again, also by another grader of the same file."""
    judge, path = SilentAtFirst(lambda prefix, item: 0.8), tmp_path / "answers.jsonl"
    scores = []
    for _ in range(3):
        with Grader(judge, answers=path) as grader:
            scores.append(grader.grade("q", "r", ["Is it right?"]).score)
    assert scores == [None, 0.8, 0.8]
    assert judge.items_asked == 2


def test_closed_grader_can_be_used_again() -> None:
    """A call after `close` contacts the judge again."""
    grader = Grader(engine(0.8))
    for response in ("r", "s"):
        assert grader.grade("q", response, ["Is it right?"]).score == 0.8
        grader.close()
