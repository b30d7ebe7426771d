"""Items in order: the judge reads its own earlier answers, and nothing is asked twice."""

from __future__ import annotations

from collections.abc import Mapping

from rocketeval.engines.base import EngineAnswers
from rocketeval.engines.scripted import ScriptedEngine, exact_answer
from rocketeval.grading.ask import sequentially
from rocketeval.prompts.variants import LINK, TranscriptPrompt
from rocketeval.records import Answer, Checklist, GradingTask, Query, Response, Status, Usage

ITEMS = ("Is it right?", "Is it short?", "Is it kind?")
SAID = {"right": 0.9, "short": 0.2, "kind": 0.5}


def make_task() -> GradingTask:
    """Three items about one response."""
    checklist = Checklist("q", ITEMS)
    return TranscriptPrompt().render(Query("q", "Why?"), Response("q", "c", "So."), checklist, b"k")


class Listening(ScriptedEngine):
    """Answers by the last question's last word, and keeps every prompt."""

    def __init__(self, fail_on: str | None = None, silent_on: str | None = None) -> None:
        super().__init__(self.answer, fail_on=fail_on)
        self.prompts: list[str] = []
        self.silent_on = silent_on

    def answer(self, prefix: str, suffix: str) -> float:
        self.prompts.append(prefix + suffix)
        return next(p for word, p in SAID.items() if suffix.startswith(f"Is it {word}?"))

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        if self.silent_on and task.suffixes[0].startswith(self.silent_on):
            return EngineAnswers((Answer(Status.LOW_MASS),), Usage(requests=1))
        return await super().grade(task, known)


async def test_the_transcript_is_exactly_what_was_said() -> None:
    """The likelier word behind every earlier question; one half counts as yes."""
    engine, task = Listening(), make_task()
    graded = await sequentially(engine)(task, {})
    tail = task.suffixes[0].removeprefix(ITEMS[0])
    one, two, three = (item + tail for item in ITEMS)
    assert engine.prompts == [
        task.prefix + one,
        f"{task.prefix}{one} Yes{LINK}{two}",
        f"{task.prefix}{one} Yes{LINK}{two} No{LINK}{three}",
    ]
    assert [answer.p_yes for answer in graded.answers] == [0.9, 0.2, 0.5]
    assert graded.usage.requests == 3
    assert graded.failure is None


async def test_known_answers_are_in_the_transcript_and_not_asked() -> None:
    """What an earlier run paid for is shown again, and costs nothing."""
    whole, rest, task = Listening(), Listening(), make_task()
    first = await sequentially(whole)(task, {})
    known = {0: first.answers[0], 1: first.answers[1]}
    again = await sequentially(rest)(task, known)
    assert again.answers == first.answers
    assert rest.prompts == whole.prompts[2:]
    assert again.usage.requests == 1


async def test_a_failure_keeps_what_was_answered_before_it() -> None:
    """The failed item is named by its own number; the rest is open."""
    graded = await sequentially(Listening(fail_on="Is it short?"))(make_task(), {})
    assert [answer.status for answer in graded.answers] == [Status.OK, Status.ERROR, Status.ERROR]
    assert graded.failure == "item 2: scripted to fail"
    assert not graded.unavailable


async def test_a_failure_keeps_what_is_known_after_it() -> None:
    """An answer that was paid for is never lost."""
    known = {2: exact_answer(0.7)}
    graded = await sequentially(Listening(fail_on="Is it short?"))(make_task(), known)
    assert graded.answers[2] == known[2]
    assert graded.answers[1].status is Status.ERROR


async def test_an_unavailable_judge_is_told_as_such() -> None:
    """So that the loop gives up on it, as with checklists."""

    class Gone(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            error = (Answer(Status.ERROR),)
            return EngineAnswers(error, Usage(requests=2), "item 1: no route", unavailable=True)

    graded = await sequentially(Gone())(make_task(), {})
    assert graded.unavailable
    assert graded.usage.requests == 2
    assert len(graded.answers) == 3


async def test_an_answer_without_a_probability_leaves_no_trace() -> None:
    """The judge is not told that it said something it did not say."""
    engine, task = Listening(silent_on="Is it right?"), make_task()
    graded = await sequentially(engine)(task, {})
    assert graded.answers[0].status is Status.LOW_MASS
    assert "Is it right?" not in engine.prompts[0]
    assert "Is it short?" in engine.prompts[1]
